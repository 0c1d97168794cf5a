import { useRef } from "preact/hooks";
import type { RunRow } from "../wire.ts";
import { number } from "./announce.ts";
import { type Decided, Decision } from "./decision.tsx";
import { Text } from "./parts.tsx";
import { route } from "./route.ts";
import { Requester, Status } from "./run-words.tsx";
import { MOST_ROWS, runs, waitingRuns } from "./state.ts";
import { Ago, Empty } from "./widgets.tsx";

/** As many runs as the queue holds at most; more come once these are decided. */
const MOST_RUNS = MOST_ROWS / 5;

/**
 * The runs that wait for an approval, and beside them all about the one that is chosen. A run stays where it is in the
 * queue once it is decided, and new ones come below, so that no other run slides under the pointer.
 */
export function Approvals() {
  const queue = useRef(new Map<string, RunRow>());
  const chosen = useRef<string | undefined>(undefined);
  const all = waitingRuns.value;
  for (const run of all) {
    if (queue.current.size < MOST_RUNS || queue.current.has(run.runId)) queue.current.set(run.runId, run);
  }
  const shown = [...queue.current].flatMap(([runId, run]): readonly Decided[] => {
    const now = runs.value.get(runId);
    // One that is not approved here goes when it no longer waits: nobody presses anything in its place.
    if (run.waiting?.elsewhere && now?.status !== "needs_confirmation") return [];
    return [{ run, now }];
  });
  const more = all.filter(({ runId }) => !queue.current.has(runId)).length;
  const { id } = route.value;
  // The first one stays chosen when it is decided: what is beside the queue changes only where the person asks for it.
  if (id !== undefined) chosen.current = id;
  else if (!shown.some(({ run }) => run.runId === chosen.current)) chosen.current = shown[0]?.run.runId;
  const one = shown.find(({ run }) => run.runId === chosen.current);
  if (shown.length === 0) return <NothingWaits />;
  return (
    <div class={`split${id === undefined ? "" : " chosen"}`}>
      <div class="queue">
        <div>
          <strong>Approvals</strong>{" "}
          <span class="quiet">
            {all.length === 0 ? "No run waits for a decision." : `${number(all.length)} waiting`}
          </span>
        </div>
        <ul class="items">
          {shown.map((each) => (
            <QueueItem key={each.run.runId} {...each} isChosen={each === one} />
          ))}
        </ul>
        {more > 0 && (
          <div class="quiet small">and {number(more)} more: load this page again once these are decided</div>
        )}
      </div>
      {one === undefined ? <Elsewhere id={id} /> : <Decision key={one.run.runId} {...one} />}
    </div>
  );
}

function QueueItem({ run, now, isChosen }: Decided & { readonly isChosen: boolean }) {
  const { runId, waiting, targeting, startedAt } = run;
  const isWaiting = now?.status === "needs_confirmation";
  const [only, ...others] = waiting?.parts.flatMap(({ objects }) => objects) ?? [];
  const name = targeting?.name ?? (others.length === 0 ? only?.name : undefined);
  return (
    <li>
      <a
        href={`#/approvals/${runId}`}
        data-row="choose"
        {...(isChosen && { "aria-current": "true" as const })}
        class={isWaiting ? "" : "quiet"}
      >
        {!isWaiting && (now === undefined ? "No longer stored: " : <Status of={now} />)} <strong>{waiting?.act}</strong>
        {name !== undefined && (
          <span class="line">
            <Text of={name} most={80} />
          </span>
        )}
        <span class="line quiet small">
          <Requester run={run} /> · <Ago at={startedAt} />
        </span>
      </a>
    </li>
  );
}

function NothingWaits() {
  return (
    <Empty title="No run waits for a decision.">
      A change that deletes options, empties them or applies a plan waits here until you approve it.{" "}
      <a href="#/runs">Show what was done</a>
    </Empty>
  );
}

/** The address names a run that does not wait. */
function Elsewhere({ id }: { readonly id: string | undefined }) {
  return (
    <section class="pane">
      <h1>This run does not wait for a decision</h1>
      <p>{id !== undefined && <a href={`#/runs/${id}`}>Show the run</a>}</p>
    </section>
  );
}
