import type { EventCause } from "../sandbox-wire.ts";
import type { RunRow } from "../wire.ts";
import { Ago, Bar, type Column, Columns, Empty, Figure, now, type Share, sharesText, Text, visible } from "./parts.tsx";
import { durationWords, number } from "./plain-words.ts";
import { Requester, Status, Title } from "./run-words.tsx";
import { arrived, coverage, hello, metrics, runList, verdicts, waitingRuns } from "./state.ts";
import { RESULTS, WordsOf } from "./words.tsx";

const HOUR = 3_600_000;
const HOURS = 24;
/** How many runs of each list are shown; the others are in their view. */
const MOST_WAITING = 5;
const MOST_ATTENTION = 5;
const MOST_PROBLEMS = 3;
const MOST_RECENT = 6;

/** What needs the person, and what happened today. */
export function Overview() {
  const { length } = waitingRuns.value;
  if (runList.value.length === 0 && arrived.value === 0) return <NothingYet />;
  return (
    <>
      <h1>
        {length === 0
          ? "Nothing waits for you"
          : length === 1
            ? "1 change waits for you"
            : `${number(length)} changes wait for you`}
      </h1>
      <span class="quiet">
        {length === 0 ? "Agents continue without you." : "Agents cannot continue with them until you decide."}
      </span>
      {length > 0 && <Waiting />}
      <Today />
      <div class="grid two top">
        <Attention />
        <div class="card">
          <PerHour />
          <Recent />
        </div>
      </div>
    </>
  );
}

function NothingYet() {
  return (
    <Empty title="Nothing happened yet">
      What agents change and send is shown here, and what needs your approval. Ask your agent, for example: “Which
      targetings are there?”
    </Empty>
  );
}

function Waiting() {
  const all = waitingRuns.value;
  return (
    <ul class="card items waiting">
      {all.slice(0, MOST_WAITING).map((run, at) => (
        <li key={run.runId} class="item">
          <i class="dot warn" />
          <div>
            <Title run={run} />
            <span class="line quiet small">
              <Requester run={run} /> · <Ago at={run.startedAt} />
              {run.waiting !== undefined && (
                <>
                  {" "}
                  · expires <Ago at={run.waiting.expiresAt} />
                </>
              )}
            </span>
          </div>
          <a class={`button${at === 0 ? " primary" : ""}`} href={`#/approvals/${run.runId}`} data-row="go">
            Review
          </a>
        </li>
      ))}
      {all.length > MOST_WAITING && (
        <li class="item">
          <i />
          <a href="#/approvals">and {number(all.length - MOST_WAITING)} more</a>
        </li>
      )}
    </ul>
  );
}

/** The runs that began today, by the person's own clock. */
function today(): readonly RunRow[] {
  const midnight = new Date(now.value).setHours(0, 0, 0, 0);
  return runList.value.filter(({ updatedAt }) => updatedAt >= midnight);
}

function Today() {
  const its = today();
  const sum = (kind: "created" | "changed" | "deleted"): number =>
    its.reduce((all, { did }) => all + (did?.[kind] ?? 0), 0);
  const changes = [
    { tone: "created", count: sum("created"), of: "created" },
    { tone: "changed", count: sum("changed"), of: "changed" },
    { tone: "deleted", count: sum("deleted"), of: "deleted" },
  ];
  const count = (...of: readonly RunRow["status"][]): number => its.filter(({ status }) => of.includes(status)).length;
  const ends: readonly Share[] = [
    { tone: "good", count: count("succeeded"), of: "done" },
    { tone: "accent", count: count("running"), of: "running" },
    { tone: "warn", count: count("needs_confirmation", "planned"), of: "waiting" },
    { tone: "partial", count: count("partial"), of: "partly done" },
    { tone: "unknown", count: count("unknown", "interrupted"), of: "unknown or interrupted" },
    { tone: "bad", count: count("failed"), of: "failed" },
    { tone: "idle", count: count("cancelled"), of: "cancelled or declined" },
  ];
  const hasEvents = hello.value?.views.includes("events") === true;
  return (
    <div class={`grid ${hasEvents ? "four" : "two"}`}>
      <Figure title="Changes today" value={number(changes.reduce((all, one) => all + one.count, 0))}>
        <Bar shares={changes} label="Changes today" />
        <span class="quiet small">{sharesText(changes)}</span>
      </Figure>
      <Figure title="Runs today" value={number(its.length)}>
        <Bar shares={ends} label="Runs today" />
        <span class="quiet small">{sharesText(ends)}</span>
      </Figure>
      {hasEvents && <EventFigures />}
    </div>
  );
}

function EventFigures() {
  const { recorded, ignored, rejected } = verdicts.value;
  const shares = [
    { tone: "recorded", count: recorded, of: "recorded" },
    { tone: "ignored", count: ignored, of: "dropped" },
    { tone: "rejected", count: rejected, of: "rejected" },
  ];
  const rows = coverage.value;
  const unseen = rows.filter(({ count }) => count === 0).map(({ name }) => name);
  const percent = arrived.value === 0 ? "–" : `${Math.round((100 * recorded) / arrived.value)} %`;
  return (
    <>
      <Figure title="Test events recorded" value={percent}>
        <Bar shares={shares} label="Test events" />
        <span class="quiet small">{arrived.value === 0 ? "none has arrived yet" : sharesText(shares)}</span>
      </Figure>
      <Figure title="Event coverage" value={`${number(rows.length - unseen.length)} / ${number(rows.length)}`}>
        <span class="quiet small">
          {unseen.length === 0
            ? "every event was seen"
            : `not seen: ${unseen.slice(0, 3).join(", ")}${unseen.length > 3 ? ", …" : ""}`}
        </span>
      </Figure>
    </>
  );
}

