import { MOST_ROWS, waitingRuns } from "../state.ts";
import { Text, Time } from "./parts.tsx";
import { Buttons, Effect } from "./run.tsx";
import { actOnRun } from "./run-page.ts";

/** Of each run so many objects of a kind are named here; the page of the run names more. */
const MOST_OBJECTS = 20;
const MOST_RUNS = MOST_ROWS / MOST_OBJECTS;

/** The runs that wait for a yes: what exactly each would do, and who asks. */
export function Approvals() {
  const all = waitingRuns.value;
  return (
    <>
      <h1>Approvals</h1>
      {all.length === 0 && <p>No run waits for a decision.</p>}
      {all.slice(0, MOST_RUNS).map((run) => {
        const { runId, tool, caller, project, startedAt, targeting, waiting } = run;
        return (
          <article key={runId} aria-labelledby={`run-${runId}`}>
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
            {waiting !== undefined && <Effect runId={runId} waiting={waiting} most={MOST_OBJECTS} />}
            <Buttons run={run} act={actOnRun} />
          </article>
        );
      })}
      {all.length > MOST_RUNS && <p>and {all.length - MOST_RUNS} more, which are shown as these are decided</p>}
    </>
  );
}
