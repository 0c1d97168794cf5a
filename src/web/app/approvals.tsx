import { useSignal } from "@preact/signals";
import { Fragment } from "preact";
import { useRef, useState } from "preact/hooks";
import type { ChangeList, RunAction, RunRow, Waiting } from "../wire.ts";
import { Changes, Differences } from "./changes.tsx";
import { Part, Size, Unsent } from "./effect-part.tsx";
import { DecisionButtons, Guarded } from "./guarded.tsx";
import { asking } from "./keys.ts";
import { Ago, Ask, Empty, now, Sentences, Text } from "./parts.tsx";
import { counted, number } from "./plain-words.ts";
import { actOnRun, useDetail } from "./requests.ts";
import { FirstReason } from "./run-problems.tsx";
import { Expiry, NO_CHANGES, Requester, ShortRequester, Status, Title, totalOf } from "./run-words.tsx";
import { isBlocked, isConnected, MAX_ROWS, openRuns, route, runList, runs, set, timeOf, waitingRuns } from "./state.ts";

/** The maximum number of runs in the queue. Further ones appear when these are decided and the page is loaded again. */
const MAX_RUNS = MAX_ROWS / 5;
/** For how many ms after its last change a decided run is added to the queue, and how many such runs at most. */
const KEPT_MS = 24 * 3_600_000;
const MAX_DECIDED = 20;

/** The runs of the view, by run ID. They stay while the person is in another view. */
const queue = new Map<string, RunRow>();

/** Adds or updates the runs that wait now. Adds the newest that were decided on the page in the last 24 hours. */
function fillQueue(): void {
  const from = now.value - KEPT_MS;
  const decided = runList.value.filter((run) => run.isDecidedOnPage && run.updatedAt > from);
  for (const run of [...waitingRuns.value, ...decided.slice(0, MAX_DECIDED)]) {
    const isKnown = queue.has(run.runId);
    if (isKnown ? run.waiting : queue.size < MAX_RUNS) queue.set(run.runId, run);
  }
}

/** Moves runs that no longer wait to the end of the queue. */
function sortQueue(): void {
  for (const [runId, run] of [...queue]) {
    if (isUndecided({ now: runs.value.get(runId) })) continue;
    queue.delete(runId);
    queue.set(runId, run);
  }
}

/**
 * Shows the queue of runs that wait for approval, and the chosen run in a pane. While the view is open, a decided run
 * keeps its place unless it had to be approved elsewhere, and new runs are added at the end. So rows rarely move under
 * the pointer.
 */
export function Approvals() {
  const chosen = useRef<string | undefined>(undefined);
  const { length } = openRuns.value;
  useState(sortQueue);
  fillQueue();
  const shown = [...queue].flatMap(([runId, run]): readonly Decided[] => {
    const one = { run, now: runs.value.get(runId) };
    // A run that must be approved elsewhere disappears once it is decided.
    return run.waiting?.elsewhere && !isUndecided(one) ? [] : [one];
  });
  const more = waitingRuns.value.filter(({ runId }) => !queue.has(runId)).length;
  const { id } = route.value;
  // A decided run stays chosen, so that the pane shows its outcome until the person chooses another run.
  if (id !== undefined) chosen.current = id;
  else if (!shown.some(({ run }) => run.runId === chosen.current))
    chosen.current = (shown.find(isUndecided) ?? shown[0])?.run.runId;
  const one = shown.find(({ run }) => run.runId === chosen.current);
  if (shown.length === 0 && id === undefined) return <NothingWaits />;
  return (
    <div class={`split${id === undefined ? "" : " chosen"}`}>
      <div class="queue">
        <div>
          <h1>Approvals</h1> <span class="quiet">{length === 0 ? NOTHING_WAITS : `${number(length)} waiting`}</span>
        </div>
        <ul class="items">
          {shown.map((each) => (
            <QueueItem key={each.run.runId} {...each} isChosen={each === one} />
          ))}
        </ul>
        {more > 0 && <div class="quiet small">and {number(more)} more: reload this page once these are decided</div>}
      </div>
      {one === undefined ? <Elsewhere key={id} id={id} /> : <Decision key={one.run.runId} {...one} />}
    </div>
  );
}

