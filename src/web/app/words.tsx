import type { EventCause, Verdict, Words } from "../sandbox-wire.ts";
import { type Share, type Tone, visible } from "./parts.tsx";

/** Shows a sentence in parts, with names of fields and events in the font of code. */
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

/** The page's words for the result of an event, with its colour. */
export const RESULTS = {
  recorded: { title: "Recorded", tone: "good" },
  ignored: { title: "Dropped", tone: "warn" },
  rejected: { title: "Rejected", tone: "bad" },
} as const satisfies Record<Verdict, { readonly title: string; readonly tone: Tone }>;

export const VERDICTS = ["recorded", "ignored", "rejected"] as const;

/** Returns the numbers of events by result, as shares of a bar. */
export function eventShares(counts: Readonly<Record<Verdict, number>>): readonly Share[] {
  return VERDICTS.map((verdict) => ({
    tone: RESULTS[verdict].tone,
    count: counts[verdict],
    of: RESULTS[verdict].title.toLowerCase(),
  }));
}

/** Returns the number of events with any of these causes. */
export function eventsOf(causes: readonly EventCause[]): number {
  return causes.reduce((sum, { count }) => sum + count, 0);
}
