import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { RunAction, RunRow, Waiting } from "../wire.ts";
import { number } from "./announce.ts";
import { Changes } from "./changes.tsx";
import { Part } from "./effect-part.tsx";
import { Guarded } from "./guarded.tsx";
import { asking } from "./keys.ts";
import { Sentences, Text } from "./parts.tsx";
import { actOnRun } from "./run-page.ts";
import { Requester, Status, Title } from "./run-words.tsx";
import { isConnected } from "./state.ts";
import { Ago, Bar, Figure } from "./widgets.tsx";

const ELSEWHERE = {
  client: "The agent's client asks about this: it is approved there, not here.",
  token: "The agent holds a confirmation token for this: it is approved there, not here.",
} as const;
const NOT_CONNECTED = "This page has lost its server, so nothing can be decided here.";

/** A run as it was while it waited, and as it is now; undefined where it is no longer kept. */
export interface Decided {
  readonly run: RunRow;
  readonly now: RunRow | undefined;
}

/** All that a person has to know to decide on a run, and the buttons that decide, always in sight. */
export function Decision({ run, now }: Decided) {
  const { runId, waiting, startedAt } = run;
  if (waiting === undefined) return null;
  const isWaiting = now?.status === "needs_confirmation";
  return (
    <section class="pane" aria-labelledby={`run-${runId}`}>
      <a class="back small" href="#/approvals">
        All approvals
      </a>
      <h1 id={`run-${runId}`}>
        <Title run={run} end={isWaiting ? "?" : ""} />
      </h1>
      <div class="row quiet small">
        <span>
          Requested by <Requester run={run} />
        </span>
        <Ago at={startedAt} />
        {isWaiting && (
          <span>
            expires <Ago at={waiting.expiresAt} />
          </span>
        )}
        {!isWaiting && <a href={`#/runs/${runId}`}>Show the run</a>}
      </div>
      {!isWaiting && <Over now={now} />}
      <Figures waiting={waiting} />
      <Changes runId={runId} version={`${waiting.digest} ${waiting.effect}`} title="What changes" />
      {waiting.parts.map((part, at) =>
        part.isBeside ? <Part key={part.title} runId={runId} place={at} part={part} most={20} isSearchable /> : null,
      )}
      <p class="card note small">
        <Text of={waiting.effect} most={2000} />
        {deletes(waiting) &&
          " The API does not say which campaigns use what is deleted: check in the console before you approve."}
      </p>
      {isWaiting && <Foot run={run} waiting={waiting} />}
    </section>
  );
}

function deletes({ magnitude }: Waiting): boolean {
  return magnitude?.verb === "deleted";
}

/** What became of a run that no longer waits, with the way to take it back. */
function Over({ now }: Pick<Decided, "now">) {
  if (now === undefined) return <p class="warning">This run is no longer stored.</p>;
  return (
    <div class="card row decided">
      <Status of={now} />
      {now.decided !== undefined && <Text of={now.decided} />}
      <UndoButton run={now} />
    </div>
  );
}

/** Plans the undo of a run, which then waits for an approval itself. */
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

function Figures({ waiting }: { readonly waiting: Waiting }) {
  const { magnitude, counts, contextIds, lost, undoable } = waiting;
  const kinds = [counts.created, counts.changed, counts.deleted].filter((count) => count > 0).length;
  return (
    <div class="grid three">
      {kinds > 1 ? <CountsFigure of={counts} /> : magnitude !== undefined && <MagnitudeFigure of={magnitude} />}
      {contextIds !== undefined && (
        <Figure title="Context IDs removed" value={number(contextIds)} tone="bad">
          <span class="quiet small">with the options above</span>
        </Figure>
      )}
      {(lost.length > 0 || undoable.length > 0) && (
        <Figure
          title="If you change your mind"
          value={undoable.length > 0 ? "It can be undone" : "It cannot be undone"}
          isWords
        >
          <Sentences of={[...undoable, ...lost]} />
        </Figure>
      )}
    </div>
  );
}

/** What a plan changes, by kind. */
function CountsFigure({ of: { created, changed, deleted } }: { readonly of: Waiting["counts"] }) {
  const shares = [
    { tone: "created", count: created, of: "new" },
    { tone: "changed", count: changed, of: "changed" },
    { tone: "deleted", count: deleted, of: "deleted" },
  ];
  return (
    <Figure title="Changes" value={number(created + changed + deleted)}>
      <Bar label="Changes" shares={shares} />
      <span class="row small">
        {created > 0 && <span class="good">+{number(created)} new</span>}
        {changed > 0 && <span class="warn">~{number(changed)} changed</span>}
        {deleted > 0 && <span class="bad">−{number(deleted)} deleted</span>}
      </span>
    </Figure>
  );
}

