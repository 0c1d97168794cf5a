import { useSignal } from "@preact/signals";
import { Fragment } from "preact";
import { PAGE_ROWS } from "../list-page.ts";
import type { FailureRow, ProblemList, RunDetail, RunRow } from "../wire.ts";
import { copyText, Steps, Table, Text } from "./parts.tsx";
import { counted, number } from "./plain-words.ts";
import { runPath, save, useDetail, useRead } from "./requests.ts";
import { set } from "./state.ts";

// What did not succeed in a run: the reasons, and the list of rows or items.

/** The names of a run's downloads on the page. */
export const FILES = {
  sheet: "Sheet with results",
  results: "Results as data (NDJSON)",
  rejects: "Failed rows",
  removed: "What was removed",
  plan: "Plan",
} as const;

export const OUTCOMES = {
  skipped: "Skipped",
  failed: "Failed",
  notApplied: "Not applied",
  unknown: "Unknown",
} as const;

/** The number of reasons that are shown before the person presses "Show … more reasons". */
const MAX_REASONS = 6;

/** Returns how many objects did not succeed, as the heading of their reasons: `57 rows failed, 3 not applied`. */
function problemWords({ counts, noun }: RunRow, failures: readonly FailureRow[]): string {
  const { failed, notApplied, skipped = 0, unknown } = counts;
  const held = heldBack(failures);
  const parts = [
    { count: failed - held, how: "failed" },
    { count: held, how: "not sent" },
    { count: notApplied, how: "not applied" },
    { count: skipped, how: "skipped" },
    { count: unknown, how: "with an unknown result" },
  ].filter(({ count }) => count > 0);
  return parts.map(({ count, how }, at) => `${at === 0 ? counted(count, noun) : number(count)} ${how}`).join(", ");
}

/** Returns how many events were deliberately held back, because they would not count. */
export function heldBack(failures: readonly FailureRow[]): number {
  return countIn(failures.filter(({ isHeldBack }) => isHeldBack));
}

/** Returns how many objects have these causes together. */
export function countIn(failures: readonly FailureRow[]): number {
  return failures.reduce((sum, { count }) => sum + count, 0);
}

/**
 * Shows the reasons why objects did not succeed, each with its count. Buttons download the sheet or the failed rows,
 * and copy a text for the agent.
 */
export function FailedNote({ detail: { run, failures, downloads, forAgent = "" } }: { readonly detail: RunDetail }) {
  const showsAll = useSignal(false);
  if (failures.length === 0) return null;
  const sheet = downloads.includes("sheet") ? "sheet" : downloads.includes("rejects") ? "rejects" : undefined;
  const rest = showsAll.value ? [] : failures.slice(MAX_REASONS);
  return (
    <section class={`card note${run.counts.failed > 0 ? " failures" : ""}`} aria-labelledby="problems">
      <h2 id="problems">{problemWords(run, failures)}</h2>
      <ul class="reasons">
        {failures.slice(0, failures.length - rest.length).map((reason, at) => (
          <Reason key={at} of={reason} noun={run.noun} />
        ))}
      </ul>
      {rest.length > 0 && (
        <p>
          <button type="button" class="plain" onClick={() => set(showsAll, true)}>
            Show {counted(rest.length, "more reason")} ({counted(countIn(rest), run.noun)})
          </button>
        </p>
      )}
      <div class="row">
        {sheet !== undefined && (
          <button type="button" class="primary" onClick={() => void save(runPath(run.runId, sheet))}>
            Download the {FILES[sheet].toLowerCase()}
          </button>
        )}
        <button type="button" onClick={() => void copyText(forAgent)}>
          Copy for your agent
        </button>
      </div>
    </section>
  );
}

