import { type ReadonlySignal, useSignal, useSignalEffect } from "@preact/signals";
import type { TargetedInputEvent } from "preact";
import { type EffectObjects, type EffectPart, PATHS } from "../wire.ts";
import { Steps, Text } from "./parts.tsx";
import { number } from "./plain-words.ts";
import { read } from "./requests.ts";
import { outcome } from "./state.ts";

/** The maximum number of names that are shown at once. */
const MAX_OBJECTS = 100;
const SEARCH_AFTER_MS = 250;

interface PartProps {
  readonly runId: string;
  readonly place: number;
  readonly part: EffectPart;
  readonly most: number;
  readonly isSearchable: boolean;
}

/** The objects of one kind. Shows the first ones, and all of a long list with pages and a search. */
export function Part({ runId, place, part: { title, count, objects }, most, isSearchable }: PartProps) {
  const search = useSignal("");
  const from = useSignal(0);
  const found = useSignal<EffectObjects | undefined>(undefined);
  const first = objects.slice(0, most);
  const isCut = count > first.length;
  useFound(`${PATHS.runs}/${encodeURIComponent(runId)}/effect?part=${place}`, { search, from, found });
  const { objects: shown, total } = found.value ?? { objects: first, total: count };
  const type = (event: TargetedInputEvent<HTMLInputElement>) => {
    search.value = event.currentTarget.value;
    from.value = 0;
  };
  return (
    <details open>
      <summary>
        {title} <small>{number(count)}</small>
      </summary>
      {isCut && isSearchable && (
        <p class="row">
          <label>
            Search <input type="search" aria-label={`Search: ${title}`} value={search} onInput={type} />
          </label>
        </p>
      )}
      <ul>
        {shown.map(({ name, says = "" }, at) => (
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
        {isCut && !isSearchable && <li>and {number(count - first.length)} more</li>}
      </ul>
      {isSearchable && <Found isAll={found.value !== undefined} {...{ from, total, shown: shown.length }} />}
    </details>
  );
}

interface FoundProps {
  readonly isAll: boolean;
  readonly from: { value: number };
  readonly total: number;
  readonly shown: number;
}

/** Controls for the pages of all objects. Before all objects are requested, shows how many more there are. */
function Found({ isAll, from, total, shown }: FoundProps) {
  if (isAll) {
    return total === 0 ? (
      <p>Nothing has this in its name.</p>
    ) : (
      <Steps from={from} first={Math.max(0, from.value)} total={total} rows={MAX_OBJECTS} of="found" />
    );
  }
  if (shown >= total) return null;
  const showAll = () => {
    from.value = -1;
  };
  return (
    <p class="row">
      and {number(total - shown)} more
      <button type="button" onClick={showAll}>
        Show all
      </button>
    </p>
  );
}

interface Finding {
  readonly search: ReadonlySignal<string>;
  /** The start of the page to read. -1 requests the first page without a search. */
  readonly from: { value: number };
  readonly found: { value: EffectObjects | undefined };
}

/**
 * Reads the objects that match a search after a pause in typing. A late answer never replaces that of a newer request.
 */
function useFound(path: string, { search, from, found }: Finding): void {
  useSignalEffect(() => {
    const [text, start] = [search.value, from.value];
    if (text === "" && start === 0 && found.value === undefined) return;
    let isLate = false;
    const load = async () => {
      const query = new URLSearchParams({ search: text, from: String(Math.max(0, start)) });
      const answer = await read<EffectObjects>(`${path}&${query}`);
      if (isLate) return;
      if ("message" in answer) outcome.value = answer.message;
      else found.value = answer.data;
    };
    const timer = setTimeout(load, text === "" ? 0 : SEARCH_AFTER_MS);
    return () => {
      isLate = true;
      clearTimeout(timer);
    };
  });
}
