import { randomBytes } from "node:crypto";
import { type Clock, systemClock } from "../../src/platform/clock.ts";
import type { Backend, ContentsStore, SuiteTexts, TargetingMemory } from "../../src/runs/backend.ts";
import { targetingMemory } from "../../src/runs/files/backend.ts";
import { processLock } from "../../src/runs/files/lease.ts";
import {
  CREATED,
  callerName,
  type Line,
  type RunHeader,
  type RunPart,
  type RunRecord,
  type RunStore,
  type Unfinished,
} from "../../src/runs/store.ts";
import { type Lease, permitWithoutLease } from "../../src/runs/turn.ts";

interface Kept {
  readonly header: RunHeader;
  readonly lines: string[];
  readonly parts: Map<RunPart, Uint8Array[]>;
  record: RunRecord;
  driven: boolean;
  stopAsked: readonly string[];
}

/** A backend that keeps everything in memory. */
export function memoryBackend(clock: Clock = systemClock): Backend {
  const key = randomBytes(32);
  const names = new Map<string, TargetingMemory>();
  const contents = new Map<string, ContentsStore>();
  const ended = new Set<string>();
  const rights = new Map<string, string>();
  return {
    runs: memoryRunStore(clock),
    lock: processLock(clock),
    suites: memorySuites(),
    names(project, { onProblem }) {
      const known = names.get(project) ?? targetingMemory({ now: () => clock.now(), onProblem });
      names.set(project, known);
      return known;
    },
    contents(project) {
      const known = contents.get(project) ?? memoryContents();
      contents.set(project, known);
      return known;
    },
    audit: async () => {},
    callerRights: {
      keep: async (caller, text) => void rights.set(caller, text),
      read: async (caller) => rights.get(caller),
    },
    endedSessions: {
      add: async (id) => void ended.add(id),
      has: async (id) => ended.has(id),
    },
    sealKey: async () => key,
    close: async () => {},
  };
}

function memoryContents(): ContentsStore {
  const kept = new Map<string, readonly string[]>();
  const options = new Map<string, string>();
  return {
    refresh: async () => {},
    get: async (option) =>
      options.get(option.optionId) === JSON.stringify(option) ? kept.get(option.optionId) : undefined,
    async put(option, contexts) {
      options.set(option.optionId, JSON.stringify(option));
      kept.set(option.optionId, contexts);
    },
  };
}

function memorySuites(): SuiteTexts {
  const suites = new Map<string, Map<string, string>>();
  const yeses = new Map<string, string>();
  return {
    put: async (caller, id, text) => {
      const mine = suites.get(caller) ?? new Map<string, string>();
      mine.delete(id);
      suites.set(caller, mine.set(id, text));
    },
    get: async (caller, id) => suites.get(caller)?.get(id),
    list: async (caller) => [...(suites.get(caller)?.values() ?? [])].reverse(),
    storedBytes: async (name) =>
      [...suites].flatMap(([caller, texts]) => (callerName(caller) === name ? [...texts.values()] : [])).join("")
        .length,
    claim: async (yes) => {
      const isFirst = !yeses.has(yes);
      if (isFirst) yeses.set(yes, "");
      return isFirst;
    },
    settle: async (yes, text) => void yeses.set(yes, text),
    settled: async (yes) => yeses.get(yes),
  };
}

