import { PATHS } from "../../paths.ts";
import type { FailureRow, RunAction, RunCounts, RunDetail, RunRow, Waiting } from "../../wire.ts";
import { number } from "../announce.ts";
import { Sentences, Table, Text, Time } from "./parts.tsx";
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
  failed: "Failed",
  unattempted: "Not applied",
  unknown: "Unknown",
  pending: "Pending",
} as const satisfies Partial<Record<keyof RunCounts, string>>;

const FILES = { results: "Results", rejects: "Rejected rows", removed: "What was taken away", plan: "Plan" } as const;

/** What the page shows of many. */
const MOST_FAILURES = 100;
const MOST_OBJECTS = 100;

/** What a button does with its run. */
export type Act = (run: RunRow, action: RunAction) => void;

/** The status of a run. */
export function Status({ of }: { readonly of: RunRow["status"] }) {
  return <span class={`state ${of}`}>{STATUSES[of]}</span>;
}

/** How far a run is. */
export function Progress({ counts, label }: { readonly counts: RunCounts; readonly label: string }) {
  const done = counts.items - counts.pending - counts.unattempted;
  return (
    <>
      <progress max={Math.max(1, counts.items)} value={done} aria-label={label} />{" "}
      <small>
        {number(done)} of {number(counts.items)}
      </small>
    </>
  );
}

/** The ID of the text that says why a run cannot be approved. */
const whyOf = (runId: string): string => `why-${runId}`;

/** A run's buttons; a sentence beside a disabled one says why, unless the effect of the run does. */
export function Buttons({ run, act }: { readonly run: RunRow; readonly act: Act }) {
  const names = Object.keys(ACTIONS).filter((name): name is RunAction => Object.hasOwn(ACTIONS, name));
  const { actions, disabled = {}, runId, waiting } = run;
  const isTold = waiting?.ended === true || waiting?.stale !== undefined;
  const isOff = (action: RunAction): boolean => disabled[action] !== undefined || (action === "approve" && isTold);
  const reasons = isTold ? [] : [...new Set(actions.flatMap((action) => disabled[action] ?? []))];
  return (
    <p class="bar">
      {names
        .filter((action) => actions.includes(action))
        .map((action) => (
          <button
            key={action}
            type="button"
            class={action}
            disabled={isOff(action)}
            {...(isOff(action) && { "aria-describedby": whyOf(runId) })}
            onClick={() => act(run, action)}
          >
            {ACTIONS[action]}
          </button>
        ))}
      {reasons.length > 0 && <span id={whyOf(runId)}>{reasons.join(" ")}</span>}
    </p>
  );
}

interface EffectProps {
  readonly runId: string;
  readonly waiting: Waiting;
  /** The most objects of each kind that are named. */
  readonly most?: number;
}

/** What a person has to know to decide on a run: the exact effect, what is lost, and what can be undone. */
export function Effect({ runId, waiting, most = MOST_OBJECTS }: EffectProps) {
  const isStale = waiting.stale !== undefined;
  return (
    <>
      {waiting.ended && (
        <p class="warning" {...(!isStale && { id: whyOf(runId) })}>
          The server that asked has ended: ask the agent again
        </p>
      )}
      {waiting.stale !== undefined && (
        <div class="warning" id={whyOf(runId)}>
          <p>Changed since it was planned</p>
          <Sentences of={waiting.stale} />
        </div>
      )}
      <p class="effect">
        <Text of={waiting.effect} most={4000} />
      </p>
      {waiting.parts.map(({ title, count, objects }) => (
        <details key={title} open>
          <summary>
            {title} <small>{number(count)}</small>
          </summary>
          <ul>
            {objects.slice(0, most).map(({ name, says }, place) => (
              <li key={place}>
                <Text of={name} />
                {says !== undefined && (
                  <small>
                    {" "}
                    <Text of={says} />
                  </small>
                )}
              </li>
            ))}
            {count > Math.min(objects.length, most) && (
              <li>and {number(count - Math.min(objects.length, most))} more</li>
            )}
          </ul>
        </details>
      ))}
      <Sentences title="What is lost" of={waiting.lost} />
      <Sentences title="What can be undone" of={waiting.undoable} />
      <p>
        It waits until <Time at={waiting.expiresAt} />.
      </p>
    </>
  );
}

/** Everything about one run but its heading and its buttons. */
export function RunBody({ detail }: { readonly detail: RunDetail }) {
  const { run, failures, failuresOmitted = 0, plan, downloads, nextSteps } = detail;
  const { counts, requests } = run;
  const isBegun = run.status !== "planned" && run.status !== "needs_confirmation";
  const outcomes = Object.keys(OUTCOMES).filter((name): name is keyof typeof OUTCOMES => Object.hasOwn(OUTCOMES, name));
  const hidden = failuresOmitted + Math.max(0, failures.length - MOST_FAILURES);
  return (
    <>
      <p>
        <Status of={run.status} />{" "}
        {isBegun && counts.items > 0 && <Progress counts={counts} label="Progress of the run" />}
      </p>
      {run.status === "interrupted" && run.standsStill !== undefined && <p class="warning">{run.standsStill}</p>}
      {run.decided !== undefined && (
        <p>
          <Text of={run.decided} />
        </p>
      )}
      {isBegun && (
        <Table caption="Counts" heads={outcomes.map((name) => OUTCOMES[name])} className="counts">
          <tr>
            {outcomes.map((name) => (
              <td key={name} class={counts[name] === 0 ? "none" : name}>
                {number(counts[name])}
              </td>
            ))}
          </tr>
        </Table>
      )}
      {isBegun && requests !== undefined && (
        <p>
          Requests: {number(requests.sent)} of {number(requests.planned)} sent, {number(requests.resent)} of them again;{" "}
          {number(requests.waitedMs)} ms waited.
        </p>
      )}
      {failures.length > 0 && <Failures of={failures.slice(0, MOST_FAILURES)} />}
      {hidden > 0 && <p>and {number(hidden)} more kinds of failures</p>}
      <Sentences title="What to do next" of={nextSteps} />
      {downloads.length > 0 && (
        <p class="bar">
          Downloads:
          {downloads.map((file) => (
            <a key={file} href={`${PATHS.runs}/${encodeURIComponent(run.runId)}/${file}`} download>
              {FILES[file]}
            </a>
          ))}
        </p>
      )}
      {plan !== undefined && <Plan plan={plan} />}
    </>
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
