import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import * as z from "zod";
import { atEnd } from "./ends.ts";

const PROGRAM = join(import.meta.dirname, "fake-browser.mjs");

const row = z.looseObject({
  runId: z.string(),
  tool: z.string(),
  status: z.string(),
  actions: z.array(z.string()),
  counts: z.looseObject({ succeeded: z.number() }),
  disabled: z.record(z.string(), z.string()).optional(),
  waiting: z
    .looseObject({
      effect: z.string(),
      parts: z.array(z.looseObject({ title: z.string(), count: z.number(), objects: z.array(z.looseObject({})) })),
      stale: z.array(z.string()).optional(),
      elsewhere: z.string().optional(),
      expiresAt: z.number(),
    })
    .optional(),
});
const messages = z.array(
  z.looseObject({
    kind: z.string(),
    text: z.string().optional(),
    runs: z.array(row).optional(),
  }),
);

/**
 * Creates settings with which the server opens a fake browser. The browser writes to a folder outside of the server's.
 */
export function browserOfTest() {
  const file = join(mkdtempSync(join(tmpdir(), "targeting-mcp-browser-")), "opened");
  const opened = (): readonly string[] => {
    try {
      return readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line !== "");
    } catch {
      return [];
    }
  };
  return {
    env: { BROWSER: `${process.execPath} ${PROGRAM} ${file} %s`, TARGETING_MCP_PAGE: "on" },
    opened,
    /** Waits until the server has opened the browser for the nth time. Returns the address that it opened then. */
    async address(nth = 1): Promise<string> {
      await expect.poll(() => opened().length).toBeGreaterThanOrEqual(nth);
      return opened()[nth - 1] ?? "";
    },
  };
}

const opened = z.object({ session: z.string() });

/** Returns the session token from the response to a redeemed link or a login. */
export async function sessionOf(answer: Response): Promise<string> {
  return opened.parse(await answer.json()).session;
}

/** Redeems a link, as the page's script does, to start a session. */
export function redeem(link: string, headers: Record<string, string> = {}): Promise<Response> {
  const { origin, pathname } = new URL(link);
  return fetch(`${origin}/page/redeem`, {
    method: "POST",
    headers: { "content-type": "application/json", origin, ...headers },
    body: JSON.stringify({ code: pathname.replace("/open/", "") }),
  });
}

const detail = z.object({
  run: z.object({ waiting: z.object({ digest: z.string(), typed: z.string().optional() }).optional() }),
});

/** Redeems a link as a person. The returned person follows the stream of the page, and can press its buttons. */
export async function personAt(link: string) {
  const answer = await redeem(link);
  expect(answer.status).toBe(200);
  return personWith(new URL(link).origin, answer);
}

/**
 * Creates a person from the response that started their session. They follow the stream of the page, and can press its
 * buttons.
 */
export async function personWith(origin: string, answer: Response) {
  expect(answer.headers.getSetCookie()).toEqual([]);
  const session = await sessionOf(answer);
  const headers = { "x-page-token": session } as const;
  const leaving = new AbortController();
  atEnd(() => leaving.abort());
  const seen: z.output<typeof messages> = [];
  const stream = await fetch(`${origin}/page/stream`, { headers, signal: leaving.signal });
  expect(stream.status).toBe(200);
  let isOver = false;
  follow(stream, seen)
    .catch(() => undefined)
    .finally(() => {
      isOver = true;
    });
  return {
    origin,
    session,
    /** The headers that the page sends with each request. */
    headers,
    seen,
    isOver: () => isOver,
    leave: () => leaving.abort(),
    /** The runs that the page shows now. */
    runs: () => seen.findLast(({ runs }) => runs !== undefined)?.runs ?? [],
    /** Waits until a run needs approval. Returns the first such run. */
    async waiting() {
      const found = () =>
        (seen.findLast(({ runs }) => runs !== undefined)?.runs ?? []).find(({ waiting }) => waiting !== undefined);
      await expect.poll(found).toBeDefined();
      const run = found();
      if (run === undefined) throw new Error("no run waits for approval");
      return run;
    },
    /**
     * Presses a button on a run. By default, sends the effect and the name to type that the page shows now; `saw`
     * replaces them.
     */
    async press(
      runId: string,
      action: string,
      more: Record<string, string> = {},
      saw: { readonly digest?: string; readonly typed?: string } = {},
    ): Promise<Response> {
      const shown = await fetch(`${origin}/page/runs/${runId}`, { headers });
      const now = detail.safeParse(await shown.json()).data?.run.waiting;
      return fetch(`${origin}/page/runs/${runId}/${action}`, {
        method: "POST",
        headers: { "content-type": "application/json", origin, ...headers, ...more },
        body: JSON.stringify({ ...now, ...saw }),
      });
    },
  };
}

async function follow(stream: Response, seen: z.output<typeof messages>): Promise<void> {
  let pending = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream.body ?? []) {
    const parts = (pending + decoder.decode(chunk, { stream: true })).split("\n\n");
    pending = parts.pop() ?? "";
    for (const part of parts) {
      const data = /^data: (.*)$/m.exec(part)?.[1];
      if (data !== undefined) seen.push(...messages.parse(JSON.parse(data)));
    }
  }
}
