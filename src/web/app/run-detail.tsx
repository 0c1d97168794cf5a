import { useSignal } from "@preact/signals";
import { PAGE_ROWS } from "../list-page.ts";
import type { RequestList, RunAction, RunDetail, RunRow, StoryStep } from "../wire.ts";
import { Decision, UndoButton } from "./approvals.tsx";
import { Changes, Differences } from "./changes.tsx";
import { Ago, Bar, ClockTime, Copy, Empty, Filters, now, Sentences, Steps, Table, Text, visible } from "./parts.tsx";
import { counted, durationWords, number } from "./plain-words.ts";
import { actOnRun, runPath, save, useDetail, useRead } from "./requests.ts";
import { FailedNote, FILES, failedTitle, OUTCOMES, Problems } from "./run-problems.tsx";
import {
  doneOf,
  Kinds,
  NO_CHANGES,
  Progress,
  Requester,
  Status,
  sharesOf,
  statusWords,
  Title,
  toneOf,
  totalOf,
} from "./run-words.tsx";
import { isConnected, runs, set, timeOf } from "./state.ts";

/** Shows one run: its result, history, changes, failures and files. If it waits for approval, shows the decision. */
export function OneRun({ id }: { readonly id: string }) {
  // A new run may not be in the list yet, so the server decides whether it exists.
  const { detail, isAbsent } = useDetail(id);
  const run = runs.value.get(id) ?? detail?.run;
  if (run === undefined) {
    if (!isAbsent) return <p class="quiet">Reading the run…</p>;
    return (
      <Empty title="There is no such run">
        It may belong to someone else, or be too old to be stored. <a href="#/runs">All runs</a>
      </Empty>
    );
  }
  const none: RunDetail = { run, story: [], failures: [], downloads: [] };
  const known = detail ?? none;
  // If the details and the row in the list are of different times, the row's fields count. Only it has `undoneBy`.
  const isFresh = known.run.updatedAt === run.updatedAt && known.run.status === run.status;
  const shown = { ...known.run, ...(isFresh ? { undoneBy: run.undoneBy } : { standsStill: undefined, ...run }) };
  if (run.waiting !== undefined && run.status === "needs_confirmation") return <Decision run={run} now={run} />;
  return <Body detail={{ ...known, run: shown }} />;
}

type Tab = "changes" | "failed" | "unknown" | "others" | "requests" | "files";

function Body({ detail: known }: { readonly detail: RunDetail }) {
  const { run, story, plan, downloads, saved, failures } = known;
  const { did, counts, requests: { sent } = { sent: 0 } } = run;
  const { unknown } = counts;
  const failed = counts.failed + counts.notApplied + (counts.skipped ?? 0);
  const others = (plan?.conflicts.length ?? 0) + (plan?.drift.length ?? 0) + (plan?.differs?.length ?? 0);
  const isAhead = run.status === "planned";
  const hasChanges = did !== undefined || plan !== undefined;
  const tab = useSignal<Tab | undefined>(undefined);
  const hasFailures = failed > 0 && failures.length > 0;
  const tabs = [
    tabOf("changes", "Changes", isAhead ? undefined : did && totalOf(did), hasChanges),
    tabOf("failed", failedTitle(counts), failed, hasFailures),
    tabOf("unknown", OUTCOMES.unknown, unknown),
    tabOf("others", plan?.differs?.length ? "Not undone exactly" : "Changed by others", others),
    tabOf("requests", "Requests", sent, hasChanges && sent > 0),
    tabOf("files", "Files", downloads.length),
  ].filter(({ isShown }) => isShown);
  // The tab of the failures is open at first, because the person must still handle them.
  const left = hasFailures ? "failed" : unknown > 0 ? "unknown" : undefined;
  const first = (run.status === "running" ? undefined : left) ?? tabs[0]?.name;
  const chosen = tabs.find(({ name }) => name === tab.value)?.name ?? first;
  return (
    <>
      <Head run={run} />
      {run.standsStill !== undefined && <p class="card note warning">{run.standsStill}</p>}
      <Sentences title="It cannot be applied" of={plan?.refused} />
      {failed + unknown > 0 && <FailedNote detail={known} />}
      <Origin run={run} />
      <Result detail={known} />
      {saved !== undefined && (
        <p class="card row">
          <span>
            Saved to <code>{visible(saved.path)}</code>
          </span>
          <Copy of={saved.path} />
          <span class="push quiet small">{saved.says}</span>
        </p>
      )}
      <Story of={story} run={run} />
      <Sentences title="How the file was read" of={known.reading} />
      {chosen !== undefined && (
        <Filters label="Parts of the run" areTabs chosen={chosen} choose={(name) => set(tab, name)} of={tabs} />
      )}
      {chosen === "changes" && <Changes run={run} />}
      {chosen === "failed" && <Problems run={run} of="failed" title={failedTitle(counts)} />}
      {chosen === "unknown" && <Problems run={run} of="unknown" title={OUTCOMES.unknown} />}
      {chosen === "others" && plan !== undefined && <Differences plan={plan} />}
      {chosen === "requests" && <Requests run={run} />}
      {chosen === "files" && <Files detail={known} />}
      <Technical run={run} />
    </>
  );
}

