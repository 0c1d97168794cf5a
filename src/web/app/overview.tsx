import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { EventCause } from "../sandbox-wire.ts";
import type { ChangeCounts, RunDetail, RunRow } from "../wire.ts";
import {
  Ago,
  Bar,
  type Column,
  Columns,
  Empty,
  Figure,
  Name,
  now,
  type Share,
  sharesText,
  Text,
  type Tone,
  useSteady,
  visible,
} from "./parts.tsx";
import { clockWords, counted, number, percent } from "./plain-words.ts";
import { runPath, useRead } from "./requests.ts";
import { changeShares, NO_CHANGES, ShortRequester, Status, Title, toneOf, totalOf } from "./run-words.tsx";
import { arrived, coverage, hasEnded, hello, metrics, runList, sandbox, verdicts, waitingRuns } from "./state.ts";
import { eventShares, eventsOf, RESULTS, WordsOf } from "./words.tsx";

const HOUR = 3_600_000;
const HOURS = 24;
/** Every sixth hour of the chart has a label. */
const LABEL_EVERY = 6;
/** The maximum number of entries in each list. The views of runs and events show all. */
const MAX_WAITING = 5;
const MAX_ATTENTION = 5;
const MAX_PROBLEMS = 3;
const MAX_RECENT = 6;
const MAX_TARGETINGS = 5;
/** The maximum number of causes that are shown for a run or an event. */
const MAX_CAUSES = 2;
const DISMISSED = "dismissed";

/** The IDs of problems that the person has dismissed in this browser tab. */
const dismissed = signal<readonly string[]>(JSON.parse(sessionStorage.getItem(DISMISSED) ?? "[]"));

function dismiss(id: string): void {
  dismissed.value = [...dismissed.value, id];
  sessionStorage.setItem(DISMISSED, JSON.stringify(dismissed.value));
}

