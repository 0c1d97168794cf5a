import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { EventCause } from "../sandbox-wire.ts";
import type { RunDetail, RunRow } from "../wire.ts";
import { Ago, Name, now, Text, type Tone, useSteady, visible } from "./parts.tsx";
import { counted, number } from "./plain-words.ts";
import { runPath, useRead } from "./requests.ts";
import { Title } from "./run-words.tsx";
import { metrics, runList, set } from "./state.ts";
import { eventsOf, RESULTS, WordsOf } from "./words.tsx";

// The problems of runs and of events that need the person's attention.

/** For how long problems are shown, in milliseconds. */
const DAY = 24 * 3_600_000;
/** The maximum number of problems of runs, and of those of events, before the person presses "Show more". */
const MAX_PROBLEMS = 4;
/** The maximum number of causes that are shown for a run or an event. */
const MAX_CAUSES = 2;
const DISMISSED = "dismissed";

/** The IDs of problems that the person has dismissed in this browser tab. */
const dismissed = signal<readonly string[]>(JSON.parse(sessionStorage.getItem(DISMISSED) ?? "[]"));

function dismiss(id: string): void {
  dismissed.value = [...dismissed.value, id];
  sessionStorage.setItem(DISMISSED, JSON.stringify(dismissed.value));
}

/** A problem of a run, or of the events with the same intended name. */
interface OpenProblem {
  readonly key: string | number;
  /** How many items or events it concerns. */
  readonly count: number;
  readonly run?: RunRow;
  readonly causes?: readonly EventCause[];
}

/** Returns the problems of the last 24 hours that the person has not dismissed, the largest first. */
export function openProblems(): readonly OpenProblem[] {
  const from = now.value - DAY;
  const isShown = (id: string): boolean => !dismissed.value.includes(id);
  const runs = runList.value.filter(
    (run) => run.updatedAt >= from && problemOf(run) !== undefined && isShown(run.runId),
  );
  const groups = Map.groupBy(metrics.value.problems, ({ event, id }) => event ?? id);
  return [
    ...runs.map((run) => ({ key: run.runId, count: run.counts.failed + run.counts.unknown, run })),
    ...[...groups]
      .filter(([, causes]) => isShown(idOf(causes)))
      .map(([key, causes]) => ({ key, count: eventsOf(causes), causes })),
  ].toSorted((one, other) => other.count - one.count);
}

const showsAll = signal(false);

/**
 * Shows the problems of the last 24 hours. At first only the largest ones, of runs and of events, so that neither kind
 * hides the other.
 */
export function Attention() {
  const problems = openProblems();
  const [ofRuns, ofEvents] = [problems.filter(({ run }) => run), problems.filter(({ causes }) => causes)];
  const first = new Set([...ofRuns.slice(0, MAX_PROBLEMS), ...ofEvents.slice(0, MAX_PROBLEMS)]);
  const { shown, holds } = useSteady(showsAll.value ? problems : problems.filter((one) => first.has(one)), keyOf);
  const rest = problems.length - first.size;
  return (
    <div class="card">
      <h2>
        Needs attention <span class="quiet">{number(problems.length)}</span>
      </h2>
      {problems.length === 0 && <p class="quiet">Nothing failed in the last 24 hours.</p>}
      <ul class="items" {...holds}>
        {shown.map(({ key, run, causes = [] }) =>
          run === undefined ? <EventProblem key={key} causes={causes} /> : <RunProblem key={key} run={run} />,
        )}
        {rest > 0 && (
          <li class="item">
            <i />
            <button type="button" class="plain" onClick={() => set(showsAll, !showsAll.value)}>
              {showsAll.value ? "Show fewer" : `Show ${number(rest)} more`}
            </button>
          </li>
        )}
      </ul>
    </div>
  );
}

const keyOf = ({ key }: OpenProblem): string | number => key;

/** Returns an ID for a group of causes. It stays the same when the sandbox assigns new numbers after a reset. */
function idOf(causes: readonly EventCause[]): string {
  return JSON.stringify(causes.map(({ name, verdict, cause }) => [name, verdict, cause]));
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

/**
 * Shows why events with the same intended name do not count: first the most frequent cause, then the others, including
 * misspelt names.
 */
function EventProblem({ causes }: { readonly causes: readonly EventCause[] }) {
  const [first, ...others] = causes;
  if (first === undefined) return null;
  const { count, verdict, name, otherNames, cause, latest } = first;
  const platforms = [...new Set(causes.flatMap((one) => one.platforms.map(({ platform }) => visible(platform))))];
  return (
    <Problem
      id={idOf(causes)}
      tone={RESULTS[verdict].tone}
      title={
        <>
          {number(count)} {otherNames === undefined && <EventName of={name} />}
          {count === 1 ? "event does" : "events do"} not count: <WordsOf of={cause} />
        </>
      }
      href={`#/events/${latest}`}
      act="Show"
    >
      {others.slice(0, MAX_CAUSES).map((one) => (
        <span key={one.id}>
          {number(one.count)} × <EventName of={one.name} end=": " />
          <WordsOf of={one.cause} /> ·{" "}
        </span>
      ))}
      <OtherCauses of={others} />
      {platforms.slice(0, 3).join(", ")} · last <Ago at={Math.max(...causes.map(({ lastAt }) => lastAt))} />
    </Problem>
  );
}

/** Shows the name of an event before further words. */
function EventName({ of, end = " " }: { readonly of: string | null; readonly end?: string }) {
  return of === null ? null : (
    <>
      <code>
        <Text of={of} most={60} />
      </code>
      {end}
    </>
  );
}

/** Describes what is wrong with a run; undefined if nothing is. */
function problemOf({ actions, counts, fileName, noun, status }: RunRow): string | undefined {
  const { failed, unknown, notApplied, items } = counts;
  const many = (count: number): string => counted(count, noun);
  if (status === "running" || status === "planned" || status === "needs_confirmation") return undefined;
  const of = fileName === undefined ? "" : ` of ${fileName.slice(0, 80)}`;
  if (failed > 0) return `${number(failed)} of ${many(items)}${of} failed`;
  if (unknown > 0) return `The result of ${many(unknown)} is unknown`;
  if (actions.includes("resume") && status === "cancelled")
    return `Cancelled: ${number(notApplied)} of ${many(items)} not applied`;
  return status === "interrupted" ? "Interrupted: it can be resumed" : undefined;
}
