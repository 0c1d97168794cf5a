import type { ComponentChildren } from "preact";
import { number } from "./announce.ts";

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
