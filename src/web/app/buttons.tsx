import type { RunAction, RunRow } from "../wire.ts";
import { Guarded } from "./guarded.tsx";

/** What a button of the view does with its run. */
export type Decide = (run: RunRow, action: RunAction) => void;

const WHY = "why";

/** The buttons that decide, named by the act, and Cancel while the run runs. */
export function ActButtons({ run, decide }: { readonly run: RunRow; readonly decide: Decide }) {
  const { actions, disabled = {}, waiting } = run;
  if (actions.length === 0) return null;
  const isStale = waiting?.ended === true || waiting?.stale !== undefined;
  const reasons = isStale ? [] : [...new Set(actions.flatMap((action) => disabled[action] ?? []))];
  const isOff = (action: RunAction): boolean => disabled[action] !== undefined || (action === "approve" && isStale);
  return (
    <div class="row view-foot">
      {reasons.length > 0 && (
        <span id={WHY} class="small quiet">
          {reasons.join(" ")}
        </span>
      )}
      <span class="push" />
      {actions.includes("cancel") && (
        <button type="button" data-action="cancel" disabled={isOff("cancel")} onClick={() => decide(run, "cancel")}>
          Cancel
        </button>
      )}
      {actions.includes("decline") && (
        <Guarded
          action="decline"
          run={run}
          isOff={isOff("decline")}
          describedBy={WHY}
          press={() => decide(run, "decline")}
        >
          Decline
        </Guarded>
      )}
      {actions.includes("approve") && (
        <Guarded
          action="approve"
          run={run}
          isOff={isOff("approve")}
          describedBy={WHY}
          className={waiting?.magnitude?.verb === "deleted" ? "danger" : "primary"}
          press={() => decide(run, "approve")}
        >
          {waiting?.act ?? "Approve"}
        </Guarded>
      )}
    </div>
  );
}
