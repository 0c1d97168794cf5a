import { useRef } from "preact/hooks";
import type { ChangeCounts, RunRow } from "../wire.ts";
import { Ago, Bar, type Column, Columns, Figure, Legend, now, type Share, Text, useSteady } from "./parts.tsx";
import { clockWords, counted, dateOf, number, percent, wholeWords } from "./plain-words.ts";
import { Attention } from "./problems.tsx";
import {
  changeShares,
  Expiry,
  NO_CHANGES,
  NothingYet,
  ShortRequester,
  statusWords,
  Title,
  toneOf,
  totalOf,
} from "./run-words.tsx";
import {
  arrived,
  hasEnded,
  hello,
  isBlocked,
  metrics,
  openRuns,
  runList,
  sandbox,
  timeOf,
  verdicts,
  waitingRuns,
} from "./state.ts";
import { eventShares, SandboxTag } from "./words.tsx";

const HOUR = 3_600_000;
const HOURS = 24;
/** The chart shows the time below every sixth hour. */
const LABEL_EVERY = 6;
/** The maximum number of runs in the list of waiting runs, and of lines in "Changed today". */
const MAX_WAITING = 4;
const MAX_RECENT = 8;

/** Shows runs and problems that need the person's attention, and what happened today. */
export function Overview() {
  const { length } = openRuns.value;
  const today = useRef<HTMLDivElement>(null);
  if (runList.value.length === 0 && arrived.value === 0) return <NothingYet />;
  return (
    <>
      <div class="row">
        <h1>
          {hasEnded.value
            ? "The server has ended"
            : length === 0
              ? "Nothing is waiting for you"
              : counted(length, "approval is waiting", "approvals are waiting")}
        </h1>
        <button type="button" class="plain push narrow" onClick={() => today.current?.scrollIntoView()}>
          Today ↓
        </button>
      </div>
      {hasEnded.value && <span class="quiet">This is what it reported last. Nothing can be decided here.</span>}
      {length > 0 && !hasEnded.value && (
        <span class="quiet">Agents cannot continue with {length === 1 ? "it" : "them"} until you decide.</span>
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

function Waiting() {
  const { shown: all, holds } = useSteady(waitingRuns.value, ({ runId }) => runId);
  return (
    <ul class="card items waiting" {...holds}>
      {all.slice(0, MAX_WAITING).map((run, at) => (
        <li key={run.runId} class="item">
          <i class="dot warn" title={statusWords(run)} />
          <div>
            <Title run={run} />
            <span class="line quiet small">
              <ShortRequester run={run} /> · <Ago at={run.startedAt} />
              {" · "}
              <Expiry of={run} />
              {isBlocked(run) && " · cannot be approved"}
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
          <a href="#/approvals">{counted(all.length - MAX_WAITING, "more approval")}</a>
        </li>
      )}
    </ul>
  );
}

/** Returns the runs of the current day, in the person's time zone. */
function runsOfToday(): readonly RunRow[] {
  const day = dateOf(now.value);
  return runList.value.filter((run) => dateOf(timeOf(run)) === day);
}

/** Returns the runs without those that were completely undone, and without the undos of these. */
function inEffect(its: readonly RunRow[]): readonly RunRow[] {
  const undos = new Set(its.map(({ undoneBy }) => undoneBy));
  return its.filter(({ runId, undoneBy }) => undoneBy === undefined && !undos.has(runId));
}

/** Returns how many objects the runs created, changed and deleted. */
function changesIn(its: readonly RunRow[]): ChangeCounts {
  const sum = (kind: keyof ChangeCounts): number => its.reduce((all, { did }) => all + (did?.[kind] ?? 0), 0);
  return { created: sum("created"), changed: sum("changed"), deleted: sum("deleted") };
}

/** Returns what runs changed, as segments of a bar. Objects that an undo created count as restored, not as created. */
function sharesIn(its: readonly RunRow[]): readonly Share[] {
  return changeShares(changesIn(its), changesIn(its.filter(({ isUndo }) => isUndo)).created);
}

function Today() {
  const its = runsOfToday();
  const net = inEffect(its);
  const undone = its.filter(({ undoneBy }) => undoneBy !== undefined);
  const changes: readonly Share[] = [
    ...sharesIn(net),
    { tone: "idle", count: totalOf(changesIn(undone)), of: "undone" },
  ];
  const count = (...of: readonly RunRow["status"][]): number =>
    its.filter(({ status, undoneBy }) => undoneBy === undefined && of.includes(status)).length;
  const ends: readonly Share[] = [
    { tone: "good", count: count("succeeded"), of: "done" },
    { tone: "waits", count: count("running"), of: "running" },
    { tone: "warn", count: count("needs_confirmation", "planned"), of: "waiting" },
    { tone: "partial", count: count("partial"), of: "partly done" },
    { tone: "unknown", count: count("unknown", "interrupted"), of: "unknown or interrupted" },
    { tone: "bad", count: count("failed"), of: "failed" },
    { tone: "idle", count: count("cancelled"), of: "cancelled or declined" },
    { tone: "idle", count: undone.length, of: "undone" },
  ];
  const hasEvents = hello.value?.views.includes("events") === true;
  return (
    <div class={`grid ${hasEvents ? "four" : "two"}`}>
      <Figure title="Changes today" value={number(totalOf(changesIn(net)))}>
        <Bar shares={changes} label="Changes today" />
        <span class="quiet small">
          <Legend of={changes} /> {totalOf(changesIn(net)) > 0 && "(options, groups and targetings)"}
        </span>
      </Figure>
      <Figure title="Runs today" value={number(its.length)}>
        <Bar shares={ends} label="Runs today" />
        <span class="quiet small">
          <Legend of={ends} />
        </span>
      </Figure>
      {hasEvents && <EventFigures />}
    </div>
  );
}

function EventFigures() {
  const shares = eventShares(verdicts.value);
  const rows = metrics.value.coverage;
  const unseen = rows.filter(({ count }) => count === 0).map(({ name }) => name);
  if (rows.length === 0) {
    return ["Test events recorded", "Event coverage"].map((title) => (
      <Figure key={title} title={<OfSandbox title={title} />} value="–">
        <span class="quiet small">{sandbox.value?.isLost ? "the sandbox does not answer" : "being read…"}</span>
      </Figure>
    ));
  }
  const share = arrived.value === 0 ? "–" : percent(verdicts.value.recorded, arrived.value);
  return (
    <>
      <Figure title={<OfSandbox title="Test events recorded" />} value={share}>
        <Bar shares={shares} label="Test events" />
        <span class="quiet small">
          {arrived.value === 0 ? (
            "none has arrived yet"
          ) : (
            <>
              <Legend of={shares} /> since the sandbox started or was cleared
            </>
          )}
        </span>
      </Figure>
      <Figure
        title={<OfSandbox title="Event coverage" />}
        value={`${number(rows.length - unseen.length)} / ${number(rows.length)}`}
      >
        <span class="quiet small">
          {unseen.length === 0
            ? "every event was sent"
            : `not seen: ${unseen.slice(0, 3).join(", ")}${unseen.length > 3 ? ", …" : ""}`}
        </span>
      </Figure>
    </>
  );
}

function OfSandbox({ title }: { readonly title: string }) {
  return (
    <>
      {title} <SandboxTag />
    </>
  );
}

/** Shows the number of created, changed and deleted objects in each of the last 24 hours, without what was undone. */
function PerHour() {
  const end = Math.ceil(now.value / HOUR);
  const inForce = inEffect(runList.value);
  const columns: readonly Column[] = Array.from({ length: HOURS }, (_, at) => {
    const hour = end - HOURS + at;
    const its = inForce.filter((run) => Math.floor(timeOf(run) / HOUR) === hour);
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
          <span key={tone} class="legend">
            <i class={`dot ${tone}`} /> {tone}
          </span>
        ))}
        <span class="push">{words}</span>
      </p>
    </>
  );
}

/** Shows what today's runs changed, without what was undone: a line for each targeting, and for each other run. */
function ChangedToday() {
  const all = runsOfToday();
  const changed = inEffect(all).filter(({ status, did = NO_CHANGES }) => status === "running" || totalOf(did) > 0);
  const lines = [...Map.groupBy(changed, lineOf).values()];
  const shown = lines.slice(0, MAX_RECENT).flat().length;
  const more = changed.length - shown;
  return (
    <div class="card recent">
      <h2>Changed today</h2>
      {changed.length === 0 && <p class="quiet">Nothing was changed.</p>}
      <ul>
        {lines.slice(0, MAX_RECENT).map((its) => (
          <TodayLine key={its[0]?.runId} of={its} />
        ))}
      </ul>
      {all.length > shown && (
        <a href={`#/runs/${dateOf(now.value)}`}>
          {more > 0
            ? `and ${counted(more, "more run")} with changes`
            : `${all.length > 1 ? "All " : ""}${counted(all.length, "run")} today`}
        </a>
      )}
    </div>
  );
}

/** Returns the key of the line in which a run is shown. Runs of a targeting with a known name have the same line. */
function lineOf({ runId, targeting: { _id, name } = {} }: RunRow): string {
  return name === undefined ? runId : (_id ?? name);
}

/** One kind of change in a targeting, by one or more runs. Without `words`, there is one run, whose title is shown. */
interface Part {
  readonly words?: string;
  readonly runs: readonly RunRow[];
}

const MOVED = " moved";

/**
 * The kinds of changes that a line can describe. Each has a function that returns how much a run changed in this way,
 * and the words after the number and its noun. `noun` is set if the noun does not depend on the run, and `sign` stands
 * before the number.
 */
const KINDS: readonly (readonly [(run: RunRow) => number | undefined, words: string, noun?: string, sign?: string])[] =
  [
    [({ did }) => did?.created, " added"],
    [({ did }) => did?.deleted, " deleted"],
    [({ how }) => how?.renamed, " renamed"],
    [({ how }) => how?.moved, MOVED],
    [({ how }) => how?.exposed, " set to show or hide sub-options", "group"],
    [({ how }) => how?.added, "", "Context ID", "+"],
    [({ how }) => how?.removed, "", "Context ID", "−"],
    [({ how, did }) => (how ? 0 : did?.changed), " changed"],
  ];

/** Returns totals of what runs changed, by kind. Undos, running runs and changes of targetings are listed singly. */
function partsOf(its: readonly RunRow[]): readonly Part[] {
  const { summed = [], apart = [] } = Object.groupBy(its, ({ has, status, isUndo }) =>
    isUndo || status === "running" || has === "targetings" ? "apart" : "summed",
  );
  const parts = KINDS.map(([count, words, noun, sign = ""]): Part => {
    const runs = summed.filter((run) => count(run));
    const sum = runs.reduce((all, run) => all + (count(run) ?? 0), 0);
    const what = noun === undefined && runs.some(({ has }) => has) ? wholeWords(sum) : counted(sum, noun ?? "option");
    // Only if all these runs moved objects to the same group, the group is named.
    const [into, ...others] = new Set(runs.map(({ how }) => how?.into));
    const end = words === MOVED && into && others.length === 0 ? ` to ${into}` : "";
    return { words: sign + what + words + end, runs };
  });
  return [...parts.filter(({ runs }) => runs.length > 0), ...apart.map((run) => ({ runs: [run] }))];
}

function TodayLine({ of: its }: { readonly of: readonly RunRow[] }) {
  const [run] = its;
  if (run === undefined) return null;
  const name = lineOf(run) === run.runId ? undefined : run.targeting?.name;
  const worst = its.find((one) => toneOf(one) === "bad") ?? its.find((one) => toneOf(one) !== "good") ?? run;
  const parts: readonly Part[] = name === undefined ? [{ runs: its }] : partsOf(its);
  const said = new Set<RunRow>();
  const requesters = new Map(its.map((one) => [`${one.requestedBy} ${one.caller} ${one.client}`, one]));
  const by = [...requesters].map(([key, one]) => (
    <span key={key} class="quiet small">
      {" · "}
      <ShortRequester run={one} />
    </span>
  ));
  return (
    <li>
      <i class={`dot ${toneOf(worst)}`} title={statusWords(worst)} />
      <div>
        {name !== undefined && (
          <strong>
            <Text of={name} most={120} />
          </strong>
        )}
        {parts.length > 1 ? by : name !== undefined && ": "}
        {parts.map((part, at) => {
          // A run can be in several parts. Its problems are described only in the first of them.
          const trouble = part.runs.filter((one) => !said.has(one));
          for (const one of trouble) said.add(one);
          return (
            <div key={at} class={parts.length === 1 ? "inline" : ""}>
              <TodayPart {...part} trouble={trouble} isWithin={name !== undefined} />
            </div>
          );
        })}
        {parts.length === 1 && by}
      </div>
    </li>
  );
}

/** Shows one kind of change, or the title of a run. Links to the run, or lists the runs if there are several. */
function TodayPart(part: Part & { readonly trouble: readonly RunRow[]; readonly isWithin: boolean }) {
  const { words, runs, trouble, isWithin } = part;
  const [run] = runs;
  if (run === undefined) return null;
  const shown = (
    <>
      {words === undefined ? <Title run={run} {...(isWithin && { isWithin })} /> : <Text of={words} most={200} />}
      {troubleWords(trouble).map((one) => `, ${one}`)}
    </>
  );
  if (runs.length === 1) {
    return (
      <a class="bare" href={`#/runs/${run.runId}`} data-row="go">
        {shown}
      </a>
    );
  }
  return (
    <details>
      <summary>{shown}</summary>
      <ul>
        {runs.map((one) => (
          <li key={one.runId}>
            <i class={`dot ${toneOf(one)}`} title={statusWords(one)} />
            <TodayPart runs={[one]} trouble={[one]} isWithin={isWithin} />
          </li>
        ))}
      </ul>
    </details>
  );
}

/** Returns in words what the colour of a line means: `58 rows failed`. Empty if all runs succeeded. */
function troubleWords(its: readonly RunRow[]): readonly string[] {
  const open = its.filter((run) => toneOf(run) !== "good");
  const counts = (["failed", "unknown"] as const).flatMap((kind) => {
    const count = open.reduce((sum, run) => sum + run.counts[kind], 0);
    return count === 0 ? [] : [`${counted(count, open[0]?.noun ?? "item")} ${kind}`];
  });
  return counts.length > 0 ? counts : open.slice(0, 1).map((run) => statusWords(run).toLowerCase());
}
