import { useSignal, useSignalEffect } from "@preact/signals";
import { route } from "../route.ts";
import { MOST_ROWS, runList, runs } from "../state.ts";
import { Effect } from "./effect.tsx";
import { Steps, Table, Text, Time } from "./parts.tsx";
import { Buttons, Progress, RunBody, Status } from "./run.tsx";
import { actOnRun, detail, look } from "./run-page.ts";

/** Running and past runs, or the one that the address names. */
export function Runs() {
  const { id } = route.value;
  return id === undefined ? <RunTable /> : <OneRun key={id} id={id} />;
}

function RunTable() {
  const from = useSignal(0);
  const all = runList.value;
  const first = Math.min(from.value, Math.max(0, all.length - 1));
  const shown = all.slice(first, first + MOST_ROWS);
  return (
    <>
      <h1>Runs</h1>
      <Table caption="Runs" heads={["Tool", "Status", "Progress", "Targeting", "Started", "Asked by"]} className="runs">
        {shown.map(({ runId, startedAt, tool, targeting, status, counts, caller }) => (
          <tr key={runId}>
            <th scope="row">
              <a href={`#/runs/${runId}`}>{tool}</a>
            </th>
            <td>
              <Status of={status} />
            </td>
            <td>{counts.items > 0 && <Progress counts={counts} label={`Progress of ${tool}`} />}</td>
            <td>
              <Text of={targeting?.name ?? targeting?._id ?? ""} most={120} />
            </td>
            <td>
              <Time at={startedAt} />
            </td>
            <td>
              <Text of={caller ?? ""} most={120} />
            </td>
          </tr>
        ))}
      </Table>
      <Steps from={from} first={first} total={all.length} rows={MOST_ROWS} of="runs" />
      {all.length === 0 && <p>There are no runs yet.</p>}
    </>
  );
}

function OneRun({ id }: { readonly id: string }) {
  useSignalEffect(() => {
    const run = runs.value.get(id);
    if (run !== undefined) look(run);
  });
  const run = runs.value.get(id);
  if (run === undefined) return <h1>There is no such run</h1>;
  const known = detail.value?.run.runId === id ? detail.value : { run, failures: [], downloads: [] };
  // What was read of this very state of the run says more than its row.
  const isFresh = known.run.updatedAt === run.updatedAt && known.run.status === run.status;
  const shown = isFresh ? known.run : { ...known.run, ...run };
  return (
    <>
      <h1>
        {run.tool} {run.targeting?.name !== undefined && <Text of={run.targeting.name} />}
      </h1>
      <p>
        Run {run.runId}, <Time at={run.startedAt} />
        {run.caller !== undefined && (
          <>
            , asked by <Text of={run.caller} />
          </>
        )}
        . <a href="#/runs">All runs</a>
      </p>
      <Buttons run={shown} act={actOnRun} />
      {run.waiting !== undefined && <Effect runId={run.runId} waiting={run.waiting} isSearchable />}
      <RunBody detail={{ ...known, run: shown }} />
    </>
  );
}
