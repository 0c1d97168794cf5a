import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { agoWords, CLOCKS, EXACT, number } from "./plain-words.ts";
import { outcome } from "./state.ts";

/** The longest foreign text that is shown as a whole. */
const LONGEST = 300;
/** Controls and formats (bidirectional marks, zero-width characters), and all that is drawn as nothing. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** A text with escapes in place of what a person would not see, or see in another order. */
export function visible(text: string): string {
  return text.replaceAll(UNSEEN, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16).toUpperCase()}}`);
}

/** The same for a text that is shown in lines. */
export function visibleLines(text: string): string {
  return text.split("\n").map(visible).join("\n");
}

/** A text that others wrote: it stands by itself, whatever its direction, and long ones are cut. */
export function Text({ of, most = LONGEST }: { readonly of: string | null | undefined; readonly most?: number }) {
  if (of === null || of === undefined) return <span class="none">none</span>;
  return <bdi>{visible(of.length <= most ? of : `${of.slice(0, most)}…`)}</bdi>;
}

/** What scrolls has to be reached by keyboard. */
export const SCROLLS = { tabIndex: 0 } as const;

/** A table with its caption, in a frame that scrolls by keyboard as well. */
export function Table({
  caption,
  heads,
  children,
  className,
}: {
  readonly caption: string;
  readonly heads: readonly string[];
  readonly children: ComponentChildren;
  readonly className?: string;
}) {
  return (
    <section class="frame" aria-label={caption} {...SCROLLS}>
      <table class={className}>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

/** Sentences as a list; nothing where there are none. */
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
            <Text of={sentence} most={1000} />
          </li>
        ))}
      </ul>
    </>
  );
}

/** Leads to the rows before and after those that are shown. */
export function Pager({
  previous,
  next,
  children,
}: {
  readonly previous: (() => void) | undefined;
  readonly next: (() => void) | undefined;
  readonly children: ComponentChildren;
}) {
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

/** Leads through a list that is longer than what is shown of it. */
export function Steps(steps: {
  readonly from: { value: number };
  /** The first row that is shown, where the list has become shorter. */
  readonly first?: number;
  readonly total: number;
  readonly rows: number;
  readonly of: string;
}) {
  const { from, first = from.value, total, rows, of } = steps;
  if (total <= rows) return null;
  const go = (to: number) => () => {
    from.value = to;
  };
  return (
    <Pager
      previous={first === 0 ? undefined : go(Math.max(0, first - rows))}
      next={first + rows >= total ? undefined : go(first + rows)}
    >
      {number(first + 1)} to {number(Math.min(total, first + rows))} of {number(total)} {of}
    </Pager>
  );
}

// What several views are made of. The classes stand in parts.css.

/** What a colour means: green created or accepted, amber changed or ignored, red deleted, failed or rejected. */
export type Tone = "good" | "warn" | "bad" | "accent" | "sandbox" | "idle";

/** A word on a coloured ground. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return <span class={`pill ${tone}`}>{children}</span>;
}

/** A part of a bar or column: its class gives its colour, e.g. `good`, `warn`, `bad`, `created`. */
export interface Share {
  readonly tone: string;
  readonly count: number;
  /** What is counted, e.g. `created`. */
  readonly of: string;
}

/** A bar of shares of a whole; what is left of `total` stays empty. The numbers stand in its label, and beside it as text. */
export function Bar({ shares, total, label }: Shares & { readonly total?: number }) {
  const whole = total ?? shares.reduce((sum, { count }) => sum + count, 0);
  return (
    <div class="bar" role="img" aria-label={`${label}: ${sharesText(shares)}`}>
      {shares.map(({ tone, count }) =>
        count > 0 ? <i key={tone} class={tone} style={{ width: `${(100 * count) / Math.max(1, whole)}%` }} /> : null,
      )}
    </div>
  );
}

interface Shares {
  readonly shares: readonly Share[];
  readonly label: string;
}

/** Counts as text: `97 accepted · 78 ignored`; those that are none stay out. */
export function sharesText(shares: readonly Share[]): string {
  const some = shares.filter(({ count }) => count > 0).map(({ count, of }) => `${number(count)} ${of}`);
  return some.length === 0 ? "none" : some.join(" · ");
}

/** A column of a chart: what it stands for, and its shares from the bottom up. */
export interface Column {
  readonly title: string;
  readonly shares: readonly Share[];
}

/** Columns of stacked counts over time; the highest fills the height. */
export function Columns({ columns, label }: { readonly columns: readonly Column[]; readonly label: string }) {
  const sum = ({ shares }: Column): number => shares.reduce((all, { count }) => all + count, 0);
  const highest = Math.max(1, ...columns.map(sum));
  return (
    <div class="columns" role="img" aria-label={label}>
      {columns.map((column) => (
        <div key={column.title} title={`${column.title}: ${sharesText(column.shares)}`}>
          {column.shares.map(({ tone, count }) =>
            count > 0 ? (
              <i key={tone} class={tone} style={{ height: `${Math.max(3, (94 * count) / highest)}%` }} />
            ) : null,
          )}
        </div>
      ))}
    </div>
  );
}

/** A figure with its title, and what belongs to it below. */
export function Figure(figure: {
  readonly title: ComponentChildren;
  readonly value: ComponentChildren;
  readonly tone?: Tone;
  /** The value is a phrase, not a number. */
  readonly isWords?: boolean;
  readonly children?: ComponentChildren;
}) {
  const { title, value, tone, isWords = false, children } = figure;
  return (
    <div class="card figure">
      <span class="quiet small">{title}</span>
      <strong class={`${tone ?? ""}${isWords ? " word" : ""}`}>{value}</strong>
      {children}
    </div>
  );
}

/** What stands where there is nothing yet: what it is about, and the next step. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h1>{title}</h1>
      {children !== undefined && <p>{children}</p>}
    </div>
  );
}

/** Asks once more before something is done. A decision has the focus on the button that confirms it. */
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
    dialog.current?.showModal();
    dialog.current?.querySelector<HTMLElement>("[data-confirms]")?.focus();
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

/** The present time of the page: times that are relative to it are drawn again as it goes on. */
export const now = signal(Date.now());
const TICK_MS = 5000;
setInterval(() => {
  now.value = Date.now();
}, TICK_MS);

/** A point in time, as `words` have it, with the exact one on hover. */
function Time({ at, words }: { readonly at: number; readonly words: string }) {
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={EXACT.format(date)}>
      {words}
    </time>
  );
}

/** A point in time as people say it: `2 min ago`, `today 09:30`, `in 23 h`. */
export function Ago({ at }: { readonly at: number }) {
  return <Time at={at} words={agoWords(at, now.value)} />;
}

/** The time of a day, to the minute, to the second or to the millisecond. */
export function ClockTime({ at, to }: { readonly at: number; readonly to: keyof typeof CLOCKS }) {
  return <Time at={at} words={CLOCKS[to].format(at)} />;
}

/** Copies a text, and says so. */
export function Copy({ of, name = "copy" }: { readonly of: string | (() => string); readonly name?: string }) {
  const copy = () => void copyText(typeof of === "string" ? of : of());
  return (
    <button type="button" class={name === "copy" ? "plain" : ""} onClick={copy}>
      {name}
    </button>
  );
}

/** Puts a text on the clipboard; where the browser has none for this page, into a field that is copied from. */
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
  // Pages that are not served by https have no other way.
  document.execCommand("copy");
  field.remove();
}

/** A choice between a few things of a list, each with its count. */
export function Filters<Name extends string>(filters: {
  readonly label: string;
  readonly of: readonly { readonly name: Name; readonly title: string; readonly count?: number | undefined }[];
  readonly chosen: Name;
  readonly choose: (name: Name) => void;
  /** They lead to parts of a view, not to some of its rows. */
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

/** A field that narrows a list; `/` leads to the first one of a view. */
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

/** A name that others wrote, in the type of names. */
export function Name({ of }: { readonly of: string | null | undefined }) {
  return (
    <strong>
      <Text of={of} most={120} />
    </strong>
  );
}
