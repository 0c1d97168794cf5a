import { type Clock, systemClock } from "../../src/platform/clock.ts";
import { processLock } from "../../src/runs/file/project-lock.ts";
import type { RunForm } from "../../src/runs/run-form.ts";
import type { RunHeader, RunPart, RunStore, RunSummary, Which } from "../../src/runs/store.ts";
import { soleTurn } from "../../src/runs/turn.ts";

interface Kept<Call> {
  header: RunHeader<Call>;
  readonly lines: string[];
  proposed: readonly string[];
  readonly parts: Map<RunPart, Uint8Array[]>;
  started: boolean;
  driven: boolean;
  stopAsked: readonly string[];
  summary: RunSummary | undefined;
}

/** Keeps runs for as long as the process lives: for tests that have no use for files. */
export function memoryRunStore<Call, Entry>(
  { entry, line }: RunForm<Call, Entry>,
  clock: Clock = systemClock,
): RunStore<Call, Entry> {
  const runs = new Map<string, Kept<Call>>();
  const turns = processLock(clock);
  const kept = (runId: string): Kept<Call> => {
    const run = runs.get(runId);
    if (run === undefined) throw new RangeError(`there is no run ${runId}`);
    return run;
  };
  const textOf = (given: Entry): string => Buffer.concat(line(given).map((piece) => Buffer.from(piece))).toString();
  const entriesOf = (lines: readonly string[]) => each(lines.map((text) => entry.parse(JSON.parse(text))));
  return {
    create: async (header) => {
      runs.set(header.runId, {
        header,
        lines: [],
        proposed: [],
        parts: new Map(),
        started: false,
        driven: false,
        stopAsked: [],
        summary: undefined,
      });
    },
    reopen: async ({ runId }) => {
      kept(runId).summary = undefined;
    },
    keepCall: async (runId, call) => {
      const run = kept(runId);
      run.header = { ...run.header, call };
    },
    propose: async (runId, entries) => {
      kept(runId).proposed = [...entries].map(textOf);
    },
    start: async (runId) => {
      const run = kept(runId);
      const first = !run.started;
      run.started = true;
      return first;
    },
    journal: async (runId) => {
      const run = kept(runId);
      return {
        append: (given) => void run.lines.push(textOf(given)),
        flush: async () => {},
        intend: (turn) => turn.renew(),
        write: () => {},
        confess: async (given) => void run.lines.push(textOf(given)),
        close: async () => {},
      };
    },
    keep: async (runId, part, pieces) => {
      const all: Uint8Array[] = [];
      for await (const piece of pieces) all.push(Buffer.from(piece));
      kept(runId).parts.set(part, all);
    },
    part: (runId, part) => () => each(runs.get(runId)?.parts.get(part) ?? []),
    read: async (runId) => {
      const run = runs.get(runId);
      return (
        run && {
          header: run.header,
          started: run.started,
          proposed: entriesOf(run.proposed),
          entries: entriesOf(run.lines),
        }
      );
    },
    revision: async () => undefined,
    list: async (caller) => newestFirst(runs, ({ header }) => header.caller === caller),
    unfinished: async (which) => newestFirst(runs, ({ header }) => isAskedFor(header, which)),
    last: async (fingerprint) => newestFirst(runs, ({ header }) => header.fingerprint === fingerprint)[0],
    alone: (fingerprint, work) => turns.hold(fingerprint, work, new AbortController().signal),
    summarise: async (runId, summary) => {
      kept(runId).summary = summary;
    },
    summary: async (runId) => runs.get(runId)?.summary,
    lease: async (runId) => {
      const run = kept(runId);
      if (run.driven) return undefined;
      run.driven = true;
      return {
        ...soleTurn(clock),
        isTakenOver: false,
        settled: async () => {},
        check: async () => {},
        release: async () => {
          run.driven = false;
        },
      };
    },
    isDriven: async (runId) => runs.get(runId)?.driven ?? false,
    askToStop: async (runId) => {
      kept(runId).stopAsked = ["asked"];
    },
    stopAsked: async (runId) => runs.get(runId)?.stopAsked ?? [],
    forgetStop: async (runId) => {
      kept(runId).stopAsked = [];
    },
    tidy: async () => {},
  };
}

function newestFirst<Call>(runs: ReadonlyMap<string, Kept<Call>>, wanted: (run: Kept<Call>) => boolean): string[] {
  return [...runs]
    .flatMap(([runId, run]) => (wanted(run) ? runId : []))
    .sort()
    .reverse();
}

function isAskedFor(header: RunHeader<unknown>, which: Which | undefined): boolean {
  if (which === undefined) return true;
  if ("fingerprint" in which) return header.fingerprint === which.fingerprint;
  const { caller, project, environment } = which;
  return header.caller === caller && header.project === project && header.environment === environment;
}

async function* each<T>(list: readonly T[]): AsyncGenerator<T> {
  yield* list;
}