/** Keeps runs in memory, for tests that do not need files. */
export function memoryRunStore(clock: Clock = systemClock): RunStore {
  const runs = new Map<string, Kept>();
  const turns = processLock(clock);
  const kept = (runId: string): Kept => {
    const run = runs.get(runId);
    if (run === undefined) throw new RangeError(`there is no run ${runId}`);
    return run;
  };
  return {
    create: async (header) => {
      // The call is copied, because reading it from a file would also return a copy.
      runs.set(header.runId, {
        header: { ...header, call: JSON.parse(JSON.stringify(header.call)) },
        ...{ lines: [], parts: new Map(), record: CREATED, driven: false },
        stopAsked: [],
      });
    },
    update: async (runId, record) => {
      const run = kept(runId);
      if (run.record.version !== record.version - 1) return false;
      run.record = record;
      return true;
    },
    record: async (runId) => runs.get(runId)?.record,
    sizes: {
      of: async (runIds) => {
        const sizes = runIds.flatMap((runId) => {
          const { header, parts } = runs.get(runId) ?? {};
          if (header === undefined) return [];
          const counted = [...(parts?.get("proposed") ?? []), ...(parts?.get("input") ?? [])];
          return [JSON.stringify(header), ...counted].map((one) => one.length);
        });
        return sizes.reduce((sum, bytes) => sum + bytes, 0);
      },
    },
    discard: async (runId) => void runs.delete(runId),
    journal: async (runId) => {
      const run = kept(runId);
      return {
        append: (line) => void run.lines.push(textOf(line)),
        flush: async () => {},
        intend: (turn) => turn.renew(),
        write: async () => {},
        appendLate: async (line) => void run.lines.push(textOf(line)),
        close: async () => {},
      };
    },
    parts: {
      keep: async (runId, part, pieces) => {
        const all: Uint8Array[] = [];
        for await (const piece of pieces) all.push(Buffer.from(piece));
        kept(runId).parts.set(part, all);
      },
      read: (runId, part) => () => each(runs.get(runId)?.parts.get(part) ?? []),
    },
    read: async (runId) => {
      const run = runs.get(runId);
      if (run === undefined) return undefined;
      const { header, record } = run;
      const proposed = Buffer.concat(run.parts.get("proposed") ?? []).toString();
      return { header, record, proposed: again(proposed.split("\n").slice(0, -1)), entries: again(run.lines) };
    },
    revision: async () => undefined,
    list: async (query) => {
      if ("caller" in query) {
        const { caller, before = "~" } = query;
        return newestFirst(runs, ({ header }) => header.caller === caller && header.runId < before);
      }
      if ("unfinished" in query) return newestFirst(runs, ({ header }) => isAskedFor(header, query.unfinished));
      return newestFirst(runs, ({ header }) => header.fingerprint === query.lastOf).slice(0, 1);
    },
    withCallLock: (fingerprint, work) => turns.hold(fingerprint, work, new AbortController().signal),
    lease: async (runId) => {
      const run = kept(runId);
      if (run.driven) return undefined;
      run.driven = true;
      return leaseOf(clock, () => {
        run.driven = false;
      });
    },
    isDriven: async (runId) => runs.get(runId)?.driven === true,
    stops: {
      ask: async (runId) => {
        kept(runId).stopAsked = [...kept(runId).stopAsked, `asked ${kept(runId).stopAsked.length}`];
      },
      asked: async (runId) => runs.get(runId)?.stopAsked ?? [],
      forget: async (runId, asked) => {
        kept(runId).stopAsked = kept(runId).stopAsked.filter((one) => !asked.includes(one));
      },
    },
    retention: {
      noteService: () => {},
      doubt: async () => undefined,
      peek: async () => undefined,
      onDoubt: () => {},
      tidy: async () => {},
    },
  };
}

function leaseOf(clock: Clock, released: () => void): Lease {
  return {
    ...permitWithoutLease(clock),
    isTakenOver: false,
    settled: async () => {},
    check: async () => {},
    stillHeld: async () => true,
    release: async () => released(),
  };
}

function textOf(line: Line): string {
  return Buffer.concat(line.map((piece) => Buffer.from(piece))).toString();
}

function newestFirst(runs: ReadonlyMap<string, Kept>, wanted: (run: Kept) => boolean): string[] {
  return [...runs]
    .flatMap(([runId, run]) => (wanted(run) ? runId : []))
    .sort()
    .reverse();
}

function isAskedFor(header: RunHeader, which: Unfinished): boolean {
  if (which === "all") return true;
  if ("callerName" in which) return callerName(header.caller) === which.callerName;
  if ("fingerprint" in which) return header.fingerprint === which.fingerprint;
  const { caller, project, environment } = which;
  return header.caller === caller && header.project === project && header.environment === environment;
}

function again(lines: readonly string[]): AsyncIterable<string> {
  return { [Symbol.asyncIterator]: () => each([...lines]) };
}

async function* each<T>(list: readonly T[]): AsyncGenerator<T> {
  yield* list;
}
