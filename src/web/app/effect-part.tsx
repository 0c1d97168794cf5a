import { useSignal } from "@preact/signals";
import type { EffectObjects, EffectPart } from "../wire.ts";
import { Search, Steps, Text } from "./parts.tsx";
import { number } from "./plain-words.ts";
import { runPath, SEARCH_AFTER_MS, useRead } from "./requests.ts";
import { narrows } from "./state.ts";

/** The number of names on a page (`ROWS`). A list with more than `SEARCHED` names has a search field. */
const ROWS = 100;
const SEARCHED = 20;

interface PartProps {
  readonly runId: string;
  readonly place: number;
  readonly part: EffectPart;
}

/**
 * Shows the objects that a run affects in one way, with pages and a search. The first page comes with the run, further
 * ones are requested.
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
      {total === 0 && <p>Nothing has this in its name.</p>}
      <Steps from={from} total={total} rows={ROWS} of="found" />
    </details>
  );
}