/** Shows runs and problems that need the person's attention, and what happened today. */
export function Overview() {
  const { length } = waitingRuns.value.filter(({ waiting }) => waiting?.stale === undefined && !waiting?.ended);
  if (runList.value.length === 0 && arrived.value === 0) return <NothingYet />;
  return (
    <>
      <h1>
        {hasEnded.value
          ? "The server has ended"
          : length === 0
            ? "Nothing waits for you"
            : counted(length, "approval waits for you", "approvals wait for you")}
      </h1>
      <span class="quiet">
        {hasEnded.value
          ? "This is what it reported last. Nothing here can be decided any more."
          : length === 0
            ? "Agents continue without you."
            : `Agents cannot continue with ${length === 1 ? "it" : "them"} until you decide.`}
      </span>
      <InShort />
      {waitingRuns.value.length > 0 && !hasEnded.value && <Waiting />}
      <div class="overview">
        <Today />
        <div class="grid two top">
          <Attention />
          <div class="card">
            <PerHour />
            <Recent />
          </div>
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
  const { shown: all, holds } = useSteady(waitingRuns.value, ({ runId }) => runId);
  return (
    <ul class="card items waiting" {...holds}>
      {all.slice(0, MAX_WAITING).map((run, at) => (
        <li key={run.runId} class="item">
          <i class="dot accent" />
          <div>
            <Title run={run} />
            <span class="line quiet small">
              <ShortRequester run={run} /> · <Ago at={run.startedAt} />
              {run.waiting !== undefined && (
                <> · {run.waiting.stale === undefined ? <Expires at={run.waiting.expiresAt} /> : STALE}</>
              )}
            </span>
          </div>
          <a class={`button${at === 0 ? " primary" : ""}`} href={`#/approvals/${run.runId}`} data-row="go">
            Review
          </a>
        </li>
      ))}
      {all.length > MAX_WAITING && <LastItem at="#/approvals">and {number(all.length - MAX_WAITING)} more</LastItem>}
    </ul>
  );
}

const STALE = "changed since it was planned: it cannot be approved";

function Expires({ at }: { readonly at: number }) {
  return (
    <>
      expires <Ago at={at} />
    </>
  );
}

/** Returns the runs of the current day, in the person's time zone. */
function today(): readonly RunRow[] {
  const midnight = new Date(now.value).setHours(0, 0, 0, 0);
  return runList.value.filter(({ updatedAt }) => updatedAt >= midnight);
}

/** Returns how many objects the runs created, changed and deleted. */
function changesIn(its: readonly RunRow[]): ChangeCounts {
  const sum = (kind: keyof ChangeCounts): number => its.reduce((all, { did }) => all + (did?.[kind] ?? 0), 0);
  return { created: sum("created"), changed: sum("changed"), deleted: sum("deleted") };
}

function Today() {
  const its = today();
  const changes = changeShares(changesIn(its));
  const count = (...of: readonly RunRow["status"][]): number => its.filter(({ status }) => of.includes(status)).length;
  const ends: readonly Share[] = [
    { tone: "good", count: count("succeeded"), of: "done" },
    { tone: "accent", count: count("running"), of: "running" },
    { tone: "waits", count: count("needs_confirmation", "planned"), of: "waiting" },
    { tone: "partial", count: count("partial"), of: "partly done" },
    { tone: "unknown", count: count("unknown", "interrupted"), of: "unknown or interrupted" },
    { tone: "bad", count: count("failed"), of: "failed" },
    { tone: "idle", count: count("cancelled"), of: "cancelled or declined" },
  ];
  const hasEvents = hello.value?.views.includes("events") === true;
  return (
    <div class={`grid ${hasEvents ? "four" : "two"}`}>
      <Figure title="Changes today" value={number(totalOf(changesIn(its)))}>
        <Bar shares={changes} label="Changes today" />
        <span class="quiet small">
          {sharesText(changes)}
          <ChangedTargetings runs={its} />
        </span>
      </Figure>
      <Figure title="Runs today" value={number(its.length)}>
        <Bar shares={ends} label="Runs today" />
        <span class="quiet small">{sharesText(ends)}</span>
      </Figure>
      {hasEvents && <EventFigures />}
    </div>
  );
}

/** Shows the targetings that runs have changed, the most changed first. */
function ChangedTargetings({ runs }: { readonly runs: readonly RunRow[] }) {
  const groups = [...Map.groupBy(runs, ({ targeting }) => targeting?.name ?? "")]
    .map(([name, its]) => ({ name, total: totalOf(changesIn(its)) }))
    .filter(({ total }) => total > 0)
    .toSorted((one, other) => other.total - one.total);
  return (
    <>
      {groups.slice(0, MAX_TARGETINGS).map(({ name, total }) => (
        <span key={name} class="line">
          {name === "" ? (
            `${counted(total, "targeting")} created, renamed or deleted`
          ) : (
            <>
              <Name of={name} /> {number(total)}
            </>
          )}
        </span>
      ))}
      {groups.length > MAX_TARGETINGS && (
        <a class="line" href="#/runs">
          and {counted(groups.length - MAX_TARGETINGS, "more targeting")}
        </a>
      )}
    </>
  );
}

function EventFigures() {
  const shares = eventShares(verdicts.value);
  const rows = coverage.value;
  const unseen = rows.filter(({ count }) => count === 0).map(({ name }) => name);
  if (rows.length === 0) {
    return ["Test events recorded", "Event coverage"].map((title) => (
      <Figure key={title} title={title} value="–">
        <span class="quiet small">{sandbox.value?.isLost ? "the sandbox does not answer" : "being read…"}</span>
      </Figure>
    ));
  }
  const share = arrived.value === 0 ? "–" : percent(verdicts.value.recorded, arrived.value);
  return (
    <>
      <Figure title="Test events recorded" value={share}>
        <Bar shares={shares} label="Test events" />
        <span class="quiet small">
          {arrived.value === 0
            ? "none has arrived yet"
            : `${sharesText(shares)}, since the sandbox started or was cleared`}
        </span>
      </Figure>
      <Figure title="Event coverage" value={`${number(rows.length - unseen.length)} / ${number(rows.length)}`}>
        <span class="quiet small">
          {unseen.length === 0
            ? "every event was sent"
            : `never sent: ${unseen.slice(0, 3).join(", ")}${unseen.length > 3 ? ", …" : ""}`}
        </span>
      </Figure>
    </>
  );
}

/** Returns the problems of the last 24 hours that the person has not dismissed: of runs, and of events. */
function openProblems() {
  const from = now.value - HOURS * HOUR;
  const isShown = (id: string): boolean => !dismissed.value.includes(id);
  const runs = runList.value.filter(
    (run) => run.updatedAt >= from && problemOf(run) !== undefined && isShown(run.runId),
  );
  return { runs, grouped: groupedByEvent(metrics.value.problems).filter((causes) => isShown(idOf(causes))) };
}

/** Says in one line how many problems there are, and what changed today, because a phone shows both far below. */
function InShort() {
  const { runs, grouped } = openProblems();
  const count = runs.length + grouped.length;
  const changes = changesIn(today());
  const words = [
    ...(count > 0 ? [`${counted(count, "problem needs", "problems need")} attention`] : []),
    ...(totalOf(changes) > 0 ? [`today: ${sharesText(changeShares(changes))}`] : []),
  ];
  return words.length === 0 ? null : <span class="line quiet">{words.join("; ")}.</span>;
}

/**
 * Shows the problems of the last 24 hours: first runs with failures, then causes of dropped events, then other runs
 * that are unfinished or have unknown results.
 */
function Attention() {
  const { runs, grouped } = openProblems();
  const failed = runs.filter(({ counts }) => counts.failed > 0);
  const others = runs.filter(({ counts }) => counts.failed === 0);
  const { shown: problems, holds } = useSteady(grouped, ([first]) => first?.event ?? first?.id ?? "");
  return (
    <div class="card">
      <h2>
        Needs attention <span class="quiet">{number(runs.length + problems.length)}</span>
      </h2>
      {runs.length + problems.length === 0 && <p class="quiet">Nothing failed in the last 24 hours.</p>}
      <ul class="items" {...holds}>
        {failed.slice(0, MAX_ATTENTION).map((run) => (
          <RunProblem key={run.runId} run={run} />
        ))}
        <MoreItems of={failed.length - MAX_ATTENTION} what="runs with failures" at="#/runs" />
        {problems.slice(0, MAX_PROBLEMS).map((causes) => (
          <EventProblem key={causes[0]?.event ?? causes[0]?.id} causes={causes} />
        ))}
        {problems.length > MAX_PROBLEMS && (
          <LastItem at="#/events">All {number(metrics.value.problems.length)} problems of events</LastItem>
        )}
        {others.slice(0, MAX_ATTENTION).map((run) => (
          <RunProblem key={run.runId} run={run} />
        ))}
        <MoreItems of={others.length - MAX_ATTENTION} what="runs" at="#/runs" />
      </ul>
    </div>
  );
}

/**
 * Groups causes by the intended event, so that misspelt event names are in the group of the correct name. The group
 * with the most events comes first.
 */
function groupedByEvent(causes: readonly EventCause[]): readonly (readonly EventCause[])[] {
  const groups = Map.groupBy(causes, ({ event, id }) => event ?? id);
  return [...groups.values()].toSorted((one, other) => eventsOf(other) - eventsOf(one));
}

/** Returns an ID for a group of causes. It stays the same when the sandbox assigns new numbers after a reset. */
function idOf(causes: readonly EventCause[]): string {
  return JSON.stringify(causes.map(({ name, verdict, cause }) => [name, verdict, cause]));
}

function MoreItems({ of, what, at }: { readonly of: number; readonly what: string; readonly at: string }) {
  if (of <= 0) return null;
  return (
    <LastItem at={at}>
      and {number(of)} more {what}
    </LastItem>
  );
}

function LastItem({ at, children }: { readonly at: string; readonly children: ComponentChildren }) {
  return (
    <li class="item">
      <i />
      <a href={at}>{children}</a>
    </li>
  );
}

/** Shows a problem with its causes, a link to it, and a button that dismisses it. */
function Problem(problem: {
  readonly id: string;
  readonly tone: Tone;
  readonly title: ComponentChildren;
  readonly href: string;
  readonly act: "Show" | "Fix rows";
  readonly children: ComponentChildren;
}) {
  const { id, tone, title, href, act, children } = problem;
  return (
    <li class="item">
      <i class={`dot ${tone}`} />
      <div>
        {title}
        <span class="line quiet small">{children}</span>
      </div>
      <span class="ways">
        <a class="button" href={href}>
          {act}
        </a>
        <button type="button" class="plain" aria-label="Dismiss" title="Dismiss" onClick={() => dismiss(id)}>
          ✕
        </button>
      </span>
    </li>
  );
}

/** Shows a run that has failed or unknown items, or that stopped early, with its first causes. */
function RunProblem({ run }: { readonly run: RunRow }) {
  const { runId, updatedAt, counts, noun, fileName, targeting } = run;
  const detail = useRead<RunDetail>(runPath(runId), { version: updatedAt });
  const failures = detail.value?.failures ?? [];
  return (
    <Problem
      id={runId}
      tone={counts.failed > 0 ? "bad" : "idle"}
      title={<Text of={problemOf(run)} />}
      href={`#/runs/${runId}`}
      act={counts.failed > 0 && noun === "row" ? "Fix rows" : "Show"}
    >
      {failures.slice(0, MAX_CAUSES).map(({ count, message }) => (
        <span key={message}>
          {number(count)} × <Text of={message} most={100} /> ·{" "}
        </span>
      ))}
      <OtherCauses of={failures} />
      {fileName === undefined || targeting?.name === undefined ? (
        <Title run={run} />
      ) : (
        <>
          in <Name of={targeting.name} />
        </>
      )}{" "}
      · <Ago at={updatedAt} />
    </Problem>
  );
}

/** Shows how many items have causes that are not listed. */
function OtherCauses({ of }: { readonly of: readonly { readonly count: number }[] }) {
  const rest = of.slice(MAX_CAUSES).reduce((sum, { count }) => sum + count, 0);
  return rest === 0 ? null : <>and {number(rest)} more · </>;
}

/** The maximum number of wrong event names that one problem lists. */
const MAX_NAMES = 2;

/**
 * Shows why an event is not recorded. Lists all causes, including misspelt names, with the number of events of each.
 */
function EventProblem({ causes }: { readonly causes: readonly EventCause[] }) {
  const [first] = causes;
  if (first === undefined) return null;
  const { event, verdict, latest } = first;
  const total = eventsOf(causes);
  const sent = event === undefined ? [] : [...new Set(causes.map(({ name }) => name ?? event))];
  const platforms = [...new Set(causes.flatMap((one) => one.platforms.map(({ platform }) => visible(platform))))];
  return (
    <Problem
      id={idOf(causes)}
      tone={RESULTS[verdict].tone}
      title={
        <>
          {sent.slice(0, MAX_NAMES).map((name, at) => (
            <span key={name}>
              {at > 0 && (sent.length > MAX_NAMES ? ", " : " and ")}
              <code>
                <Text of={name} most={60} />
              </code>
            </span>
          ))}
          {sent.length > MAX_NAMES && ` and ${counted(sent.length - MAX_NAMES, "more name")}`}
          {sent.length > 0 && ": "}
          {counted(total, "event")} {total === 1 ? "does" : "do"} not count
        </>
      }
      href={`#/events/${latest}`}
      act="Show"
    >
      {causes.slice(0, MAX_CAUSES).map(({ id, name, count, cause }) => (
        <span key={id}>
          {number(count)} ×{" "}
          {name !== null && sent.length !== 1 && (
            <>
              <code>
                <Text of={name} most={60} />
              </code>
              :{" "}
            </>
          )}
          <WordsOf of={cause} /> ·{" "}
        </span>
      ))}
      <OtherCauses of={causes} />
      {platforms.slice(0, 3).join(", ")} · last <Ago at={Math.max(...causes.map(({ lastAt }) => lastAt))} />
    </Problem>
  );
}

/** Describes what is wrong with a run; undefined if nothing is. */
function problemOf({ actions, counts, fileName, noun, status }: RunRow): string | undefined {
  const { failed, unknown, notApplied, items } = counts;
  const many = (count: number): string => counted(count, noun);
  if (status === "running" || status === "planned" || status === "needs_confirmation") return undefined;
  const of = fileName === undefined ? "" : ` of ${fileName.slice(0, 80)}`;
  const end = noun === "event" ? `not recorded` : "failed";
  if (failed > 0) return `${number(failed)} of ${many(items)}${of} ${end}`;
  if (unknown > 0) return `The result of ${many(unknown)} is unknown`;
  if (actions.includes("resume") && status === "cancelled")
    return `Cancelled: ${number(notApplied)} of ${many(items)} not applied`;
  return status === "interrupted" ? "Interrupted: it can be resumed" : undefined;
}

/** Shows the number of created, changed and deleted objects in each of the last 24 hours. */
function PerHour() {
  const end = Math.ceil(now.value / HOUR);
  const columns: readonly Column[] = Array.from({ length: HOURS }, (_, at) => {
    const hour = end - HOURS + at;
    const its = runList.value.filter(({ updatedAt }) => Math.floor(updatedAt / HOUR) === hour);
    return { title: clockWords(hour * HOUR, "minute", now.value), shares: changeShares(changesIn(its)) };
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
      <p class="axis small quiet" aria-hidden="true">
        {columns.map(({ title }, at) => (at % LABEL_EVERY === 0 ? <span key={title}>{title.slice(-5)}</span> : null))}
      </p>
      <p class="row small quiet">
        {changeShares(NO_CHANGES).map(({ tone }) => (
          <span key={tone}>
            <i class={`dot ${tone}`} /> {tone}
          </span>
        ))}
        <span class="push">{words}</span>
      </p>
    </>
  );
}

function Recent() {
  const some = runList.value.filter(({ status }) => status !== "needs_confirmation").slice(0, MAX_RECENT);
  const its = today();
  return (
    <>
      <h2>Recent runs</h2>
      {some.length === 0 && <p class="quiet">None has run yet.</p>}
      <ul class="items recent">
        {some.map((run) => (
          <li key={run.runId} class="item">
            <i class={`dot ${toneOf(run)}`} />
            <a class="bare" href={`#/runs/${run.runId}`} data-row="go">
              <Title run={run} />
            </a>
            <span class="quiet small">
              {run.status === "succeeded" ? <Ago at={run.startedAt} /> : <Status of={run} />}
            </span>
          </li>
        ))}
      </ul>
      {its.length > 0 && (
        <p class="small quiet">
          <a href="#/runs">All runs of today ({number(its.length)})</a>
        </p>
      )}
    </>
  );
}