function isUndecided({ now }: Pick<Decided, "now">): boolean {
  return now?.status === "needs_confirmation";
}

function QueueItem({ run, now, isChosen }: Decided & { readonly isChosen: boolean }) {
  const { runId } = run;
  const isWaiting = isUndecided({ now });
  return (
    <li>
      <a
        href={`#/approvals/${runId}`}
        data-row="choose"
        {...(isChosen && { "aria-current": "true" as const })}
        class={isWaiting ? "" : "quiet"}
      >
        {!isWaiting && (now === undefined ? "No longer stored: " : <Status of={now} />)} <Title run={run} />
        <span class="line quiet small">
          <ShortRequester run={run} /> · <Ago at={timeOf(now ?? run)} />
          {isWaiting && isBlocked(run) && " · cannot be approved"}
        </span>
      </a>
    </li>
  );
}

const NOTHING_WAITS = "No run is waiting for a decision";

function NothingWaits() {
  return (
    <Empty title={NOTHING_WAITS}>
      A change that deletes options, empties them or applies a plan waits here until you approve it.{" "}
      <a href="#/runs">Show what was done</a>
    </Empty>
  );
}

/** Shown if the run in the address is not in the queue, for example because it was decided before the page loaded. */
function Elsewhere({ id = "" }: { readonly id: string | undefined }) {
  const run = runs.value.get(id);
  return (
    <section class="pane">
      <h1>{run === undefined ? "This run is not waiting for a decision" : <Title run={run} />}</h1>
      {run !== undefined && <Outcome run={run} now={run} />}
      <p>
        <a href={`#/runs/${id}`}>Show the run</a>
      </p>
    </section>
  );
}

const ELSEWHERE = {
  client: "Approve this in the agent's client, which asks about it.",
  token: "Approve this through the agent, which has a confirmation token for it.",
} as const;
const NOT_CONNECTED = "This page has lost its server, so nothing can be decided here.";

/**
 * A run as it was while it waited for approval (`run`; without `waiting` if it was decided before the page was loaded),
 * and as it is now (`now`; undefined if it is no longer stored).
 */
export interface Decided {
  readonly run: RunRow;
  readonly now: RunRow | undefined;
}

/** The tools whose runs apply a plan. Only a plan can skip objects that have changed since it was made. */
const PLANS: ReadonlySet<string> = new Set(["apply_plan", "plan_targeting", "undo_run"]);

/** Shows what a person needs to decide on a run, with buttons that stay visible. Once it is decided, its outcome. */
export function Decision({ run, now }: Decided) {
  const { runId, waiting } = run;
  const isWaiting = isUndecided({ now });
  const isOpen = isWaiting && !isBlocked(run);
  return (
    <section class="pane" aria-labelledby={`run-${runId}`}>
      <a class="back small" href="#/approvals">
        All approvals
      </a>
      {isWaiting && !isOpen && <Blocked run={run} />}
      <h1 id={`run-${runId}`}>
        <Title run={run} end={isOpen ? "?" : ""} />
      </h1>
      {!isOpen && (
        <div class="row quiet small">
          <Request run={run} />
          <a href={`#/runs/${runId}`}>Show the run</a>
        </div>
      )}
      {!isWaiting && <Outcome run={run} now={now} />}
      {isWaiting && waiting !== undefined && <Effect run={run} waiting={waiting} isOpen={isOpen} />}
    </section>
  );
}

/** Shows who requested a run, and when. */
function Request({ run }: { readonly run: RunRow }) {
  return (
    <>
      <span>
        Requested by <Requester run={run} />
      </span>
      <Ago at={run.startedAt} />
    </>
  );
}

/** Shows what a run would do, with the buttons. `isOpen`: the run can be approved. If not, the summary is omitted. */
function Effect(effect: { readonly run: RunRow; readonly waiting: Waiting; readonly isOpen: boolean }) {
  const { run, waiting, isOpen } = effect;
  const { runId } = run;
  const list = useSignal<ChangeList | undefined>(undefined);
  const plan = useDetail(PLANS.has(run.tool) ? runId : undefined).detail?.plan;
  const isRead = list.value !== undefined && !list.value.isReading;
  return (
    <>
      {isOpen && <Summary run={run} waiting={waiting} list={list.value} />}
      {plan !== undefined && plan.drift.length + plan.conflicts.length > 0 && <Differences plan={plan} />}
      <Changes run={run} shown={list} />
      {waiting.parts.map((part, at) => part.isNote && <Part key={part.title} runId={runId} place={at} part={part} />)}
      {isOpen && (
        <p class="quiet small">
          <Text of={waiting.effect} most={2000} /> If something changes before you approve, nothing is sent.
        </p>
      )}
      <Foot run={run} waiting={waiting} isRead={isRead} />
    </>
  );
}