/** What went wrong in the last day: rows that failed, outcomes that are unknown, events that were dropped. */
function Attention() {
  const from = now.value - HOURS * HOUR;
  const runs = runList.value.filter((run) => run.updatedAt >= from && problemOf(run) !== undefined);
  const { ignored, rejected } = verdicts.value;
  const dropped = ignored + rejected;
  const more = runs.length - MOST_ATTENTION;
  return (
    <div class="card">
      <h2>Needs attention</h2>
      {runs.length === 0 && dropped === 0 && <p class="quiet">Nothing failed in the last 24 hours.</p>}
      <ul class="items">
        {metrics.value.problems.slice(0, MOST_PROBLEMS).map((problem) => (
          <EventProblem key={problem.id} problem={problem} />
        ))}
        {runs.slice(0, MOST_ATTENTION).map((run) => (
          <li key={run.runId} class="item">
            <i class={`dot ${run.counts.failed > 0 ? "bad" : "warn"}`} />
            <div>
              {problemOf(run)}
              <span class="line quiet small">
                <Title run={run} /> · <Ago at={run.updatedAt} />
              </span>
            </div>
            <a class="button" href={`#/runs/${run.runId}`}>
              {run.counts.failed > 0 ? "Fix rows" : "Show"}
            </a>
          </li>
        ))}
      </ul>
      {more > 0 && (
        <p>
          <a href="#/runs">and {number(more)} more runs</a>
        </p>
      )}
    </div>
  );
}

/** Why events would not count: one cause, how many were lost, and where. */
function EventProblem({ problem }: { readonly problem: EventCause }) {
  const { name, verdict, cause, count, latest, lastAt, platforms } = problem;
  const { tone, title } = RESULTS[verdict];
  return (
    <li class="item">
      <i class={`dot ${tone}`} />
      <div>
        {name !== null && (
          <>
            <code>
              <Text of={name} most={60} />
            </code>
            :{" "}
          </>
        )}
        <WordsOf of={cause} />
        <span class="line quiet small">
          {number(count)} {title.toLowerCase()} ·{" "}
          {platforms
            .map(({ platform }) => visible(platform))
            .slice(0, 3)
            .join(", ")}{" "}
          · last <Ago at={lastAt} />
        </span>
      </div>
      <a class="button" href={`#/events/${latest}`}>
        Show
      </a>
    </li>
  );
}

/** What is wrong with a run, in words; undefined where nothing is. */
function problemOf({ counts, fileName, status }: RunRow): string | undefined {
  const { failed, unknown, items } = counts;
  const noun = fileName === undefined ? "item" : "row";
  const many = (count: number): string => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
  if (status === "running") return undefined;
  if (failed > 0) return `${number(failed)} of ${many(items)} failed`;
  if (unknown > 0) return `The result of ${many(unknown)} is unknown`;
  return status === "interrupted" ? "Interrupted: it can be resumed" : undefined;
}

/** What was created, changed and deleted in each of the last 24 hours. */
function PerHour() {
  const end = Math.ceil(now.value / HOUR);
  const columns: readonly Column[] = Array.from({ length: HOURS }, (_, at) => {
    const hour = end - HOURS + at;
    const its = runList.value.filter(({ updatedAt }) => Math.floor(updatedAt / HOUR) === hour);
    const sum = (kind: "created" | "changed" | "deleted"): number =>
      its.reduce((all, { did }) => all + (did?.[kind] ?? 0), 0);
    return {
      title: `${new Date(hour * HOUR).getHours()}:00`,
      shares: [
        { tone: "created", count: sum("created"), of: "created" },
        { tone: "changed", count: sum("changed"), of: "changed" },
        { tone: "deleted", count: sum("deleted"), of: "deleted" },
      ],
    };
  });
  const all = columns.map(({ shares }) => shares.reduce((sum, { count }) => sum + count, 0));
  const busiest = columns[all.indexOf(Math.max(...all))];
  const total = all.reduce((sum, count) => sum + count, 0);
  const words =
    total === 0 ? "none" : `${number(total)} in all, most at ${busiest?.title} (${number(Math.max(...all))})`;
  return (
    <>
      <h2>
        Changes per hour <span class="quiet small">last 24 h</span>
      </h2>
      <Columns columns={columns} label={`Changes in each of the last 24 hours: ${words}`} />
      <p class="row small quiet">
        <span>
          <i class="dot created" /> created
        </span>
        <span>
          <i class="dot warn-bar" /> changed
        </span>
        <span>
          <i class="dot deleted" /> deleted
        </span>
        <span class="push">{words}</span>
      </p>
    </>
  );
}

function Recent() {
  const some = runList.value.filter(({ status }) => status !== "needs_confirmation").slice(0, MOST_RECENT);
  return (
    <>
      <h2>Recent runs</h2>
      {some.length === 0 && <p class="quiet">None has run yet.</p>}
      <ul class="items recent">
        {some.map((run) => (
          <li key={run.runId} class="item">
            <i class={`dot ${run.status}`} />
            <a class="bare" href={`#/runs/${run.runId}`} data-row="go">
              <Title run={run} />
            </a>
            <span class="quiet small">
              {run.status === "succeeded" ? (
                durationWords(run.updatedAt - (run.beganAt ?? run.startedAt))
              ) : (
                <Status of={run} />
              )}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}
