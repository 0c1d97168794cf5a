import { StoreUnavailableError } from "../backend/store.ts";
import type { Run, ToolCall } from "../kind.ts";
import type { ReportedState } from "../report.ts";

/** What following a run needs, once another process has taken it over. */
interface Beyond<Call extends ToolCall, State extends ReportedState> {
  /** The run as it is kept. */
  readonly find: () => Promise<Run<Call, State> | undefined>;
  /** Called when this process drives it no more. */
  readonly ended: () => void;
}

/** A run that this process drives, followed from its journal once another process has taken it over. */
export function followedBeyond<Call extends ToolCall, State extends ReportedState>(
  run: Run<Call, State> & { readonly isTakenOver: () => boolean },
  { find, ended }: Beyond<Call, State>,
): Run<Call, State> {
  let other: Run<Call, State> | undefined;
  let isLookedFor = true;
  const rest = run.rest.then(async () => {
    ended();
    if (!run.isTakenOver()) return;
    // While the store is away, the run counts as running, too.
    let isAway = false;
    other = await find().catch((thrown: unknown) => {
      isAway = thrown instanceof StoreUnavailableError;
      return undefined;
    });
    isLookedFor = isAway;
    await other?.rest;
  });
  return {
    ...run,
    get state() {
      return other?.state ?? run.state;
    },
    // Until the journal of the other process was read, the run counts as running.
    status: () => (run.isTakenOver() && isLookedFor ? "running" : (other ?? run).status()),
    rest,
  };
}
