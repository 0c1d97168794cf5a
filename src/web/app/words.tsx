import type { ComponentChildren } from "preact";
import type { Verdict, Words } from "../sandbox-wire.ts";
import { type Tone, visible } from "./parts.tsx";

/** A sentence in parts, with names of fields and events in the font of code. */
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

/** The placeholder of an empty view, with the next step. */
export function NothingYet({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      <p>{children}</p>
    </div>
  );
}

/** Column headings that are only read by screen readers. */
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