/** Shows the outcome of a run that was decided or has ended: what it changed, or that it changed nothing. */
function Outcome({ run, now }: Decided) {
  const { status, counts, did = NO_CHANGES } = now ?? run;
  const hasEnded = now !== undefined && status !== "running" && status !== "interrupted";
  const isNothing = hasEnded && counts.succeeded + counts.unknown + totalOf(did) === 0;
  return (
    <>
      <Over now={now} isNothing={isNothing} />
      {hasEnded && !(isNothing && status === "cancelled") && <FirstReason run={now} />}
      {now?.did !== undefined && !isNothing && <Changes run={now} />}
    </>
  );
}

/** Shows the status of a decided run, who decided, until when the run can be undone, and the undo button. */
function Over({ now, isNothing }: Pick<Decided, "now"> & { readonly isNothing: boolean }) {
  const { detail } = useDetail(now?.runId);
  if (now === undefined) return <p class="warning">This run is no longer stored.</p>;
  // Only the details show whether a run can be undone again after an undo. The row in the list does not.
  const known = detail?.run.updatedAt === now.updatedAt && detail.run.status === now.status ? detail.run : now;
  const words = [
    known.decided?.replace("Declined ", ""),
    isNothing && `nothing was ${now.status === "cancelled" && !known.requests?.sent ? "sent" : "changed"}`,
  ].filter(Boolean);
  return (
    <>
      <div class="card row decided">
        <Status of={now} />
        <Text of={words.join(": ")} />
        {known.undoUntil !== undefined && (
          <span class="quiet small">
            can be undone until <Ago at={known.undoUntil} />
          </span>
        )}
        <UndoButton run={known} />
      </div>
      {isNothing && <Unsent list={detail?.changes} />}
    </>
  );
}

/** Shows the button that plans the undo of a run. The undo then needs approval. */
export function UndoButton({ run }: { readonly run: RunRow }) {
  if (!run.actions.includes("undo")) return null;
  const why = run.disabled?.undo;
  return (
    <span class="push row">
      {why !== undefined && (
        <span class="quiet small" id={`undo-${run.runId}`}>
          {why}
        </span>
      )}
      <Guarded
        action="undo"
        run={run}
        isOff={why !== undefined || !isConnected.value}
        describedBy={`undo-${run.runId}`}
        press={() => void actOnRun(run, "undo")}
      >
        Undo…
      </Guarded>
    </span>
  );
}

/** Shows how much of the targeting a run changes, and what an undo would restore. */
function Summary({ run, waiting, list: { removed = 0, lost = 0, groups = [] } = {} }: SummaryProps) {
  const { undo, consequence, check, stays, also } = waiting;
  const contextIds = counted(Math.max(removed, waiting.contextIds ?? 0), "Context ID");
  const isSaid = contextIds.startsWith("0") || `${run.title} ${undo?.title}`.includes(contextIds);
  return (
    <div class="card summary">
      <Size of={waiting} isUndo={run.isUndo} />
      {!isSaid && (
        <span class="line deleted">
          Removes {contextIds}
          {lost > 0 && lost < removed && ` (${number(lost)} in deleted options)`}
        </span>
      )}
      {groups.length > 0 && (
        <span class="line">
          {groups.map(({ name, more, count }, at) => (
            <Fragment key={at}>
              {at > 0 && ", "}
              <strong class="deleted">
                {number(count)}
                {at === 0 && " deleted"}
              </strong>{" "}
              {name === null ? (
                "at the top level"
              ) : (
                <>in {more ? counted(more, "more group") : <Text of={name} most={80} />}</>
              )}
            </Fragment>
          ))}
        </span>
      )}
      {[consequence, check, undo?.title, ...(undo?.notes ?? []), stays].map((note) => {
        if (!note) return null;
        const [label = "", ...rest] = note.split(/(?<=:)/);
        return (
          <span key={note} class="line">
            {rest.length > 0 || note === undo?.title ? <strong>{label}</strong> : label}
            {rest}
          </span>
        );
      })}
      {also !== undefined && (
        <span class="line quiet small">
          {also.what} in <a href={`#/approvals/${also.runId}`}>another request</a>: only one of the two can be approved.
        </span>
      )}
      <span class="row quiet small">
        <Request run={run} />
        <Expiry of={run} />
      </span>
    </div>
  );
}