function tabOf(name: Tab, title: string, count: number | undefined, isShown = count !== undefined && count > 0) {
  return { name, title, count, isShown };
}

/** The labels of the buttons of a run, except those for approving, declining and undoing it. */
const BUTTONS = { resume: "Resume run", cancel: "Cancel the run" } as const satisfies Partial<
  Record<RunAction, string>
>;

function Head({ run }: { readonly run: RunRow }) {
  const { actions, disabled = {}, targeting } = run;
  return (
    <>
      <div class="quiet small">
        <a href="#/runs">Runs</a>
        {targeting?.name !== undefined && (
          <>
            {" / "}
            <Text of={targeting.name} most={80} />
          </>
        )}
      </div>
      <div class="row">
        <h1>
          <Title run={run} />
        </h1>
        <Status of={run} />
        <span class="push row">
          {(["resume", "cancel"] as const)
            .filter((action) => actions.includes(action))
            .map((action) => (
              <button
                key={action}
                type="button"
                class={action === "resume" ? "primary" : ""}
                data-action={action}
                disabled={disabled[action] !== undefined || !isConnected.value}
                {...(disabled[action] !== undefined && { "aria-describedby": `off-${action}` })}
                onClick={() => void actOnRun(run, action)}
              >
                {BUTTONS[action]}
              </button>
            ))}
          <UndoButton run={run} />
        </span>
      </div>
      {disabled.resume !== undefined && (
        <p class="quiet small" id="off-resume">
          {disabled.resume}
        </p>
      )}
    </>
  );
}

/** Shows who requested a run, when it began, how long it took, and how many requests it sent. */
function Origin({ run }: { readonly run: RunRow }) {
  const { requests, updatedAt, endedAt = updatedAt, status } = run;
  const isOver = status !== "running" && status !== "planned" && status !== "needs_confirmation";
  return (
    <div class="row quiet small origin">
      <span>
        by <Requester run={run} />
      </span>
      <Ago at={timeOf(run)} />
      {isOver && (status !== "cancelled" || (requests?.sent ?? 0) > 0) && (
        <span>took {durationWords(endedAt - timeOf(run))}</span>
      )}
      {requests !== undefined && requests.sent > 0 && <span>{requestWords(requests)}</span>}
    </div>
  );
}

/** Returns the number of requests and of retries and, from one second on, how long the run waited. */
function requestWords({ sent, resent, waitedMs }: NonNullable<RunRow["requests"]>): string {
  const parts = [
    counted(sent, "request"),
    resent === 0 ? "none retried" : `${number(resent)} of them ${resent === 1 ? "a retry" : "retries"}`,
    waitedMs >= 1000 && `${number(Math.round(waitedMs / 1000))} s waited for the service`,
  ];
  return parts.filter((part) => part !== false).join(", ");
}

/** Shows the steps of a run's history, and its status at the end. */
function Story({ of, run }: { readonly of: readonly StoryStep[]; readonly run: RunRow }) {
  if (of.length === 0) return null;
  const { status, counts, updatedAt, endedAt = updatedAt } = run;
  const isBegun = status !== "planned" && status !== "needs_confirmation";
  const end = {
    title:
      status !== "planned"
        ? statusWords(run)
        : run.tool === "track_events"
          ? "Nothing was sent"
          : "Not applied yet: ask the agent to apply it",
    at: isBegun && status !== "running" ? endedAt : undefined,
    tone: toneOf(run),
  };
  return (
    <ol class="steps" aria-label="What happened">
      {[...of, end].map(({ title, at, tone }) => (
        <li key={title}>
          <i class={`dot ${tone}`} />
          <Text of={title} />
          {at !== undefined && <ClockTime at={at} to="minute" />}
          {title === end.title && end.at !== undefined && doneOf(run) > 0 && doneOf(run) < counts.items && (
            <span class="quiet">
              {number(doneOf(run))} of {counted(counts.items, run.noun)}
            </span>
          )}
        </li>
      ))}
    </ol>
  );
}

