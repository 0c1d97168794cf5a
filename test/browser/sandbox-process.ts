import { Agent, request } from "node:http";
import { expect } from "vitest";
import * as z from "zod";
import { startCommand } from "../support/server-process.ts";

const HEADERS = { authorization: "sandbox-app-key", "content-type": "application/json" };

/** Starts the built command's sandbox, and gives its address once it listens. */
export async function startSandboxProcess(...args: readonly string[]) {
  const command = startCommand(["sandbox", ...(args.includes("--port") ? [] : ["--port", "0"]), ...args]);
  await expect.poll(() => command.lines.length).toBeGreaterThan(2);
  const [first = ""] = command.lines;
  const url = first.slice(first.indexOf("http"));
  return {
    ...command,
    url,
    port: new URL(url).port,
    /** Sends an event as an app does. */
    async send(event: unknown): Promise<void> {
      await fetch(`${url}/event`, { method: "POST", headers: HEADERS, body: JSON.stringify(event) });
    },
    /** Sends events over a few connections that stay open, which costs less than `fetch`. */
    async sendAll(events: readonly unknown[]): Promise<void> {
      const agent = new Agent({ keepAlive: true, maxSockets: 8 });
      const waiting = events.values();
      const next = async (): Promise<void> => {
        for (const event of waiting) await post(`${url}/event`, agent, JSON.stringify(event));
      };
      await Promise.all(Array.from({ length: 8 }, next));
      agent.destroy();
    },
    /** Puts things into it past every rule. */
    async seed(seed: unknown): Promise<void> {
      const answer = await fetch(`${url}/_sandbox/seed`, { method: "POST", body: JSON.stringify(seed) });
      if (!answer.ok) throw new Error(await answer.text());
    },
  };
}

function post(url: string, agent: Agent, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", agent, headers: HEADERS }, (answer) => {
      answer.resume().once("end", resolve);
    });
    sent.once("error", reject).end(body);
  });
}

/** A GET with a `Host` of its own, which `fetch` does not allow. */
export function getWithHost(url: string, host: string, path = "/"): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(new URL(path, url), { headers: { host } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    sent.on("error", reject).end();
  });
}

/** The token of the session that a page gives to its script. */
export function sessionIn(html: string): string {
  const [, content = ""] = /<meta name="session" content="([^"]+)">/.exec(html) ?? [];
  return z.string().parse(JSON.parse(decodeURIComponent(content)));
}
