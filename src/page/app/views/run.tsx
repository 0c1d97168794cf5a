import { useLayoutEffect } from "preact/hooks";
import { PATHS } from "../../paths.ts";
import type { FailureRow, RunAction, RunCounts, RunDetail, RunRow } from "../../wire.ts";
import { number } from "../announce.ts";
import { isAtRest, noteMoves } from "../moves.ts";
import { save } from "../requests.ts";
import { isConnected, outcome } from "../state.ts";
import { Sentences, Table, Text } from "./parts.tsx";
import { Plan } from "./plan.tsx";

/** The buttons of a run, in their order. */
const ACTIONS = {
  approve: "Approve",
  decline: "Decline",
  cancel: "Cancel",
  undo: "Undo",
  resume: "Resume run",
} as const satisfies Record<RunAction, string>;

/** The states of a run as people read them. */
export const STATUSES = {
  succeeded: "succeeded",
  partial: "partly done",
  failed: "failed",
  unknown: "unknown",
  running: "running",
  interrupted: "interrupted",
  cancelled: "cancelled",
  planned: "planned",
  needs_confirmation: "waits for a decision",
} as const satisfies Record<RunRow["status"], string>;

const OUTCOMES = {
  succeeded: "Succeeded",
  alreadyDone: "Already done",
  skipped: "Skipped",
  failed: "Failed",
  notApplied: "Not applied",
  unknown: "Unknown",
  pending: "Pending",
} as const satisfies Partial<Record<keyof RunCounts, string>>;

const FILES = {
  sheet: "Download the sheet with results",
  results: "Results",
  rejects: "Rejected rows",
  removed: "What was taken away",
  plan: "Plan",
} as const;

/** What the page shows of many. */
const MOST_FAILURES = 100;

/** What a button does with its run. */
export type Act = (run: RunRow, action: RunAction) => void;

/** The status of a run. */
export function Status({ of }: { readonly of: RunRow["status"] }) {
  return <span class={`state ${of}`}>{STATUSES[of]}</span>;
}

/** How much of a run is done: what failed is not. */
export function Progress({ counts, label }: { readonly counts: RunCounts; readonly label: string }) {
  const { items, succeeded, alreadyDone, skipped = 0, failed, unknown } = counts;
  const done = succeeded + alreadyDone + skipped;
  return (
    <>
      <progress max={Math.max(1, items)} value={done} aria-label={label} />{" "}
      <small>
        {number(done)} of {number(items)}
        {failed > 0 && `, ${number(failed)} failed`}
        {unknown > 0 && `, ${number(unknown)} unknown`}
      </small>
    </>
  );
}

/** The ID of the text that says why a run cannot be approved. */
export const whyOf = (runId: string): string => `why-${runId}`;

const NOT_CONNECTED = "This page has lost its server, so that nothing can be decided here.";
/** What is said where a button is pressed that came or moved a moment ago. */
const MOVED = "The page changed a moment ago, so nothing was decided. Look again, then press the button.";

/**
 * A run's buttons; a sentence beside a disabled one says why, unless the effect of the run does. Decisions are ignored
 * for a second after anything moved.
 */
export function Buttons({ run, act }: { readonly run: RunRow; readonly act: Act }) {
  const names = Object.keys(ACTIONS).filter((name): name is RunAction => Object.hasOwn(ACTIONS, name));
  const { actions, disabled = {}, runId, waiting } = run;
  const isTold = waiting?.ended === true || waiting?.stale !== undefined;
  const isOff = (action: RunAction): boolean =>
    !isConnected.value || disabled[action] !== undefined || (action === "approve" && isTold);
  const known = isTold ? [] : [...new Set(actions.flatMap((action) => disabled[action] ?? []))];
  const reasons = isConnected.value || actions.length === 0 ? known : [NOT_CONNECTED];
  useLayoutEffect(noteMoves);
  // Once they are gone: buttons that come back at the same place are new.
  useLayoutEffect(() => () => queueMicrotask(noteMoves), []);
  const press = (action: RunAction): void => {
    // What has moved since the last frame counts as well.
    noteMoves();
    if (isAtRest.peek() || !DECIDES.has(action)) act(run, action);
    else outcome.value = MOVED;
  };
  return (
    <p class="bar">
      {names
        .filter((action) => actions.includes(action))
        .map((action) => (
          <button
            key={action}
            type="button"
            class={action}
            data-action={action}
            {...(DECIDES.has(action) && { "data-decides": `${runId} ${action}`, "aria-disabled": !isAtRest.value })}
            disabled={isOff(action)}
            {...(isOff(action) && { "aria-describedby": whyOf(runId) })}
            onClick={() => press(action)}
          >
            {ACTIONS[action]}
          </button>
        ))}
      {reasons.length > 0 && <span id={whyOf(runId)}>{reasons.join(" ")}</span>}
    </p>
  );
}

