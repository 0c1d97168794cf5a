import { useSignal } from "@preact/signals";
import { PAGE_ROWS } from "../list-page.ts";
import type { ChangeList, EffectObjects, EffectPart, Waiting } from "../wire.ts";
import { signOf } from "./changes.tsx";
import { Search, Steps, Text } from "./parts.tsx";
import { number, percent, wholeWords } from "./plain-words.ts";
import { runPath, SEARCH_AFTER_MS, useRead } from "./requests.ts";
import { Kinds } from "./run-words.tsx";
import { narrows } from "./state.ts";

/** A list with more names than this has a search field. */
const SEARCHED = 20;

interface PartProps {
  readonly runId: string;
  readonly place: number;
  readonly part: EffectPart;
}

/**
 * Shows one part of a run's effect, for example objects that cannot be restored, with pages and a search. The first
 * page comes with the run, further pages are requested.
 */
export function Part({ runId, place, part: { title, count, objects: first } }: PartProps) {
  const search = useSignal("");
  const from = useSignal(0);
  const isFirst = search.value === "" && from.value === 0;
  const query = new URLSearchParams({ part: String(place), search: search.value, from: String(from.value) });
  const path = isFirst ? undefined : runPath(runId, `effect?${query}`);
  const found = useRead<EffectObjects>(path, { afterMs: SEARCH_AFTER_MS });
  const { objects, total } = (isFirst ? undefined : found.value) ?? { objects: first, total: count };
  return (
    <details open>
      <summary>
        {title} <small>{number(count)}</small>
      </summary>
      {count > SEARCHED && <Search label={`Search: ${title}`} value={search.value} change={narrows(search, from)} />}
      <ul>
        {objects.map(({ name, says = "" }, at) => (
          <li key={at}>
            <Text of={name} />
            {says !== "" && (
              <small>
                {" "}
                <Text of={says} />
              </small>
            )}
          </li>
        ))}
      </ul>
      {total === 0 && <p>No name matches.</p>}
      <Steps from={from} total={total} rows={PAGE_ROWS} of="found" />
    </details>
  );
}

/** Returns whether the run makes several kinds of changes. */
function hasKinds({ counts: { created, changed, deleted } }: Waiting): boolean {
  return Math.max(created, changed, deleted) < created + changed + deleted;
}

/** Shows the share of the targeting that is changed, if it is known, and the counts if there are several kinds. */
export function Size({ of: waiting, isUndo }: { readonly of: Waiting; readonly isUndo: boolean | undefined }) {
  const { counts, magnitude: { count, whole, verb, within } = NO_MAGNITUDE } = waiting;
  const total = whole === undefined || whole < count ? undefined : whole;
  const does = verb === "deleted" ? "Deletes" : "Changes";
  if (!hasKinds(waiting)) {
    // The title already contains the number of objects. So only their share of the targeting is added, if it is known.
    return (
      <span class={`line ${verb}`}>
        {total !== undefined && count > 1 ? (
          <>
            {does} {percent(count, total)} of {wholeWords(total)}
          </>
        ) : (
          within
        )}
      </span>
    );
  }
  return (
    <>
      <span class="row">
        <Kinds of={counts} isUndo={isUndo} areAhead />
      </span>
      {total !== undefined && (
        <span class="line small">
          {does} {number(count)} of the {wholeWords(total)} ({percent(count, total)})
        </span>
      )}
    </>
  );
}

const NO_MAGNITUDE: NonNullable<Waiting["magnitude"]> = { count: 0, verb: "changed", what: "" };

/** Lists the first changes that a run would have made that was not approved or was cancelled before its start. */
export function Unsent({ list }: { readonly list: ChangeList | undefined }) {
  if (list === undefined || list.total === 0) return null;
  const more = list.total - list.rows.length;
  return (
    <details>
      <summary>What was not applied</summary>
      <ul>
        {list.rows.map((row, at) => (
          <li key={at}>
            {signOf(row)[0]}{" "}
            <Text of={[...new Set([row.before, row.after].flatMap((side) => side?.name ?? []))].join(" → ")} />
          </li>
        ))}
        {more > 0 && <li>and {number(more)} more</li>}
      </ul>
    </details>
  );
}