/** Shows the first reason why objects of an approved or declined run did not succeed, and the number of others. */
export function FirstReason({ run }: { readonly run: RunRow }) {
  const [first, ...more] = useDetail(run.runId).detail?.failures ?? [];
  if (first === undefined) return null;
  return (
    <div class="card note">
      <ul class="reasons">
        <Reason of={first} noun={run.noun} />
      </ul>
      {more.length > 0 && <a href={`#/runs/${run.runId}`}>and {counted(more.length, "more reason")}</a>}
    </div>
  );
}

/** Shows a cause, its positions and the remedy. When opened, also the first names or wrong values and the message. */
function Reason(shown: CauseProps) {
  const { count, message, remedy, examples, areAll, cause } = shown.of;
  return (
    <li>
      <details>
        <summary>
          <Cause {...shown} />
          <span class="quiet small remedy">
            <Text of={remedy} most={400} />
          </span>
        </summary>
        <p class="small">
          {examples.map((value, at) => (
            <Fragment key={at}>
              {at > 0 && ", "}
              <code>
                <Text of={value} most={40} />
              </code>
            </Fragment>
          ))}
          {examples.length > 0 && !areAll && count > examples.length && ", …"}
          {cause !== undefined && (
            <span class="line">
              <Text of={message} most={800} />
            </span>
          )}
        </p>
      </details>
    </li>
  );
}

interface CauseProps {
  readonly of: FailureRow;
  readonly noun: string;
}

/** Shows how many objects did not succeed, the cause, and their positions. A long list of positions is cut. */
export function Cause({ of, noun }: CauseProps) {
  const { outcome, count, message, cause = message, places } = of;
  return (
    <>
      <strong>{number(count)}</strong>
      <span>
        {outcome !== "failed" && `${OUTCOMES[outcome]}: `}
        <Text of={cause} most={400} />
      </span>
      <span class="quiet small places">{places.replace(/^item/, noun)}</span>
    </>
  );
}

/** Returns the title of the list of objects that did not succeed, by their outcomes: `Failed and skipped`. */
export function failedTitle({ failed, notApplied, skipped = 0 }: RunRow["counts"]): string {
  const found = [failed > 0 && "failed", notApplied > 0 && "not applied", skipped > 0 && "skipped"];
  const words = found.filter((one) => one !== false).join(" and ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Shows the rows or items that did not succeed: position, value, problem and suggestion. */
export function Problems(list: { readonly run: RunRow; readonly of: "failed" | "unknown"; readonly title: string }) {
  const { run, of, title } = list;
  const from = useSignal(0);
  const path = runPath(run.runId, `failures?of=${of}&from=${from.value}`);
  const { failed, notApplied, skipped, unknown } = run.counts;
  const version = [run.status, failed, notApplied, skipped, unknown].join();
  const { value: page } = useRead<ProblemList>(path, { version });
  if (page === undefined) return <p class="quiet">Reading the list…</p>;
  // The column heading is the noun of the positions: a line of a file, or an item of the call.
  const [noun = ""] = page.rows[0]?.place.replace(/^item/, run.noun).split(" ") ?? [];
  const head = noun.charAt(0).toUpperCase() + noun.slice(1);
  return (
    <>
      {page.note && <p class="quiet small">{page.note}</p>}
      <Table
        caption={title}
        heads={[head || "Row", "Name or value", "Problem", "Suggestion"]}
        className="problem-rows stacks"
      >
        {page.rows.map(({ place, value, problem, suggestion, outcome: how }, at) => (
          <tr key={at}>
            <th scope="row">
              {place.replace(/^item/, run.noun)}
              {how !== of && <span class="line quiet small">{OUTCOMES[how]}</span>}
            </th>
            <td>
              <code>
                <Text of={value} most={120} />
              </code>
            </td>
            <td>
              <Text of={problem} most={1000} />
            </td>
            <td class="quiet small">
              <Text of={suggestion} most={1000} />
            </td>
          </tr>
        ))}
      </Table>
      <Steps from={from} total={page.total} rows={PAGE_ROWS} of={`${run.noun}s`} />
    </>
  );
}
