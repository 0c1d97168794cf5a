import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import type { ChangeCounts, RunRow } from "../wire.ts";
import {
  Ago,
  Bar,
  type Column,
  Columns,
  Empty,
  Figure,
  now,
  type Share,
  sharesText,
  Text,
  useSteady,
} from "./parts.tsx";
import { clockWords, counted, dateOf, number, percent } from "./plain-words.ts";
import { Attention } from "./problems.tsx";
import { changeShares, NO_CHANGES, ShortRequester, statusWords, Title, toneOf, totalOf } from "./run-words.tsx";
import { arrived, coverage, hasEnded, hello, runList, sandbox, timeOf, verdicts, waitingRuns } from "./state.ts";
import { eventShares } from "./words.tsx";

const HOUR = 3_600_000;
const HOURS = 24;
/** Every sixth hour of the chart has a label. */
const LABEL_EVERY = 6;
/** The maximum number of entries in each list. */
const MAX_WAITING = 4;
const MAX_RECENT = 8;

/** Shows runs and problems that need the person's attention, and what happened today. */
export function Overview() {
  const { length } = waitingRuns.value.filter(({ waiting }) => waiting?.stale === undefined && !waiting?.ended);
  const today = useRef<HTMLDivElement>(null);
  if (runList.value.length === 0 && arrived.value === 0) return <NothingYet />;
  return (
    <>
      <div class="row">
        <h1>
          {hasEnded.value
            ? "The server has ended"
            : length === 0
              ? "Nothing waits for you"
              : counted(length, "approval waits for you", "approvals wait for you")}
        </h1>
        <button type="button" class="plain push narrow" onClick={() => today.current?.scrollIntoView()}>
          Today ↓
        </button>
      </div>
      {hasEnded.value && (
        <span class="quiet">This is what it reported last. Nothing here can be decided any more.</span>
      )}
      {waitingRuns.value.length > 0 && !hasEnded.value && <Waiting />}
      <div class="grid two top">
        <Attention />
        <div ref={today} class="reached">
          <ChangedToday />
        </div>
      </div>
      <Today />
      <div class="card">
        <PerHour />
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
          <i class="dot warn" title="Waits for approval" />
          <div>
            <Title run={run} />
            <span class="line quiet small">
              <ShortRequester run={run} /> · <Ago at={run.startedAt} />
              {run.waiting?.stale !== undefined && ` · ${STALE}`}
            </span>
          </div>
          <a class={`button${at === 0 ? " primary" : ""}`} href={`#/approvals/${run.runId}`} data-row="go">
            Review
          </a>
        </li>
      ))}
      {all.length > MAX_WAITING && (
        <li class="item">
          <i />
          <a href="#/approvals">{number(all.length - MAX_WAITING)} more</a>
        </li>
      )}
    </ul>
  );
}

const STALE = "changed since it was planned: it cannot be approved";

/** Returns the runs of the current day, in the person's time zone. */
function runsOfToday(): readonly RunRow[] {
  const day = dateOf(now.value);
  return runList.value.filter((run) => dateOf(timeOf(run)) === day);
}

/** Returns how many objects the runs created, changed and deleted. */
function changesIn(its: readonly RunRow[]): ChangeCounts {
  const sum = (kind: keyof ChangeCounts): number => its.reduce((all, { did }) => all + (did?.[kind] ?? 0), 0);
  return { created: sum("created"), changed: sum("changed"), deleted: sum("deleted") };
}

/** Returns the changes of runs as segments of a bar. What an undo created is restored. */
function sharesIn(its: readonly RunRow[]): readonly Share[] {
  return changeShares(changesIn(its), changesIn(its.filter(({ isUndo }) => isUndo)).created);
}

function Today() {
  const its = runsOfToday();
  const changes = sharesIn(its);
  const count = (...of: readonly RunRow["status"][]): number => its.filter(({ status }) => of.includes(status)).length;
  const ends: readonly Share[] = [
    { tone: "good", count: count("succeeded"), of: "done" },
    { tone: "waits", count: count("running"), of: "running" },
    { tone: "warn", count: count("needs_confirmation", "planned"), of: "waiting" },
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
          {sharesText(changes)} {totalOf(changesIn(its)) > 0 && "(options, groups and targetings)"}
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
            : `${sharesText(shares)}, counted from the start or last clearing of the sandbox`}
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

/** Shows the number of created, changed and deleted objects in each of the last 24 hours. */
function PerHour() {
  const end = Math.ceil(now.value / HOUR);
  const columns: readonly Column[] = Array.from({ length: HOURS }, (_, at) => {
    const hour = end - HOURS + at;
    const its = runList.value.filter((run) => Math.floor(timeOf(run) / HOUR) === hour);
    return { title: clockWords(hour * HOUR, "minute", now.value), shares: sharesIn(its) };
  });
  const all = columns.map(({ shares }) => shares.reduce((sum, { count }) => sum + count, 0));
  const most = Math.max(...all);
  const busiest = columns[all.indexOf(most)]?.title;
  const total = all.reduce((sum, count) => sum + count, 0);
  const words =
    total === 0
      ? "none"
      : `${number(total)}${total === most ? `, all at ${busiest}` : ` in all, most at ${busiest} (${number(most)})`}`;
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
        {(["created", "changed", "deleted"] as const).map((tone) => (
          <span key={tone}>
            <i class={`dot ${tone}`} /> {tone}
          </span>
        ))}
        <span class="push">{words}</span>
      </p>
    </>
  );
}

