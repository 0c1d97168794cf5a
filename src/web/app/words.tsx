import type { ComponentChildren } from "preact";
import type { Verdict, Words } from "../sandbox-wire.ts";
import { visible } from "./parts.tsx";
import type { Tone } from "./widgets.tsx";

/** A sentence in parts, with names of fields and events in the type of code. */
export function WordsOf({ of }: { readonly of: Words }) {
  return (
    <>
      {of.map((part, at) => {
        const key = `${at}`;
        return typeof part === "string" ? (
          <span key={key}>{visible(part)}</span>
        ) : (
          <code key={key}>
            <bdi>{visible(part.code)}</bdi>
          </code>
        );
      })}
    </>
  );
}

/** What became of an event, as the page calls it, and its colour. */
export const RESULTS = {
  recorded: { title: "Recorded", tone: "good" },
  ignored: { title: "Dropped", tone: "warn" },
  rejected: { title: "Rejected", tone: "bad" },
} as const satisfies Record<Verdict, { readonly title: string; readonly tone: Tone }>;

const EXACT = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat("en", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
  hour12: false,
});

/** The time of an event to the millisecond, with its day on hover. */
export function ExactTime({ at }: { readonly at: number }) {
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={EXACT.format(date)}>
      {CLOCK.format(date)}
    </time>
  );
}

const TO_THE_SECOND = new Intl.DateTimeFormat("en", { timeStyle: "medium", hour12: false });

/** The time of a day to the second, with its day on hover. */
export function SecondTime({ at }: { readonly at: number }) {
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={EXACT.format(date)}>
      {TO_THE_SECOND.format(date)}
    </time>
  );
}

/** A count with its noun. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** What stands in a view where there is nothing yet, with the next step. */
export function NothingYet({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      <p>{children}</p>
    </div>
  );
}

/** The heads of columns that explain themselves: they are only read out. */
export function SpokenHeads({ of }: { readonly of: readonly string[] }) {
  return (
    <thead class="spoken-heads">
      <tr>
        {of.map((head) => (
          <th key={head} scope="col">
            <span class="spoken">{head}</span>
          </th>
        ))}
      </tr>
    </thead>
  );
}
