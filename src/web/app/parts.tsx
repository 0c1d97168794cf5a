import { signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { agoWords, clockWords, EXACT, number } from "./plain-words.ts";
import { noteRows } from "./presses.ts";
import { outcome, set } from "./state.ts";

/** The default number of characters after which texts that do not come from this program are cut. */
const LONGEST = 300;
/** Characters that are invisible or change the direction of text, such as zero-width and bidirectional ones. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Replaces invisible characters, and those that change the direction of text, with escapes, so that they cannot mislead
 * a person.
 */
export function visible(text: string): string {
  return text.replaceAll(UNSEEN, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16).toUpperCase()}}`);
}

/** Like `visible`, but keeps line breaks. */
export function visibleLines(text: string): string {
  return text.split("\n").map(visible).join("\n");
}

/**
 * Shows a text that does not come from this program. A long text is cut. Its writing direction does not affect the text
 * around it. `isSentence`: an English sentence, which is written from left to right even if it begins with a name in
 * another script.
 */
export function Text(text: {
  readonly of: string | null | undefined;
  readonly most?: number;
  readonly isSentence?: true;
}) {
  const { of, most = LONGEST, isSentence } = text;
  if (of === null || of === undefined) return <span class="none">none</span>;
  return <bdi dir={isSentence ? "ltr" : undefined}>{visible(of.length <= most ? of : `${of.slice(0, most)}…`)}</bdi>;
}

/**
 * Keeps the order of rows while the pointer is on their list; new rows are then added at the end. `late`: how many more
 * rows there are than when the pointer entered. Before rows move, calls `noteRows`. The list needs the attributes
 * `holds`.
 */
export function useSteady<Row>(rows: readonly Row[], keyOf: (row: Row) => string | number) {
  /** The number of rows when the pointer entered the list; undefined while the pointer is outside. */
  const held = useSignal<number | undefined>(undefined);
  const places = useRef<ReadonlyMap<string | number, number>>(new Map());
  const placeOf = (row: Row): number => places.current.get(keyOf(row)) ?? places.current.size;
  const shown = held.value === undefined ? rows : rows.toSorted((one, other) => placeOf(one) - placeOf(other));
  const now = new Map(shown.map((row, at) => [keyOf(row), at]));
  if ([...now].some(([key, at]) => (places.current.get(key) ?? at) !== at)) noteRows();
  places.current = now;
  const hold = (count: number | undefined) => () => set(held, count);
  return {
    shown,
    late: Math.max(0, shown.length - (held.value ?? shown.length)),
    holds: { onPointerEnter: hold(rows.length), onPointerLeave: hold(undefined) },
  };
}

/** Attributes of elements that scroll, so that the keyboard can reach them. */
export const SCROLLS = { tabIndex: 0 } as const;

/** Shows a table that can be scrolled with the keyboard. Without `isTitled`, only screen readers read its caption. */
export function Table(table: {
  readonly caption: string;
  readonly isTitled?: true;
  readonly heads: readonly string[];
  readonly children: ComponentChildren;
  readonly className?: string;
  /** Attributes that keep the order of the rows while the pointer is on the table. */
  readonly holds?: ReturnType<typeof useSteady>["holds"];
}) {
  const { caption, isTitled, heads, children, className, holds } = table;
  return (
    <section class="frame" aria-label={caption} {...SCROLLS} {...holds}>
      <table class={className}>
        <caption class={isTitled ? "" : "spoken"}>{caption}</caption>
        <Heads of={heads} />
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

/** Shows column headings. With `areSpoken`, only screen readers get them. */
export function Heads({ of, areSpoken = false }: { readonly of: readonly string[]; readonly areSpoken?: boolean }) {
  return (
    <thead class={areSpoken ? "spoken-heads" : ""}>
      <tr>
        {of.map((head) => (
          <th key={head} scope="col">
            {areSpoken ? <span class="spoken">{head}</span> : head}
          </th>
        ))}
      </tr>
    </thead>
  );
}

/** Shows sentences as a list; nothing if there are none. */
export function Sentences({ title, of }: { readonly title?: string; readonly of: readonly string[] | undefined }) {
  if (of === undefined || of.length === 0) return null;
  return (
    <>
      {title !== undefined && (
        <p>
          <strong>{title}</strong>
        </p>
      )}
      <ul>
        {of.map((sentence) => (
          <li key={sentence}>
            <Text of={sentence} most={1000} isSentence />
          </li>
        ))}
      </ul>
    </>
  );
}

/** Shows a text and, if there are more rows, buttons for those before and after the shown ones. */
export function Pager(pager: {
  readonly previous?: (() => void) | undefined;
  readonly next?: (() => void) | undefined;
  readonly children: ComponentChildren;
}) {
  const { previous, next, children } = pager;
  return (
    <p class="pager">
      <span>{children}</span>
      {(previous !== undefined || next !== undefined) && (
        <>
          <button type="button" disabled={previous === undefined} onClick={previous}>
            Previous
          </button>
          <button type="button" disabled={next === undefined} onClick={next}>
            Next
          </button>
        </>
      )}
    </p>
  );
}

/** Shows buttons for the next and previous page, if the list is longer than one page. */
export function Steps(steps: {
  readonly from: { value: number };
  /** The index of the first shown row, from 0. By default, the value of `from`. */
  readonly first?: number;
  readonly total: number;
  readonly rows: number;
  readonly of: string;
}) {
  const { from, first = from.value, total, rows, of } = steps;
  if (total <= rows) return null;
  const go = (to: number) => () => set(from, to);
  return (
    <Pager
      previous={first === 0 ? undefined : go(Math.max(0, first - rows))}
      next={first + rows >= total ? undefined : go(first + rows)}
    >
      {number(first + 1)} to {number(Math.min(total, first + rows))} of {number(total)} {of}
    </Pager>
  );
}

// Components that several views use. Most of their CSS is in parts.css.

/** Colours by meaning. Green: done. Red: failed (`bad`) or dropped. Amber: unfinished or unknown. Grey: all else. */
export type Tone = "good" | "warn" | "bad" | "dropped" | "idle";

/** Shows a word on a coloured background. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return <span class={`pill ${tone}`}>{children}</span>;
}

/** A segment of a bar or column. `tone` is its CSS class, which sets the colour, e.g. `good`, `created`. */
export interface Share {
  readonly tone: string;
  readonly count: number;
  /** The word after the count in texts, e.g. `created`. */
  readonly of: string;
}

/** Shows a bar of segments. If they add up to less than `total`, the rest is empty. Screen readers get the numbers. */
export function Bar(bar: { readonly shares: readonly Share[]; readonly label: string; readonly total?: number }) {
  const { shares, label, total: whole = shares.reduce((sum, { count }) => sum + count, 0) } = bar;
  return (
    <div class="bar" role="img" aria-label={`${label}: ${sharesText(shares)}`}>
      {shares.map(({ tone, count, of }) =>
        count > 0 ? (
          <i
            key={of}
            class={tone}
            title={`${number(count)} ${of}`}
            style={{ width: `${(100 * count) / Math.max(1, whole)}%` }}
          />
        ) : null,
      )}
    </div>
  );
}

/** Shows the counts of a bar or chart in words, each with its colour. Zeros are omitted. */
export function Legend({ of }: { readonly of: readonly Share[] }) {
  const some = of.filter(({ count }) => count > 0);
  return some.length === 0 ? (
    <>none</>
  ) : (
    some.map(({ tone, count, of }) => (
      <span key={of} class="legend">
        <i class={`dot ${tone}`} /> {number(count)} {of}
      </span>
    ))
  );
}

/** Describes counts: `97 recorded · 78 dropped`. Zeros are omitted. */
function sharesText(shares: readonly Share[]): string {
  const some = shares.filter(({ count }) => count > 0).map(({ count, of }) => `${number(count)} ${of}`);
  return some.length === 0 ? "none" : some.join(" · ");
}

/** A column of a chart: its title, and its shares from bottom to top. */
export interface Column {
  readonly title: string;
  readonly shares: readonly Share[];
}

/** Shows a chart with a column of stacked segments for each period. The highest column has 94 % of the height. */
export function Columns({ columns, label }: { readonly columns: readonly Column[]; readonly label: string }) {
  const sum = ({ shares }: Column): number => shares.reduce((all, { count }) => all + count, 0);
  const highest = Math.max(1, ...columns.map(sum));
  return (
    <div class="columns" role="img" aria-label={label}>
      {columns.map((column) => (
        <div key={column.title} title={`${column.title}: ${sharesText(column.shares)}`}>
          {column.shares.map(({ tone, count, of }) =>
            count > 0 ? (
              <i key={of} class={tone} style={{ height: `${Math.max(3, (94 * count) / highest)}%` }} />
            ) : null,
          )}
        </div>
      ))}
    </div>
  );
}

/** Shows a value with its title, and details below. */
export function Figure(figure: {
  readonly title: ComponentChildren;
  readonly value: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const { title, value, children } = figure;
  return (
    <div class="card figure">
      <span class="quiet small">{title}</span>
      <strong>{value}</strong>
      {children}
    </div>
  );
}

/** Shows a title and a text in a view without content: what is missing, why, or the next step. */
export function Empty({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <div class="empty">
      <h1>{title}</h1>
      <p>{children}</p>
    </div>
  );
}

/** Asks the person to confirm an action. When it closes, focuses the chosen run of the queue, if there is one. */
export function Ask(question: {
  readonly act: string;
  readonly tone: "danger" | "primary";
  readonly decision?: "approve" | "decline";
  readonly close: () => void;
  readonly press: () => void;
  readonly children: ComponentChildren;
}) {
  const { act, tone, decision, close, press, children } = question;
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const { current } = dialog;
    current?.showModal();
    current?.querySelector<HTMLElement>("[data-confirms]")?.focus();
    return () => {
      current?.close();
      document.querySelector<HTMLElement>(".queue [aria-current]")?.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} aria-label="Confirm" onClose={close}>
      <p>{children}</p>
      <div class="row">
        <span class="push" />
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button
          type="button"
          class={tone}
          data-confirms={decision}
          onClick={() => {
            close();
            press();
          }}
        >
          {act}
        </button>
      </div>
    </dialog>
  );
}

/** The time, read every 5 seconds. Components with relative times are rendered again when it changes. */
export const now = signal(Date.now());
const TICK_MS = 5000;
setInterval(() => set(now, Date.now()), TICK_MS);

/** Shows a time as `words`. The exact time appears when the pointer is on it. */
function Time({ at, words }: { readonly at: number; readonly words: string }) {
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={EXACT.format(date)}>
      {words}
    </time>
  );
}

/** Shows a relative time: `2 min ago`, `in 23 h`. If it is more than 24 hours away, shows its date. */
export function Ago({ at }: { readonly at: number }) {
  return <Time at={at} words={agoWords(at, now.value)} />;
}

/** Shows the time of day, to the minute, second or millisecond. Adds the date if it is not today. */
export function ClockTime({ at, to }: { readonly at: number; readonly to: Parameters<typeof clockWords>[1] }) {
  return <Time at={at} words={clockWords(at, to, now.value)} />;
}

/** Shows a button that copies a text. */
export function Copy({ of, name = "copy" }: { readonly of: string; readonly name?: string }) {
  return (
    <button type="button" class={name === "copy" ? "plain" : ""} onClick={() => void copyText(of)}>
      {name}
    </button>
  );
}

/**
 * Copies a text to the clipboard and shows the result. Scripts have a clipboard only with HTTPS or on this computer.
 * Elsewhere, the text is copied from a temporary field.
 */
export async function copyText(text: string): Promise<void> {
  try {
    if (navigator.clipboard === undefined) copyFromField(text);
    else await navigator.clipboard.writeText(text);
    outcome.value = "Copied.";
  } catch (thrown) {
    outcome.value = `The browser did not copy it (${thrown instanceof Error ? thrown.message : thrown}).`;
  }
}

function copyFromField(text: string): void {
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  // Deprecated, but it works on pages without HTTPS.
  document.execCommand("copy");
  field.remove();
}

/** Shows a choice between kinds of entries, each with its count if that is known. */
export function Filters<Name extends string>(filters: {
  readonly label: string;
  readonly of: readonly { readonly name: Name; readonly title: string; readonly count?: number | undefined }[];
  readonly chosen: Name | undefined;
  readonly choose: (name: Name) => void;
  /** If true, the buttons switch between parts of a view, instead of filtering a list. */
  readonly areTabs?: boolean;
}) {
  const { label, of, chosen, choose, areTabs = false } = filters;
  return (
    <fieldset class={areTabs ? "tabs" : "filters"} aria-label={label}>
      {of.map(({ name, title, count }) => (
        <button key={name} type="button" aria-pressed={name === chosen} onClick={() => choose(name)}>
          {title}
          {count !== undefined && ` ${number(count)}`}
        </button>
      ))}
    </fieldset>
  );
}

/** Shows a search field for a list. `/` focuses the first one of a view. */
export function Search(search: {
  readonly label: string;
  readonly value: string;
  readonly change: (text: string) => void;
}) {
  const { label, value, change } = search;
  return (
    <input
      type="search"
      class="search"
      aria-label={label}
      placeholder={label}
      title="Press / to search"
      value={value}
      onInput={(event) => change(event.currentTarget.value)}
    />
  );
}
