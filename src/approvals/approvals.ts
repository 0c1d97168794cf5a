import * as z from "zod";
import { endingOf } from "../changes/not-planned.ts";
import type { Decided } from "../changes/rows/entries.ts";
import { asked, decided, waits } from "../changes/state/decision-schema.ts";
import type { RunHeader } from "../runs/backend/store.ts";
import type { Run, RunForm, RunKind, RunsContext } from "../runs/kind.ts";
import { KindRuns } from "../runs/kind-runs.ts";
import type { Asked } from "../runs/outcome.ts";
import { reason } from "../runs/outcome-schema.ts";
import { type ApprovalCall, type ApprovalEntry, type ApprovalFacts, ApprovalState } from "./approval-state.ts";

/** A run that waits for a person's yes, and then does one thing. */
export type ApprovalRun = Run<ApprovalCall, ApprovalState>;

/** Who agreed, and what is done then. */
export interface Granted {
  readonly asked: Asked;
  readonly decided: Decided;
  readonly work: (signal: AbortSignal) => Promise<void>;
}

const at = z.number();

/** How approvals are kept. */
const APPROVAL_FORM: RunForm<ApprovalCall, ApprovalEntry> = {
  name: "approvals",
  tools: ["resume_run", "run_event_tests"],
  call: z.object({
    tool: z.enum(["resume_run", "run_event_tests"]),
    input: z.object({ about: z.string(), saveTo: z.string() }),
  }),
  entry: z.discriminatedUnion("t", [
    z.object({
      t: z.literal("approval"),
      facts: z.object({
        tool: z.string().exactOptional(),
        effect: z.string().exactOptional(),
        waits: waits.exactOptional(),
        asked: asked.exactOptional(),
        decided: decided.exactOptional(),
      }),
      name: z.string(),
      at,
    }),
    z.object({ t: z.literal("agreed"), asked, decided }),
    z.object({ t: z.literal("done"), at }),
    z.object({
      t: z.literal("stop"),
      cause: z.enum(["finished", "cancelled", "interrupted", "ended"]),
      reason: reason.exactOptional(),
      at,
    }),
  ]),
  line: (entry) => [JSON.stringify(entry)],
};

/** Whether a run asks for an approval of what is no change. */
export function isApproval(run: Run): run is ApprovalRun {
  return run.kind === APPROVAL_FORM.name;
}

/** What a person is asked for on the page beside changes. */
export class Approvals {
  readonly runs: KindRuns<ApprovalCall, ApprovalEntry, ApprovalState, Granted>;
  readonly #context: RunsContext;

  constructor(context: RunsContext) {
    this.#context = context;
    this.runs = new KindRuns(approvalKind(context), context);
  }

  /** Keeps an approval for a person's decision; the same approval of the same caller that waits already stays the one. */
  async keep(call: ApprovalCall, caller: string, name: string, facts: ApprovalFacts): Promise<RunHeader<ApprovalCall>> {
    const { store, clock } = this.#context;
    const fingerprint = this.runs.fingerprint(call, caller);
    return store.alone(fingerprint, async () => {
      const last = await store.last(fingerprint);
      const before = last === undefined ? undefined : await this.runs.find(last);
      const isOpen = before?.status() === "needs_confirmation" && (before.state.facts.waits?.until ?? 0) > clock.now();
      const header = isOpen ? before.header : await this.runs.keep(call, caller);
      await this.runs.propose(header.runId, [{ t: "approval", facts, name, at: clock.now() }]);
      return header;
    });
  }
}

function approvalKind({ clock }: RunsContext): RunKind<ApprovalCall, ApprovalEntry, ApprovalState, Granted> {
  return {
    ...APPROVAL_FORM,
    newState: () => new ApprovalState(),
    mayWait: true,
    tidies: false,
    async readBack({ started, entries, proposed }) {
      const state = new ApprovalState();
      for await (const entry of entries) state.apply(entry);
      if (started && state.objects.length > 0) return { state };
      for await (const entry of proposed) state.apply(entry);
      return { state, isProposed: true, unwritten: () => proposed };
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
    // What was agreed to once is not begun a second time.
    async resume(run) {
      run.record({ t: "stop", cause: "ended", at: clock.now() });
      await run.flush();
    },
    stop: (ending, now) => ({ t: "stop", ...ending, at: now }),
    finish: async () => {},
    isOpen: () => false,
    isMeant: () => false,
  };
}
