import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { number } from "./announce.ts";
import { Text } from "./parts.tsx";
import { outcome } from "./state.ts";
import { agoWords, CLOCK, EXACT } from "./time-words.ts";

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

/** The present time of the page: times that are relative to it are drawn again as it goes on. */
export const now = signal(Date.now());
const TICK_MS = 5000;
setInterval(() => {
  now.value = Date.now();
}, TICK_MS);

/** A point in time as people say it (`2 min ago`, `today 09:30`, `in 23 h`), with the exact one on hover. */
export function Ago({ at }: { readonly at: number }) {
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={EXACT.format(date)}>
      {agoWords(at, now.value)}
    </time>
  );
}

/** A time of a day, exactly on hover. */
export function ClockTime({ at }: { readonly at: number }) {
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={EXACT.format(date)}>
      {CLOCK.format(date)}
    </time>
  );
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