/** Shows what the runs of today changed: a line for each targeting with the sum, or with the title of its only run. */
function ChangedToday() {
  const all = runsOfToday();
  const changed = all.filter(({ status, did = NO_CHANGES }) => status === "running" || totalOf(did) > 0);
  const lines = [...Map.groupBy(changed, lineOf).values()];
  const shown = lines.slice(0, MAX_RECENT).flat().length;
  const more = changed.length - shown;
  return (
    <div class="card recent">
      <h2>Today</h2>
      {changed.length === 0 && <p class="quiet">Nothing was changed.</p>}
      <ul>
        {lines.slice(0, MAX_RECENT).map((its) => (
          <TodayLine key={its[0]?.runId} of={its} />
        ))}
      </ul>
      {all.length > shown && (
        <a href={`#/runs/${dateOf(now.value)}`}>
          {more > 0 ? `and ${counted(more, "more run")} with changes` : `All ${counted(all.length, "run")} of today`}
        </a>
      )}
    </div>
  );
}

/** Returns the key of the line that shows a run. Runs that change targetings themselves have a line each. */
function lineOf({ runId, tool, targeting }: RunRow): string {
  return targeting?.name === undefined || tool.includes("_targeting") ? runId : (targeting._id ?? targeting.name);
}

function TodayLine({ of: its }: { readonly of: readonly RunRow[] }) {
  const [run] = its;
  if (run === undefined) return null;
  const name = lineOf(run) !== run.runId && (
    <>
      <strong>
        <Text of={run.targeting?.name} most={120} />
      </strong>
      {": "}
    </>
  );
  if (its.length === 1) return <TodayRun run={run} name={name} />;
  const worst = its.find((one) => toneOf(one) === "bad") ?? its.find((one) => toneOf(one) !== "good") ?? run;
  return (
    <li>
      <i class={`dot ${toneOf(worst)}`} title={statusWords(worst)} />
      <details>
        <summary>
          {name}
          {sumWords(its)}
        </summary>
        <ul>
          {its.map((one) => (
            <TodayRun key={one.runId} run={one} name />
          ))}
        </ul>
      </details>
    </li>
  );
}

/** Shows a run of today. `name`: the name of the targeting before the title, if the title need not have it. */
function TodayRun({ run, name }: { readonly run: RunRow; readonly name: ComponentChildren }) {
  return (
    <li>
      <i class={`dot ${toneOf(run)}`} title={statusWords(run)} />
      <a class="bare" href={`#/runs/${run.runId}`} data-row="go">
        {name}
        <Title run={run} {...(name && { isWithin: true as const })} />
        {troubleWords([run]).map((words) => `, ${words}`)}
      </a>
    </li>
  );
}

/** Says what the colour of a line says: `58 failed`. Empty if every run succeeded. */
function troubleWords(its: readonly RunRow[]): readonly string[] {
  const open = its.filter((run) => toneOf(run) !== "good");
  const counts = (["failed", "unknown"] as const).flatMap((kind) => {
    const count = open.reduce((sum, run) => sum + run.counts[kind], 0);
    return count === 0 ? [] : [`${number(count)} ${kind}`];
  });
  return counts.length > 0 ? counts : open.slice(0, 1).map((run) => statusWords(run).toLowerCase());
}

/** Describes what runs did together: `332 added, 58 failed, 25 renamed, +60 −1 Context IDs`. */
function sumWords(its: readonly RunRow[]): string {
  const { created, deleted } = changesIn(its);
  const restored = changesIn(its.filter(({ isUndo }) => isUndo)).created;
  const sum = (kind: keyof NonNullable<RunRow["how"]>) => its.reduce((all, { how }) => all + (how?.[kind] ?? 0), 0);
  const ids = [
    { count: sum("added"), sign: "+" },
    { count: sum("removed"), sign: "−" },
  ].filter(({ count }) => count > 0);
  const parts = [
    { count: created - restored, words: "added" },
    { count: restored, words: "restored" },
    { count: deleted, words: "deleted" },
    { count: sum("renamed"), words: "renamed" },
    { count: sum("moved"), words: "moved" },
    { count: sum("exposed"), words: "set to show or hide sub-options" },
    { count: changesIn(its.filter(({ how }) => how === undefined)).changed, words: "changed" },
  ];
  const did = parts.filter(({ count }) => count > 0).map(({ count, words }) => `${number(count)} ${words}`);
  const signed = ids.map(({ count, sign }) => sign + number(count)).join(" ");
  if (signed !== "") did.push(`${signed} Context ${signed.slice(1) === "1" ? "ID" : "IDs"}`);
  return [...did.slice(0, 1), ...troubleWords(its), ...did.slice(1)].join(", ");
}
