import { signal } from "@preact/signals";
import { type ComponentChildren, Fragment } from "preact";
import type { EventCause, EventFigures } from "../sandbox-wire.ts";
import type { FailureRow, RunDetail, RunRow } from "../wire.ts";
import { Ago, now, Text, type Tone, useSteady } from "./parts.tsx";
import { counted, number } from "./plain-words.ts";
import { runPath, useRead } from "./requests.ts";
import { Cause, countIn, heldBack } from "./run-problems.tsx";
import { Title } from "./run-words.tsx";
import { clockAhead, metrics, runList, set } from "./state.ts";
import { Fix, RESULTS, SandboxTag, WordsOf } from "./words.tsx";

// The problems of runs and of events that need the person's attention.

/** For how long problems of runs are shown, in milliseconds. */
const DAY = 24 * 3_600_000;
/** How many problems of runs, and how many of events, are shown before the person presses "Show more". */
const MAX_PROBLEMS = 4;
/** How many causes are shown at most for the first run with failed items (`MAX_CAUSES`), and for each other run. */
const MAX_CAUSES = 6;
const OTHER_CAUSES = 2;
const DISMISSED = "dismissed";

/** The IDs of problems that the person has dismissed in this browser tab. */
const dismissed = signal<readonly string[]>(JSON.parse(sessionStorage.getItem(DISMISSED) ?? "[]"));

function dismiss(ids: readonly string[]): void {
  dismissed.value = [...dismissed.value, ...ids];
  sessionStorage.setItem(DISMISSED, JSON.stringify(dismissed.value));
}

/** What is wrong with one run, or a group of causes for which events do not count. */
interface OpenProblem {
  readonly key: string;
  /** How many items or events have the problem. */
  readonly count: number;
  readonly run?: RunRow;
  readonly causes?: Causes;
}

/** Why events do not count: all causes of one event name, or a single cause of several names or none. */
type Causes = EventFigures["problems"];

/**
 * Returns the problems that the person has not dismissed: those of runs that changed in the last 24 hours, then those
 * of all events. In both, the problems with the most items or events come first.
 */
function openProblems(): readonly OpenProblem[] {
  const from = now.value - DAY;
  const isShown = (id: string): boolean => !dismissed.value.includes(id);
  const runs = runList.value.filter(
    (run) => run.updatedAt >= from && problemOf(run) !== undefined && isShown(run.runId),
  );
  return [
    runs.map((run) => {
      const { failed, unknown, notApplied } = run.counts;
      return { key: run.runId, count: failed + unknown + notApplied, run };
    }),
    [...Map.groupBy(metrics.value.problems, ({ of: { key } }) => key)]
      .filter(([, causes]) => causes.some((cause) => isShown(idOf(cause))))
      .map(([key, causes]) => ({ key, count: causes[0]?.of.count ?? 0, causes })),
  ].flatMap((some: OpenProblem[]) => some.toSorted((one, other) => other.count - one.count));
}

const showsAll = signal(false);

/**
 * Shows the problems of runs in the last 24 hours and those of events. At first, only the largest of each are shown, so
 * that neither kind hides the other.
 */