interface SummaryProps {
  readonly run: RunRow;
  readonly waiting: Waiting;
  readonly list?: Partial<ChangeList> | undefined;
}

/** Shows why a run cannot be approved: something has changed, or this page cannot have it executed. */
function Blocked({ run: { runId, waiting, disabled } }: { readonly run: RunRow }) {
  return (
    <div class="card warn blocked" id={whyOf(runId)}>
      <strong>{disabled?.approve}</strong>
      <Sentences of={waiting?.stale} />
    </div>
  );
}

/** Shows the reasons why a run cannot be approved now. */
function ApprovalObstacles({ run, waiting: { elsewhere }, isRead }: FootProps) {
  const why = isBlocked(run) ? undefined : run.disabled?.approve;
  return (
    <div {...(!isBlocked(run) && { id: whyOf(run.runId) })}>
      {elsewhere !== undefined && <p class="warning">{ELSEWHERE[elsewhere]}</p>}
      {why !== undefined && <p class="warning">{why}</p>}
      {!isConnected.value && <p class="warning">{NOT_CONNECTED}</p>}
      {!isRead && <p class="quiet small">It can be approved once all changes are read.</p>}
    </div>
  );
}

const whyOf = (runId: string): string => `why-${runId}`;

/** Asks the person to confirm a decision about the shown run that they started with the keyboard. */
function Confirm({ run, act, typed }: { readonly run: RunRow; readonly act: string; readonly typed: string }) {
  const action = asking.value;
  if (action === undefined) return null;
  return (
    <Ask
      act={action === "approve" ? act : "Decline"}
      tone={action === "approve" ? "danger" : "primary"}
      decision={action}
      close={() => set(asking, undefined)}
      press={() => void actOnRun(run, action, typed)}
    >
      {action === "decline" && "Decline: "}
      <Title run={run} end={action === "approve" ? "?" : ""} />
    </Ask>
  );
}

interface FootProps extends Omit<SummaryProps, "list"> {
  /** Whether the server has finished reading what is deleted, even if it failed. Before that, nobody can approve. */
  readonly isRead: boolean;
}

function Foot({ run, waiting, isRead }: FootProps) {
  const typed = useSignal("");
  const { runId, actions, disabled = {} } = run;
  const { act } = waiting;
  const isOff = (action: RunAction): boolean => !isConnected.value || disabled[action] !== undefined;
  const cannotApprove = isOff("approve") || isBlocked(run);
  const isReady = isRead && (waiting.typed === undefined || typed.value.trim().normalize() === waiting.typed);
  return (
    <div class="foot">
      <Confirm run={run} act={act} typed={typed.value} />
      <ApprovalObstacles run={run} waiting={waiting} isRead={isRead || cannotApprove || !actions.includes("approve")} />
      <div class="row">
        {waiting.typed !== undefined && actions.includes("approve") && !cannotApprove && (
          <label class="row small">
            <span>
              To approve, type <strong class="said">{waiting.typed}</strong>
            </span>
            <input
              type="text"
              autocomplete="off"
              value={typed}
              onInput={(event) => set(typed, event.currentTarget.value)}
              onKeyDown={({ key }) => {
                if (key === "Enter" && isReady) asking.value = "approve";
              }}
            />
          </label>
        )}
        <span class="push row">
          <DecisionButtons
            run={run}
            isOff={(action) => (action === "approve" ? cannotApprove || !isReady : isOff(action))}
            describedBy={whyOf(runId)}
            press={(action) => void actOnRun(run, action, typed.value)}
          />
        </span>
      </div>
    </div>
  );
}
