import { useRef } from "preact/hooks";
import type { RunRow } from "../../wire.ts";
import { MOST_ROWS, runs, waitingRuns } from "../state.ts";
import { Effect } from "./effect.tsx";
import { Text, Time } from "./parts.tsx";
import { Buttons, Status } from "./run.tsx";
import { actOnRun } from "./run-page.ts";

/** Of each run so many objects of a kind are named here at first; its search finds all of them. */
const MOST_OBJECTS = 20;
const MOST_RUNS = MOST_ROWS / MOST_OBJECTS;

/** A run as its card shows it: as it was while it waited, and whether it still does. */
interface Card {
  readonly run: RunRow;
  readonly now: RunRow | undefined;
}

/**
 * The runs that wait for an approval: what exactly each would do, and who requested it. A card stays where it is once
 * its run is decided, and new ones come below, so that no other run slides under the pointer.
 */
export function Approvals() {
  const cards = useRef(new Map<string, RunRow>());
  const all = waitingRuns.value;
  for (const run of all)
    if (cards.current.size < MOST_RUNS || cards.current.has(run.runId)) cards.current.set(run.runId, run);
  const shown = [...cards.current].flatMap(([runId, run]): readonly Card[] => {
    const now = runs.value.get(runId);
    // One that is not approved here goes when it no longer waits: nobody presses anything in its place.
    if (run.waiting?.elsewhere && now?.status !== "needs_confirmation") return [];
    return [{ run, now }];
  });
  const more = all.filter(({ runId }) => !cards.current.has(runId)).length;
  return (
    <>
      <h1>Approvals</h1>
      {shown.map((card) => (
        <ApprovalCard key={card.run.runId} {...card} />
      ))}
      {all.length === 0 && <p>No run waits for a decision.</p>}
      {more > 0 && <p>and {more} more: load this page again once these are decided</p>}
    </>
  );
}

function ApprovalCard({ run, now }: Card) {
  const { runId, tool, caller, project, startedAt, targeting, waiting } = run;
  const isWaiting = now?.status === "needs_confirmation";
  return (
    <article aria-labelledby={`run-${runId}`}>
      <h2 id={`run-${runId}`}>
        {tool} {targeting?.name !== undefined && <Text of={targeting.name} />}
      </h2>
      <p>
        Asked by <Text of={caller} />
        {project !== undefined && (
          <>
            , project <Text of={project} />
          </>
        )}
        , <Time at={startedAt} />. <a href={`#/runs/${runId}`}>Show the run</a>
      </p>
      {waiting !== undefined && (
        <Effect runId={runId} waiting={waiting} most={MOST_OBJECTS} isOver={!isWaiting} isSearchable />
      )}
      {isWaiting ? (
        <Buttons run={run} act={actOnRun} />
      ) : (
        <p class="bar">{now === undefined ? "This run is no longer kept." : <Status of={now.status} />}</p>
      )}
    </article>
  );
}