function MagnitudeFigure({ of: { count, whole, verb, within } }: { readonly of: NonNullable<Waiting["magnitude"]> }) {
  const tone = verb === "deleted" ? "bad" : "warn";
  const title = verb === "deleted" ? "Deleted" : "Changed";
  if (whole === undefined || whole < count) {
    return (
      <Figure title={title} value={number(count)} tone={tone}>
        {within !== undefined && <span class="small">{within}</span>}
      </Figure>
    );
  }
  const percent = Math.max(1, Math.round((100 * count) / whole));
  return (
    <Figure title={title} value={number(count)} tone={tone}>
      <span class="small">
        of {number(whole)} options ({percent} %)
      </span>
      <Bar label={title} total={whole} shares={[{ tone, count, of: `of ${number(whole)}` }]} />
    </Figure>
  );
}

/** Why a run cannot be approved now, beside what its buttons say by themselves. */
function Hindrance({ run: { runId, disabled = {} }, waiting }: { readonly run: RunRow; readonly waiting: Waiting }) {
  const { stale, ended, elsewhere } = waiting;
  const why = disabled.approve;
  return (
    <div id={whyOf(runId)}>
      {ended && (
        <p class="warning">
          The server that requested this is no longer running: ask the agent to make the change again
        </p>
      )}
      {stale !== undefined && (
        <div class="warning">
          <p>Changed since it was planned</p>
          <Sentences of={stale} />
        </div>
      )}
      {elsewhere !== undefined && <p class="warning">{ELSEWHERE[elsewhere]}</p>}
      {why !== undefined && !ended && stale === undefined && <p class="warning">{why}</p>}
      {!isConnected.value && <p class="warning">{NOT_CONNECTED}</p>}
    </div>
  );
}

const whyOf = (runId: string): string => `why-${runId}`;

/** Asks once more about a decision that a key began; what it names is what is decided. */
function Confirm({ run, act, typed }: { readonly run: RunRow; readonly act: string; readonly typed: string }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const action = asking.value;
  useEffect(() => {
    if (action === undefined) return;
    dialog.current?.showModal();
    dialog.current?.querySelector<HTMLElement>("[data-confirms]")?.focus();
  }, [action]);
  if (action === undefined) return null;
  const close = (): void => {
    asking.value = undefined;
  };
  const confirm = (): void => {
    close();
    void actOnRun(run, action, typed);
  };
  return (
    <dialog ref={dialog} aria-label="Confirm" onClose={close}>
      <p>
        {action === "approve" ? `${act}:` : "Decline:"} <Title run={run} />
      </p>
      <div class="row">
        <span class="push" />
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button
          type="button"
          class={action === "approve" ? "danger" : "primary"}
          data-confirms={action}
          onClick={confirm}
        >
          {action === "approve" ? act : "Decline"}
        </button>
      </div>
    </dialog>
  );
}

function Foot({ run, waiting }: { readonly run: RunRow; readonly waiting: Waiting }) {
  const typed = useSignal("");
  const { runId, actions, disabled = {} } = run;
  const { act, stale, ended } = waiting;
  const isOff = (action: RunAction): boolean => !isConnected.value || disabled[action] !== undefined;
  const cannotApprove = isOff("approve") || stale !== undefined || ended === true;
  const isTyped = waiting.typed === undefined || typed.value.trim() === waiting.typed;
  return (
    <div class="foot">
      <Confirm run={run} act={act} typed={typed.value} />
      <Hindrance run={run} waiting={waiting} />
      {waiting.typed !== undefined && actions.includes("approve") && !cannotApprove && (
        <label class="row small">
          <span>
            This is large. To approve it, type <strong>{waiting.typed}</strong>
          </span>
          <input
            type="text"
            autocomplete="off"
            value={typed}
            onInput={(event) => {
              typed.value = event.currentTarget.value;
            }}
          />
        </label>
      )}
      <div class="row">
        <span class="quiet small wide">Checked again before anything is sent. If it has changed, nothing happens.</span>
        <span class="push row">
          {actions.includes("decline") && (
            <Guarded
              action="decline"
              run={run}
              isOff={isOff("decline")}
              describedBy={whyOf(runId)}
              press={() => void actOnRun(run, "decline")}
            >
              Decline
            </Guarded>
          )}
          {actions.includes("approve") && (
            <Guarded
              action="approve"
              run={run}
              className={deletes(waiting) ? "danger" : "primary"}
              isOff={cannotApprove || !isTyped}
              describedBy={whyOf(runId)}
              press={() => void actOnRun(run, "approve", typed.value)}
            >
              {act}
            </Guarded>
          )}
        </span>
      </div>
    </div>
  );
}