export function Attention() {
  const problems = openProblems();
  const [ofRuns, ofEvents] = [problems.filter(({ run }) => run), problems.filter(({ causes }) => causes)];
  const first = new Set([...ofRuns.slice(0, MAX_PROBLEMS), ...ofEvents.slice(0, MAX_PROBLEMS)]);
  const { shown, holds } = useSteady(showsAll.value ? problems : problems.filter((one) => first.has(one)), keyOf);
  const rest = problems.length - first.size;
  const failed = ofRuns.find(({ run }) => run?.counts.failed);
  return (
    <div class="card">
      <h2>
        Needs attention <span class="quiet">{number(problems.length)}</span>
      </h2>
      {problems.length === 0 && <p class="quiet">Nothing failed in the last 24 hours.</p>}
      <ul class="items" {...holds}>
        {shown.map(({ key, run, causes }) => (
          <Fragment key={key}>
            {run !== undefined && <RunProblem run={run} most={run === failed?.run ? MAX_CAUSES : OTHER_CAUSES} />}
            {causes !== undefined && <EventItem causes={causes} />}
          </Fragment>
        ))}
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

const keyOf = ({ key }: OpenProblem): string => key;

/** Returns an ID by which a dismissed cause is recognized. The sandbox's ID of the cause changes after a reset. */
function idOf({ name, verdict, cause }: EventCause): string {
  return JSON.stringify([name, verdict, cause]);
}

/** Shows a problem with its causes, a link to it, and a button that dismisses it. */
function Problem(problem: {
  readonly ids: readonly string[];
  readonly tone: Tone;
  readonly title: ComponentChildren;
  readonly href: string;
  readonly act: "Show" | "Show rows";
  readonly children?: ComponentChildren;
}) {
  const { ids, tone, title, href, act, children } = problem;
  return (
    <li class="item">
      <i class={`dot ${tone}`} title={tone === "warn" ? "Unfinished or unknown" : "Failed or dropped"} />
      <div>{title}</div>
      <span class="ways">
        <a class="button" href={href}>
          {act}
        </a>
        <button type="button" class="plain" onClick={() => dismiss(ids)}>
          Dismiss
        </button>
      </span>
      {children && <div class="quiet small more">{children}</div>}
    </li>
  );
}

/** Shows a run that has failed or unknown items, or that stopped early, with its first causes. */
function RunProblem({ run, most }: { readonly run: RunRow; readonly most: number }) {
  const { runId, updatedAt, counts, noun } = run;
  const detail = useRead<RunDetail>(runPath(runId), { version: updatedAt });
  const failures = detail.value?.failures ?? [];
  return (
    <Problem
      ids={[runId]}
      tone={counts.failed > 0 ? "bad" : "warn"}
      title={<Text of={problemOf(run, heldBack(failures))} />}
      href={`#/runs/${runId}`}
      act={counts.failed > 0 && noun === "row" ? "Show rows" : "Show"}
    >
      <ul class="causes">
        {failures.slice(0, most).map((failure, at) => (
          <li key={at}>
            <Cause of={failure} noun={noun} />
          </li>
        ))}
      </ul>
      <OtherCauses of={failures.slice(most)} />
      {(run.fileName === undefined || counts.failed === 0) && noun !== "event" && <Title run={run} end=" ·" />}{" "}
      <Ago at={updatedAt} />
    </Problem>
  );
}

/** Shows how many items have causes that are not listed. */
function OtherCauses({ of: others }: { readonly of: readonly FailureRow[] }) {
  return others.length === 0 ? null : (
    <>
      {number(countIn(others))} more for {counted(others.length, "other reason")} ·{" "}
    </>
  );
}

/** Shows how many events of a name do not count, and why. Several causes are listed, each with its count. */
function EventItem({ causes }: { readonly causes: Causes }) {
  const [first, ...others] = causes;
  const platforms = new Set(causes.flatMap((one) => one.platforms.map(({ platform }) => platform)));
  if (first === undefined) return null;
  const { name, count, total } = first.of;
  return (
    <Problem
      ids={causes.map(idOf)}
      tone={RESULTS[first.verdict].tone}
      title={
        <>
          {number(count)} of {number(total)}{" "}
          {name !== undefined && (
            <>
              <code>
                <Text of={name} most={60} />
              </code>{" "}
            </>
          )}
          test {total === 1 ? "event" : "events"} not recorded
          {others.length === 0 && (
            <>
              : <WordsOf of={first.cause} />
              <Fix of={first.fix} />
            </>
          )}
        </>
      }
      href={`#/events/${first.latest}`}
      act="Show"
    >
      {others.length > 0 && (
        <ul class="causes">
          {causes.map(({ id, count, cause, fix, latest }) => (
            <li key={id}>
              <strong>{number(count)}</strong>
              <a class="bare" href={`#/events/${latest}`}>
                <WordsOf of={cause} />
              </a>
              <span class="quiet small places">
                <WordsOf of={fix} />
              </span>
            </li>
          ))}
        </ul>
      )}
      <SandboxTag /> latest <Ago at={Math.max(...causes.map(({ lastAt }) => lastAt)) - clockAhead.value} />
      {platforms.size === 1 && (
        <>
          {" · "}
          <Text of={[...platforms].join()} most={20} />
        </>
      )}
    </Problem>
  );
}

/** Describes what is wrong with a run, if anything is. `held`: how many failed events were deliberately not sent. */
function problemOf({ actions, counts, fileName, noun, status }: RunRow, held = 0): string | undefined {
  const { failed, unknown, notApplied, items } = counts;
  const many = (count: number): string => counted(count, noun);
  if (status === "running" || status === "planned" || status === "needs_confirmation") return undefined;
  const file = fileName === undefined ? "" : `${fileName.slice(0, 80)}: `;
  if (failed > 0) return `${file}${number(failed)} of ${many(items)} ${held === failed ? "not sent" : "failed"}`;
  if (unknown > 0) return `The result of ${many(unknown)} is unknown`;
  if (status === "interrupted") return "Interrupted: it can be resumed";
  const isCancelled = status === "cancelled";
  if (notApplied === 0 || (isCancelled && !actions.includes("resume"))) return undefined;
  return `${isCancelled ? "Cancelled: " : ""}${number(notApplied)} of ${many(items)} not applied`;
}
