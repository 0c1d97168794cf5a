import * as z from "zod";
import type { Fixed } from "../platform/json.ts";
import {
  type Run,
  type RunForm,
  type RunKind,
  type RunsContext,
  type RunView,
  SingleObjectState,
} from "../runs/kind.ts";
import { KindRuns, type Requested } from "../runs/kind-runs.ts";
import { asked, ownReason, type Reason, stopEntry } from "../runs/outcome.ts";
import { isUnstarted, type RunHeader } from "../runs/store.ts";
import { endingOf } from "./change-kinds.ts";
import { decided, waits } from "./rows/entries.ts";

/** Work other than changes that needs approval: resuming a run, or sending tests to a live endpoint. */
const approvalCall = z.object({
  tool: z.enum(["resume_run", "run_event_tests"]),
  /**
   * What is approved. `about`: the ID of the run to resume, or of the test suite. `saveTo`: the file for the test
   * report; empty if there is none.
   */
  input: z.object({ about: z.string(), saveTo: z.string() }),
});
export type ApprovalCall = Fixed<z.infer<typeof approvalCall>>;

const facts = z.object({
  tool: z.string().exactOptional(),
  effect: z.string().exactOptional(),
  waits: waits.exactOptional(),
  asked: asked.exactOptional(),
  decided: decided.exactOptional(),
});
type ApprovalFacts = Fixed<z.infer<typeof facts>>;

const at = z.number();

const approvalEntry = z.discriminatedUnion("t", [
  z.object({ t: z.literal("approval"), facts, name: z.string(), at }),
  z.object({ t: z.literal("agreed"), asked, decided }),
  z.object({ t: z.literal("done"), at }),
  stopEntry,
]);
type ApprovalEntry = Fixed<z.infer<typeof approvalEntry>>;

class ApprovalState extends SingleObjectState implements RunView<ApprovalEntry> {
  facts: ApprovalFacts = {};

  apply(entry: ApprovalEntry): void {
    this.updatedAt = entry.t === "agreed" ? entry.decided.at : entry.at;
    switch (entry.t) {
      case "approval":
        this.objects = [{ index: 0, name: entry.name }];
        this.facts = { ...this.facts, ...entry.facts };
        return;
      case "agreed":
        this.facts = { ...this.facts, asked: entry.asked, decided: entry.decided };
        return;
      case "done":
        this.outcome = "succeeded";
        return;
      case "stop":
        this.stopped = { cause: entry.cause, reason: entry.reason };
        if (this.outcome === "pending") this.outcome = entry.cause === "ended" ? "failed" : "notApplied";
        return;
    }
  }

  reason(): Reason | undefined {
    if (this.outcome !== "failed" && this.outcome !== "notApplied") return undefined;
    return this.stopped?.reason ?? ownReason("INTERRUPTED");
  }
}

export type ApprovalRun = Run<ApprovalCall, ApprovalState>;

export interface Granted extends Omit<Extract<ApprovalEntry, { readonly t: "agreed" }>, "t"> {
  readonly work: (signal: AbortSignal) => Promise<void>;
}

const APPROVAL_FORM: RunForm<ApprovalCall, ApprovalEntry> = {
  name: "approvals",
  tools: ["resume_run", "run_event_tests"],
  call: approvalCall,
  entry: approvalEntry,
  line: (entry) => [JSON.stringify(entry)],
};

export function isApproval(run: Run): run is ApprovalRun {
  return run.kind === APPROVAL_FORM.name;
}

export class Approvals {
  readonly runs: KindRuns<ApprovalCall, ApprovalEntry, ApprovalState, Granted>;
  readonly #context: RunsContext;

  constructor(context: RunsContext) {
    this.#context = context;
    this.runs = new KindRuns(approvalKind(context), context);
  }

  /**
   * Stores an approval request as a run, and returns the header of the run. If an identical request of the same caller
   * already waits, its run is used again.
   */
  async keep(
    call: ApprovalCall,
    caller: string,
    name: string,
    facts: ApprovalFacts,
    requested?: Requested,
  ): Promise<RunHeader<ApprovalCall>> {
    const { store, clock } = this.#context;
    const fingerprint = this.runs.fingerprint(call, caller);
    return store.withCallLock(fingerprint, async () => {
      const [last] = await store.list({ lastOf: fingerprint });
      const before = last === undefined ? undefined : await this.runs.find(last);
      const isOpen = before?.status() === "needs_confirmation" && (before.state.facts.waits?.until ?? 0) > clock.now();
      const header = isOpen ? before.header : await this.runs.keep(call, caller, undefined, requested);
      await this.runs.propose(header.runId, [{ t: "approval", facts, name, at: clock.now() }], "waiting");
      return header;
    });
  }
}

function approvalKind({ clock }: RunsContext): RunKind<ApprovalCall, ApprovalEntry, ApprovalState, Granted> {
  return {
    ...APPROVAL_FORM,
    newState: () => new ApprovalState(),
    isPlannedFirst: true,
    async readBack({ record, entries, proposed }) {
      const state = new ApprovalState();
      for await (const entry of entries) state.apply(entry);
      if (!isUnstarted(record.status) && state.objects.length > 0) return { state };
      for await (const entry of proposed) state.apply(entry);
      return { state, unwritten: () => proposed };
    },
    async start(run, { asked, decided, work }) {
      const { name = "" } = run.meanwhile?.objects[0] ?? {};
      run.record({ t: "approval", facts: run.meanwhile?.facts ?? {}, name, at: clock.now() });
      run.record({ t: "agreed", asked, decided });
      await run.flush();
      try {
        await work(run.signal);
        run.record({ t: "done", at: clock.now() });
        run.record({ t: "stop", cause: "finished", at: clock.now() });
      } catch (thrown) {
        const ending = run.signal.aborted ? { cause: run.cause() } : endingOf(thrown);
        if (ending === undefined) throw thrown;
        run.record({ t: "stop", ...ending, at: clock.now() });
      }
      await run.flush();
    },
    // An approved action that was interrupted cannot be resumed. It needs a new approval.
    async resume(run) {
      run.record({ t: "stop", cause: "ended", at: clock.now() });
      await run.flush();
    },
    stop: (ending, now) => ({ t: "stop", ...ending, at: now }),
    isOpen: () => false,
  };
}