const DECIDES: ReadonlySet<RunAction> = new Set(["approve", "decline"]);

/** Everything about one run but its heading and its buttons. */
export function RunBody({ detail }: { readonly detail: RunDetail }) {
  const { run, failures, failuresOmitted = 0, plan, downloads, nextSteps } = detail;
  const { counts, requests } = run;
  const isBegun = run.status !== "planned" && run.status !== "needs_confirmation";
  const outcomes = Object.keys(OUTCOMES).filter(
    (name): name is keyof typeof OUTCOMES =>
      Object.hasOwn(OUTCOMES, name) && (name !== "skipped" || counts.skipped !== undefined),
  );
  const hidden = failuresOmitted + Math.max(0, failures.length - MOST_FAILURES);
  return (
    <>
      <p>
        <Status of={run.status} />{" "}
        {isBegun && counts.items > 0 && <Progress counts={counts} label="Progress of the run" />}
      </p>
      {run.standsStill !== undefined && <p class="warning">{run.standsStill}</p>}
      {run.decided !== undefined && (
        <p>
          <Text of={run.decided} />
        </p>
      )}
      {isBegun && counts.items > 0 && (
        <Table caption="Counts" heads={outcomes.map((name) => OUTCOMES[name])} className="counts">
          <tr>
            {outcomes.map((name) => (
              <td key={name} class={counts[name] === 0 ? "none" : name}>
                {number(counts[name] ?? 0)}
              </td>
            ))}
          </tr>
        </Table>
      )}
      {isBegun && requests !== undefined && <p>{requestWords(requests)}</p>}
      {failures.length > 0 && <Failures of={failures.slice(0, MOST_FAILURES)} />}
      {hidden > 0 && <p>and {number(hidden)} more kinds of failures</p>}
      <Sentences title="What to do next" of={nextSteps} />
      {downloads.length > 0 && (
        <p class="bar">
          Downloads:
          {downloads.map((file) => (
            <Download key={file} path={`${PATHS.runs}/${encodeURIComponent(run.runId)}/${file}`} name={FILES[file]} />
          ))}
        </p>
      )}
      {plan !== undefined && <Plan plan={plan} />}
    </>
  );
}

/** How many requests were sent, without what says nothing. */
function requestWords({ sent, resent, waitedMs }: NonNullable<RunRow["requests"]>): string {
  const parts = [
    `${number(sent)} ${sent === 1 ? "request" : "requests"} sent`,
    resent > 0 && `${number(resent)} of them ${resent === 1 ? "a retry" : "retries"}`,
    waitedMs >= 1000 && `${number(Math.round(waitedMs / 1000))} s waited for the service`,
  ];
  return `${parts.filter((part) => part !== false).join(", ")}.`;
}

/** A file, which the browser cannot fetch by itself: only the page has the session's token. */
function Download({ path, name }: { readonly path: string; readonly name: string }) {
  const download = (event: Event): void => {
    event.preventDefault();
    void save(path);
  };
  return (
    <a href={path} onClick={download}>
      {name}
    </a>
  );
}

function Failures({ of }: { readonly of: readonly FailureRow[] }) {
  return (
    <Table caption="Failures" heads={["How many", "Which", "What happened", "What to do"]}>
      {of.map(({ count, places, message, remedy, outcome }, place) => (
        <tr key={place}>
          <th scope="row">
            {number(count)} {OUTCOMES[outcome].toLowerCase()}
          </th>
          <td>
            <Text of={places} />
          </td>
          <td>
            <Text of={message} most={1000} />
          </td>
          <td>
            <Text of={remedy} most={1000} />
          </td>
        </tr>
      ))}
    </Table>
  );
}
