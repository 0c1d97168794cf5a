import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { WriteCall } from "../../src/changes/call.ts";
import type { Plan } from "../../src/changes/plan/plan.ts";
import { projects } from "../../src/http/access-now.ts";
import { createLog, followWork } from "../../src/observe/log.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { fileBackend } from "../../src/runs/files/backend.ts";
import { readSettings } from "../../src/settings/settings.ts";
import { TooBusyError } from "../../src/web/http-errors.ts";

const made = vi.hoisted(() => ({ storages: 0 }));
vi.mock("node:async_hooks", async (importOriginal) => {
  const hooks = await importOriginal<typeof import("node:async_hooks")>();
  return {
    ...hooks,
    AsyncLocalStorage: class<Stored> extends hooks.AsyncLocalStorage<Stored> {
      constructor() {
        super();
        made.storages += 1;
      }
    },
  };
});

// The documented limits, repeated here by hand.
const MAX_PAIRS = 256;
const FORGOTTEN_AFTER_MS = 15 * 60_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "setInterval", "clearInterval"] });
});
afterEach(() => {
  vi.useRealTimers();
});

function start() {
  const environment = {
    TARGETING_API_URL: "http://127.0.0.1:9",
    TARGETING_MCP_MODE: "live",
    TARGETING_MCP_OWN_KEYS: "on",
    TARGETING_MCP_LOG_LEVEL: "silent",
    TARGETING_MCP_STATE_DIR: mkdtempSync(join(tmpdir(), "targeting-mcp-")),
  };
  const input = {
    environment,
    flags: new Map<string, string>(),
    home: tmpdir(),
    platform: process.platform,
    overHttp: true,
  } as const;
  const settings = readSettings(input);
  const all = projects(input, settings, {
    stopping: new AbortController().signal,
    backend: fileBackend({ ...settings, clock: systemClock }),
    sealKey: async () => new Uint8Array(32),
    work: followWork(),
  });
  onTestFinished(() => all.close());
  return { all, of: (n: number) => all.of({ targetingApiKey: `key-${n}` }) };
}

test("one storage follows the work of a process, however many keys come", () => {
  const before = made.storages;
  const { of } = start();
  for (let n = 0; n < 2 * MAX_PAIRS; n += 1) of(n);
  expect(made.storages - before).toBe(1);
});

test("logs that share it know the facts of the work that goes on, each with its own redaction", () => {
  const lines: string[] = [];
  const work = followWork();
  const log = (secret: string) =>
    createLog({
      level: "info",
      write: (line) => lines.push(line),
      redact: (line) => line.replaceAll(secret, "***"),
      now: () => 0,
      work,
    });
  log("one").during({ requestId: "r1" }, () => log("two").info("two", { key: "two" }));
  expect(lines.map((line) => JSON.parse(line))).toEqual([expect.objectContaining({ requestId: "r1", key: "***" })]);
});

describe("keys of callers", () => {
  test("are kept while they are used, and forgotten when nobody uses them for 15 minutes", () => {
    const { of } = start();
    const [used, unused] = [of(1), of(2)];
    for (let minute = 0; minute < 20; minute += 1) {
      vi.advanceTimersByTime(60_000);
      expect(of(1)).toBe(used);
    }
    expect(used.forgotten?.aborted).toBe(false);
    expect(unused.forgotten?.aborted).toBe(true);
    expect(of(2)).not.toBe(unused);
  });

  test("are 256 pairs at most, and the one unused for longest goes first", () => {
    const { of } = start();
    const [first, second] = [of(0), of(1)];
    for (let n = 2; n < MAX_PAIRS; n += 1) of(n);
    expect(of(0)).toBe(first);
    of(MAX_PAIRS);
    expect(second.forgotten?.aborted).toBe(true);
    expect(of(0)).toBe(first);
  });

  test("stay while a request needs them", () => {
    const { of } = start();
    const busy = Array.from({ length: MAX_PAIRS }, (_, n) => of(n).use());
    const [first] = [of(0)];
    expect(() => of(MAX_PAIRS)).toThrow(TooBusyError);
    vi.advanceTimersByTime(2 * FORGOTTEN_AFTER_MS);
    expect(of(0)).toBe(first);
    busy[7]?.();
    // Ending the same use twice counts only once.
    busy[7]?.();
    of(MAX_PAIRS).use();
    expect(() => of(MAX_PAIRS + 1)).toThrow(TooBusyError);
  });

  test("stay while a run needs them", async () => {
    const { of } = start();
    const { services, forgotten } = of(0);
    const { changes } = services;
    if (changes === undefined) throw new Error("there are no runs");
    const call: WriteCall = { tool: "create_targetings", input: { items: [{ name: "Spring" }] } };
    const header = await changes.keep(call, "someone", undefined, { unplanned: true });
    let refuse = (_reason: Error): void => {};
    const plan = new Promise<Plan>((_resolve, reject) => {
      refuse = reject;
    });
    const run = await changes.prepare(header, { plan, stop: () => {} }, (made, start) => start(made));
    for (let n = 1; n < 2 * MAX_PAIRS; n += 1) of(n);
    vi.advanceTimersByTime(2 * FORGOTTEN_AFTER_MS);
    expect(forgotten?.aborted).toBe(false);
    expect(of(0).services.changes).toBe(changes);
    refuse(new Error("the end of the test"));
    await run.rest;
    vi.advanceTimersByTime(2 * FORGOTTEN_AFTER_MS);
    expect(forgotten?.aborted).toBe(true);
  });
});
