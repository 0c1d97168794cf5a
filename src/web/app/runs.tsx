import { signal, useSignal } from "@preact/signals";
import { Fragment } from "preact";
import type { RunRow } from "../wire.ts";
import { Ago, ClockTime, Filters, now, Search, Steps, Table, useSteady } from "./parts.tsx";
import { counted, dateOf, dayWords, durationWords } from "./plain-words.ts";
import { OneRun } from "./run-detail.tsx";
import { NO_CHANGES, NothingYet, Progress, ShortRequester, Status, statusWords, Title, totalOf } from "./run-words.tsx";
import { MAX_ROWS, narrows, route, runList, set, timeOf } from "./state.ts";

/** Shows all runs or, depending on the address, the runs of a day or one run. */
export function Runs() {
  const { id } = route.value;
  const isDay = id === undefined || id === dateOf(Date.parse(`${id}T00:00`));
  return isDay ? <RunTable day={id} /> : <OneRun key={id} id={id} />;
}

type Kind = "changes" | "waiting" | "none" | "events" | "exports";

const KINDS: readonly (readonly [Kind, title: string])[] = [
  ["changes", "Changes"],
  ["waiting", "Waiting"],
  ["none", "Nothing changed"],
  ["events", "Event runs"],
  ["exports", "Exports"],
];

/** The filters of the list. They stay set while the person views a run. */
const kind = signal<Kind | "all">("all");
const status = signal("");
const search = signal("");

const EVENT_TOOLS: ReadonlySet<string> = new Set(["track_event", "track_events", "run_event_tests"]);
const EXPORT_TOOLS: ReadonlySet<string> = new Set(["list_options", "get_option"]);

/** Returns the kind of a run. Every run has exactly one, so the counts by kind add up to the number of runs. */
function kindOf({ tool, status, did = NO_CHANGES }: RunRow): Kind {
  if (status === "needs_confirmation" || status === "planned") return "waiting";
  if (EVENT_TOOLS.has(tool)) return "events";
  if (EXPORT_TOOLS.has(tool)) return "exports";
  return totalOf(did) > 0 || MAY_CHANGE.has(status) ? "changes" : "none";
}

/** The statuses of runs that may have changed something, even if no change is known yet. */
const MAY_CHANGE: ReadonlySet<string> = new Set(["running", "interrupted", "unknown"]);

function isInFilter(run: RunRow): boolean {
  const text = search.value.toLowerCase();
  const told = [run.title, run.targeting?.name ?? "", run.client ?? "", run.runId];
  return (
    (kind.value === "all" || kindOf(run) === kind.value) &&
    (status.value === "" || statusWords(run) === status.value) &&
    (text === "" || told.some((one) => one.toLowerCase().includes(text)))
  );
}

function RunTable({ day }: { readonly day: string | undefined }) {
  const from = useSignal(0);
  const runs = runList.value.filter((run) => day === undefined || dateOf(timeOf(run)) === day);
  const { shown, late, holds } = useSteady(runs, ({ runId }) => runId);
  const all = shown.slice(0, shown.length - late);
  const found = all.filter(isInFilter);
  const first = Math.min(from.value, Math.max(0, found.length - 1));
  const rows = found.slice(first, first + MAX_ROWS);
  if (runList.value.length === 0) return <NothingYet />;
  const count = (name: Kind): number => all.filter((run) => kindOf(run) === name).length;
  return (
    <>
      <h1>Runs{day !== undefined && `: ${dayWords(Date.parse(`${day}T00:00`), now.value)}`}</h1>
      {day !== undefined && <a href="#/runs">All runs</a>}
      <div class="row">
        <Filters<Kind | "all">
          label="Kinds of runs"
          chosen={kind.value}
          choose={narrows(kind, from)}
          of={[
            { name: "all", title: "All", count: all.length },
            ...KINDS.map(([name, title]) => ({ name, title, count: count(name) })).filter(
              ({ name, count }) => count > 0 || name === kind.value,
            ),
          ]}
        />
        <span class="push row">
          {late > 0 && <span class="quiet small">{counted(late, "new run")}</span>}
          <StatusChoice all={all} />
          <Search label="Search runs and targetings" value={search.value} change={narrows(search, from)} />
        </span>
      </div>
      {rows.length === 0 ? <p>No run matches.</p> : <ByDay rows={rows} holds={holds} />}
      <Steps from={from} first={first} total={found.length} rows={MAX_ROWS} of="runs" />
    </>
  );
}

function StatusChoice({ all }: { readonly all: readonly RunRow[] }) {
  return (
    <select aria-label="Status" value={status.value} onChange={(event) => set(status, event.currentTarget.value)}>
      <option value="">All statuses</option>
      {[...new Set(all.map(statusWords))].map((one) => (
        <option key={one}>{one}</option>
      ))}
    </select>
  );
}

/** Shows the runs by day. The rows do not move while the pointer is on the list. */
function ByDay({ rows, holds }: Pick<ReturnType<typeof useSteady>, "holds"> & { readonly rows: readonly RunRow[] }) {
  const days = rows.map((run) => dayWords(timeOf(run), now.value));
  return (
    <Table caption="Runs" heads={["Run", "Status", "Result", "Took"]} className="runs stacks" holds={holds}>
      {rows.map((run, at) => (
        <Fragment key={run.runId}>
          {days[at] !== days[at - 1] && (
            <tr>
              <td class="day" colSpan={4}>
                {days[at]}
              </td>
            </tr>
          )}
          <Row run={run} />
        </Fragment>
      ))}
    </Table>
  );
}

function Row({ run }: { readonly run: RunRow }) {
  const { runId, updatedAt, endedAt = updatedAt, status: how } = run;
  const at = timeOf(run);
  const isWaiting = how === "needs_confirmation";
  const isToday = dayWords(at, now.value) === "Today";
  const isOver = !isWaiting && how !== "running" && how !== "planned";
  return (
    <tr>
      <th scope="row">
        <a class="bare" href={isWaiting ? `#/approvals/${runId}` : `#/runs/${runId}`} data-row="go">
          <Title run={run} />
        </a>
        <span class="line quiet small">
          <ShortRequester run={run} /> · {isToday && <Ago at={at} />}
          {isToday && " · "}
          <ClockTime at={at} to="second" />
        </span>
      </th>
      <td>
        <Status of={run} />
      </td>
      <td>{!isWaiting && how !== "planned" && kindOf(run) !== "exports" && <Progress run={run} />}</td>
      <td class="quiet small wide">{isOver && durationWords(endedAt - at)}</td>
    </tr>
  );
}