/**
 * Shows the result of a run in one line: counts, a bar, and until when it can be undone, or the remaining time of a
 * running run. Shows nothing for a planned run, and for one that made no changes and succeeded or was cancelled,
 * because its history says so.
 */
function Result({ detail: { run, undo, undone } }: { readonly detail: RunDetail }) {
  const { did = NO_CHANGES, isUndo, counts, status, undoUntil } = run;
  const total = totalOf(did);
  const didNothing = total === 0 && (status === "succeeded" || (status === "cancelled" && doneOf(run) === 0));
  if (counts.items === 0 || didNothing || status === "planned") return null;
  const left = timeLeft(run);
  return (
    <div class="card row result">
      {status !== "running" && total > 0 ? (
        <>
          <strong>{counted(total, "change")}</strong>
          <Kinds of={did} isUndo={isUndo} />
          {counts.failed > 0 && <span class="bad">{number(counts.failed)} failed</span>}
          <Bar shares={sharesOf(run)} total={counts.items} label="Result" />
          {counts.unknown > 0 && <span class="quiet">{counted(counts.unknown, run.noun)} unknown</span>}
        </>
      ) : (
        <Progress run={run} />
      )}
      {left !== undefined && <span class="quiet small">about {left} left</span>}
      {undone !== undefined && (
        <span class="push small">
          {undone.says ?? "Undone, as far as possible,"}
          {undone.by !== undefined && <UndoneBy id={undone.by} />}
          {undone.rest !== undefined && `; ${undone.rest}`}.
        </span>
      )}
      {undoUntil !== undefined && (
        <span class="push quiet small">
          Can be undone until <Ago at={undoUntil} />
          {undo !== undefined && `. ${undo}.`}
        </span>
      )}
    </div>
  );
}

function UndoneBy({ id }: { readonly id: string }) {
  return (
    <>
      {" by "}
      <a href={`#/runs/${id}`}>another run</a>
    </>
  );
}

/**
 * Estimates the remaining time of a running run from its progress until its last request or answer. While nothing
 * happens, the time falls. Undefined if the run is not running, if no item is done yet, or if at most a second is left.
 */
function timeLeft(run: RunRow): string | undefined {
  const { status, counts } = run;
  const done = doneOf(run) + counts.failed;
  if (status !== "running" || done === 0) return undefined;
  const { updatedAt } = run;
  const rest = ((updatedAt - timeOf(run)) * (counts.items - done)) / done;
  const left = Math.ceil((rest + updatedAt - now.value) / 1000);
  return left <= 1 ? undefined : left < 10 ? `${left} s` : durationWords(left * 1000);
}

function Requests({ run }: { readonly run: RunRow }) {
  const from = useSignal(0);
  const list = useRead<RequestList>(runPath(run.runId, `requests?from=${from.value}`), { version: `${run.updatedAt}` });
  if (list.value === undefined) return <p class="quiet">Reading the list…</p>;
  return (
    <>
      <Table caption="Requests" heads={["Sent", "Request", "Result"]}>
        {list.value.rows.map(({ at, what, result }, place) => (
          <tr key={place}>
            <td>
              <ClockTime at={at} to="second" />
            </td>
            <td>{what}</td>
            <td>{result}</td>
          </tr>
        ))}
      </Table>
      {run.counts.failed > 0 && <p class="quiet small">Items that failed a check were not sent.</p>}
      <Steps from={from} total={list.value.total} rows={PAGE_ROWS} of="requests" />
    </>
  );
}

function Files({ detail: { run, downloads } }: { readonly detail: RunDetail }) {
  return (
    <ul class="items">
      {downloads.map((file) => (
        <li key={file}>
          <button type="button" class="plain" onClick={() => void save(runPath(run.runId, file))}>
            {FILES[file]}
          </button>
        </li>
      ))}
    </ul>
  );
}

function Technical({ run: { runId, tool, project, caller, targeting } }: { readonly run: RunRow }) {
  return (
    <details class="quiet small technical">
      <summary>Technical details</summary>
      run <code>{runId}</code> <Copy of={runId} /> · tool <code>{tool}</code> · caller <Text of={caller ?? ""} />
      {targeting?._id !== undefined && (
        <>
          {" "}
          · targeting <code>{targeting._id}</code> <Copy of={targeting._id} />
        </>
      )}
      {project !== undefined && (
        <>
          {" "}
          · project <Text of={project} />
        </>
      )}
    </details>
  );
}
