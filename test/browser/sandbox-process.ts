import { Agent, request } from "node:http";
import { expect } from "vitest";
import * as z from "zod";
import { startCommand } from "../support/server-process.ts";

const HEADERS = { authorization: "sandbox-app-key", "content-type": "application/json" };

/** Starts the sandbox of the built command. Returns its address as soon as it listens. */
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
    /** Sends many events over a few connections that stay open, which is faster than `fetch`. */
    async sendAll(events: readonly unknown[]): Promise<void> {
      const agent = new Agent({ keepAlive: true, maxSockets: 8 });
      const waiting = events.values();
      const next = async (): Promise<void> => {
        for (const event of waiting) await post(`${url}/event`, agent, JSON.stringify(event));
      };
      await Promise.all(Array.from({ length: 8 }, next));
      agent.destroy();
    },
    /** Stores objects directly, without checking the rules of the API. */
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

/** Sends a GET request with any `Host`, which `fetch` does not allow. */
export function getWithHost(url: string, host: string, path = "/"): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(new URL(path, url), { headers: { host } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    sent.on("error", reject).end();
  });
}

/** Returns the session token in the page's HTML, which the page's script reads. */
export function sessionIn(html: string): string {
  const [, content = ""] = /<meta name="session" content="([^"]+)">/.exec(html) ?? [];
  return z.string().parse(JSON.parse(decodeURIComponent(content)));
}
