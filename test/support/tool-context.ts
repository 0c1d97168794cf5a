import { randomBytes } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ManagementApi } from "../../src/api/management.ts";
import { Approvals } from "../../src/changes/approvals.ts";
import { SuiteStore } from "../../src/events/suites/suite-store.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { fileContentsStore, fileSuites, targetingMemory } from "../../src/runs/files/backend.ts";

import { Runs } from "../../src/runs/registry.ts";
import { SaveRuns } from "../../src/saves/save-runs.ts";
import { ulidSource } from "../../src/spec/names-and-contexts.ts";
import type { OptionRecord } from "../../src/spec/records.ts";
import type { ToolContext, ToolServices } from "../../src/tools/define-tool.ts";
import { memoryRunStore } from "./memory-store.ts";

/** An option of the fake service. Sub-options are in the list of their group. */
export interface HeldOption extends OptionRecord {
  readonly contexts?: readonly string[];
  readonly subOptions?: readonly HeldOption[];
}

/** The time that answers of the fake service give as its own. */
const SERVER_TIME = Date.parse("2025-06-01T00:00:00Z");

/** Creates a management API that answers reads from memory, and refuses writes. `reads` lists the requests. */
export function readingApi(options: readonly HeldOption[], onRead: () => void = () => {}) {
  const reads: string[] = [];
  const find = (id: string) =>
    options.flatMap((option) => [option, ...(option.subOptions ?? [])]).find((option) => option._id === id);
  const refuse = async (): Promise<never> => {
    throw new Error("this fake API supports only reads");
  };
  const api: ManagementApi = {
    bulk: refuse,
    getTargeting: async (_id) => ({ _id, name: "Some targeting", optionCount: options.length }),
    async listOptions(_targetingId, { limit = 1000, offset = 0, parent } = {}) {
      reads.push(`list ${parent ?? "top"} ${offset} ${limit}`);
      onRead();
      const held = parent === undefined ? options : (find(parent)?.subOptions ?? []);
      const items = held.slice(offset, offset + limit).map(({ contexts, subOptions, ...record }) => record);
      return { items, total: held.length };
    },
    async getOption(optionId, { limit = 10_000, offset = 0 } = {}) {
      reads.push(`get ${optionId} ${offset} ${limit}`);
      onRead();
      const held = find(optionId);
      if (held === undefined) throw new Error("the fake API has no such option");
      const { contexts = [], subOptions, ...option } = held;
      return { option, contexts: contexts.slice(offset, offset + limit), serverTime: SERVER_TIME };
    },
  };
  return { api, reads };
}

/** Creates what all servers and tools share, except the APIs. */
export function testServices(clock: Clock, waitMs = 1000): ToolServices {
  const sealKey = randomBytes(32);
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-"));
  const newRunId = ulidSource(clock.now, Math.random);
  const world = { store: memoryRunStore(clock), project: "project", environment: "sandbox", newRunId, clock } as const;
  const approvals = new Approvals(world);
  return {
    environment: "sandbox",
    runs: new Runs(world, [approvals.runs]),
    approvals,
    memory: targetingMemory({
      now: clock.now,
      onProblem: (problem) => {
        throw problem;
      },
    }),
    contents: fileContentsStore({
      file: join(folder, "contents.ndjson"),
      onProblem: (problem) => {
        throw problem;
      },
    }),
    suites: new SuiteStore(fileSuites(join(folder, "suites"))),
    readOnly: false,
    confirm: "ask",
    trustViews: false,
    project: { id: "project", name: "project" },
    sealKey: async () => sealKey,
    maxDeletes: 500,
    keep: { days: 30, runs: 500 },
    maxChangePercent: 100,
    apiUrl: "test",
    maxLineBytes: 16 * 1_048_576,
    allowedDirs: [],
    clock,
    waitMs,
    stopping: new AbortController().signal,
  };
}

/** Creates a context for calling tools. Its clock moves only when the test or a wait moves it. */
export function toolContext(management: ManagementApi) {
  let time = 1_700_000_000_000;
  const clock = {
    now: () => time,
    monotonic: () => time,
    sleep: async (ms: number) => {
      time += ms;
    },
  };
  const context: ToolContext = {
    ...testServices(clock),
    management,
    caller: "local",
    arrivedAt: time,
    signal: new AbortController().signal,
    canAsk: () => false,
  };
  return {
    context: { ...context, saves: savesOf(management, context) },
    pass: (ms: number) => {
      time += ms;
    },
  };
}

/** Creates the runs that save lists of the fake service to files. */
function savesOf(api: ManagementApi, { contents, clock }: Pick<ToolContext, "contents" | "clock">): SaveRuns {
  const newRunId = ulidSource(clock.now, Math.random);
  const of = { project: "project", environment: "sandbox", newRunId } as const;
  return new SaveRuns({ ...of, store: memoryRunStore(clock), clock, api, contents });
}

/** Returns a valid ULID that ends in `number`. */
export function ulidOf(number: number): string {
  return `01JABCDEFGHJKMNPQR${String(number).padStart(8, "0")}`;
}
