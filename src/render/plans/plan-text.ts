import {
  CHANGE_KINDS,
  changesOf,
  type ListedChange,
  type ListedChangeKind,
  type StatePlan,
} from "../../plans/diff/plan.ts";
import { shown } from "../fence.ts";
import { changeLine, count, KIND_WORDS, linesOf, planCounts } from "./words.ts";

/** How a line of a plan may be marked: what comes, what changes, what goes, and what stops it. */
export type Tone = "comes" | "changes" | "goes" | "stops" | "plain";

/** A line, and what it is about. */
export interface TonedLine {
  readonly text: string;
  readonly tone: Tone;
}

const TONES: Readonly<Record<ListedChangeKind, Tone>> = {
  created: "comes",
  renamed: "changes",
  moved: "changes",
  contexts: "changes",
  settings: "changes",
  deleted: "goes",
  adopted: "plain",
};

const SIGNS: Readonly<Record<Tone, string>> = { comes: "+", changes: "~", goes: "-", stops: "!", plain: " " };

/** What a plan is shown with. */
export interface ShownPlan {
  readonly plan: StatePlan;
  /** The path of the file, as it was given. */
  readonly file: string;
  readonly digest: string;
  readonly groupName: (id: string) => string;
}

/** A plan in lines for a terminal: everything of it, change by change. */
export function planLines({ plan, file, digest, groupName }: ShownPlan): readonly TonedLine[] {
  const changes = changesOf(plan, groupName);
  const { targeting } = plan;
  const lines = linesOf(plan, file);
  const id = targeting._id === undefined ? "a new targeting" : targeting._id;
  return [
    line(`Targeting ${shown(targeting.name)} (${id}): ${planCounts(changes, plan)}`),
    ...CHANGE_KINDS.flatMap((kind) => changeSection(kind, changes)),
    ...section("Changed by others since the base, and kept", lines.drift, "plain"),
    ...section("Only there", lines.onlyThere, "plain"),
    ...section("Conflicts: write the service's value into the file, or renew the base", lines.conflicts, "stops"),
    ...section("Limits", lines.limits, "stops"),
    ...section("Problems", lines.problems, "stops", ""),
    line(""),
    line(`Plan ${digest.slice(0, 16)}`),
  ];
}

function changeSection(kind: ListedChangeKind, changes: readonly ListedChange[]): readonly TonedLine[] {
  const own = changes.filter((change) => change.kind === kind);
  return section(heading(KIND_WORDS[kind]), own.map(changeLine), TONES[kind]);
}

function heading(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function section(
  title: string,
  lines: readonly string[],
  tone: Tone,
  sign = `  ${SIGNS[tone]} `,
): readonly TonedLine[] {
  if (lines.length === 0) return [];
  return [
    line(""),
    line(`${title} (${count(lines.length)}):`),
    ...lines.map((text) => ({ text: `${sign}${text}`, tone })),
  ];
}

function line(text: string): TonedLine {
  return { text, tone: "plain" };
}
