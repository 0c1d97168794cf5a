import * as z from "zod";
import type { RunExecution, RunKind, RunView } from "../../src/runs/kind.ts";
import type { Counts, Standing, StopCause } from "../../src/runs/outcome.ts";

// The smallest possible kind of run: it counts up to a number, one step at a time.

const call = z.object({ tool: z.string(), to: z.number() });
type Call = z.infer<typeof call>;
const entry = z.discriminatedUnion("t", [
  z.object({ t: z.literal("begin"), items: z.number(), at: z.number() }),
  z.object({ t: z.literal("done"), at: z.number() }),
  z.object({ t: z.literal("stop"), cause: z.enum(["finished", "cancelled", "interrupted", "ended"]), at: z.number() }),
]);
type Entry = z.infer<typeof entry>;

class Counted implements RunView<Entry> {
  readonly objects: { readonly index: number }[] = [];
  readonly requests = { planned: 0, sent: 0, resent: 0, waitedMs: 0 };
  stopped: { readonly cause: StopCause } | undefined;
  updatedAt = 0;
  done = 0;

  apply(given: Entry): void {
    this.updatedAt = given.at;
    if (given.t === "begin") this.objects.push(...Array.from({ length: given.items }, (_, index) => ({ index })));
    if (given.t === "done") this.done += 1;
    this.stopped = given.t === "stop" ? { cause: given.cause } : undefined;
  }

  counts(): Counts {
    const pending = this.objects.length - this.done;
    return { succeeded: this.done, pending, alreadyDone: 0, failed: 0, notApplied: 0, unknown: 0 };
  }

  standing(object: number): Standing {
    return object < this.done ? "succeeded" : "pending";
  }

  reason(): undefined {}
  idOf(): undefined {}
}

export function counting(tool: string, step: (run: RunExecution<Call, Entry, Counted>) => unknown = () => {}) {
  const finished: string[] = [];
  const drive = async (run: RunExecution<Call, Entry, Counted>): Promise<void> => {
    const at = 1;
    if (run.state.objects.length === 0) run.record({ t: "begin", items: run.header.call.to, at });
    while (run.state.counts().pending > 0 && (await run.mayLeave())) {
      run.record({ t: "done", at });
      await run.flush();
      await step(run);
    }
    run.record({ t: "stop", cause: run.signal.aborted ? run.cause() : "finished", at });
  };
  const kind: RunKind<Call, Entry, Counted, void> = {
    ...{ name: `${tool} kind`, tools: [tool], call, entry, isPlannedFirst: true },
    line: (given) => [JSON.stringify(given)],
    newState: () => new Counted(),
    async readBack({ entries }) {
      const state = new Counted();
      for await (const one of entries) state.apply(one);
      return { state };
    },
    start: drive,
    resume: drive,
    stop: ({ cause }, at) => ({ t: "stop", cause, at }),
    finish: async ({ header }) => void finished.push(header.runId),
    isMeant: ({ status }) => status === "interrupted",
  };
  return { kind, finished };
}
