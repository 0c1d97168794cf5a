import { type Clock, systemClock } from "../api/clock.ts";
import type { RunForm } from "./run-form.ts";
import type { RunHeader, RunPart, RunStore, RunSummary } from "./store.ts";
import { soleTurn } from "./turn.ts";

interface Kept<Call> {
  header: RunHeader<Call>;
  readonly lines: string[];
  proposed: readonly string[];
  readonly parts: Map<RunPart, Uint8Array[]>;
  started: boolean;
  driven: boolean;
  summary: RunSummary | undefined;
}

/** Keeps runs for as long as the process lives: for tests that have no use for files. */
export function memoryRunStore<Call, Entry>(
  { entry, line }: RunForm<Call, Entry>,
  clock: Clock = systemClock,
): RunStore<Call, Entry> {
  const runs = new Map<string, Kept<Call>>();
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
        summary: undefined,
      });
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
    list: async () => [...runs.keys()].sort().reverse(),
    unfinished: async (fingerprint) =>
      [...runs.keys()]
        .filter((runId) => fingerprint === undefined || runs.get(runId)?.header.fingerprint === fingerprint)
        .sort()
        .reverse(),
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
  };
}

async function* each<T>(list: readonly T[]): AsyncGenerator<T> {
  yield* list;
}
