import type { Verdict, Words } from "../sandbox-wire.ts";
import { type Share, type Tone, visible } from "./parts.tsx";
import { hello } from "./state.ts";

/** Shows a sentence in parts. Names of fields and events have a monospaced font. */
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

/** Shows how to fix the cause of a problem, on a new line. Shows nothing if no fix is known. */
export function Fix({ of }: { readonly of: Words }) {
  return of.length === 0 ? null : (
    <span class="line small">
      Fix: <WordsOf of={of} />
    </span>
  );
}

/** Marks data of the sandbox on a page that also shows data of a live server. */
export function SandboxTag() {
  return hello.value?.sandbox === undefined ? null : <span class="pill sandbox">sandbox</span>;
}

/** How the page names the results of events, with the colour of each. */
export const RESULTS = {
  recorded: { title: "Recorded", tone: "good" },
  ignored: { title: "Dropped", tone: "dropped" },
  rejected: { title: "Rejected", tone: "bad" },
} as const satisfies Record<Verdict, { readonly title: string; readonly tone: Tone }>;

export const VERDICTS = ["recorded", "ignored", "rejected"] as const;

/** Returns the counts of events by result, as segments of a bar. */
export function eventShares(counts: Readonly<Record<Verdict, number>>): readonly Share[] {
  return VERDICTS.map((verdict) => ({
    tone: RESULTS[verdict].tone,
    count: counts[verdict],
    of: RESULTS[verdict].title.toLowerCase(),
  }));
}
