import { thousands } from "../../platform/text.ts";
import type { KnownChange } from "../../runs/outcome.ts";
import type { ObjectResult } from "../../runs/report.ts";
import { cut } from "../failures/failures.ts";
import { OUTCOME_WORDS } from "../failures/messages.ts";
import { plain, seen, shown } from "../fence.ts";
import { placeWords } from "../places.ts";
import type { Row } from "../row.ts";

/** The line of a result, for counting what fits a page. */
export function resultLine(result: ObjectResult): string {
  return resultRow(result).line;
}

/** One object of a run as data and as a line: where it stands, how it ended, what it is, and what changed. */
export function resultRow({ reason, input, ...result }: ObjectResult & { readonly input?: unknown }): Row {
  const { outcome, did, predicted, rule, observed, mended = [] } = result;
  const [_id, name] = [cut(result._id), cut(result.name)];
  const data = {
    ...result,
    ...(_id !== undefined && { _id }),
    ...(name !== undefined && { name }),
    ...(reason !== undefined && { errorCode: reason.code }),
    ...(input !== undefined && { input }),
  };
  const line = [
    `${placeWords(result)}:`,
    // What is shown with its input did not succeed: the failures say how.
    input !== undefined && outcome === "failed"
      ? undefined
      : did === undefined || did === "same"
        ? OUTCOME_WORDS[outcome]
        : did,
    _id && plain(_id),
    name === undefined ? undefined : shown(name),
    ...changeWords(result),
    predicted && `predicted ${predicted}${rule === undefined ? "" : ` (${plain(rule)})`}`,
    observed && `observed ${observed}`,
    ...mended.map((one) => `mended ${plain(one)}`),
    input === undefined ? undefined : seen(JSON.stringify(input)),
  ];
  return { data, line: line.filter((part) => part !== undefined).join(" ") };
}

/** What changed, where it was read before. */
function changeWords({ from, to, added, removed, alreadyThere, absent }: KnownChange): readonly string[] {
  const ids = [
    added !== undefined && `${thousands(added)} added`,
    removed !== undefined && `${thousands(removed)} removed`,
    alreadyThere !== undefined && alreadyThere > 0 && `${thousands(alreadyThere)} already there`,
    absent !== undefined && absent > 0 && `${thousands(absent)} not there`,
  ].filter((part) => part !== false);
  const moves = from === undefined || to === undefined ? [] : [`from ${sideWords(from)} to ${sideWords(to)}`];
  return [...moves, ...(ids.length > 0 ? [`(${ids.join(", ")})`] : [])];
}

function sideWords(side: NonNullable<KnownChange["from"]>): string {
  if (typeof side === "string") return shown(cut(side));
  const { name } = side;
  return [name === undefined ? undefined : shown(cut(name)), placeIn(side)]
    .filter((part) => part !== undefined)
    .join(" in ");
}

function placeIn({ parent, parentName }: Exclude<NonNullable<KnownChange["from"]>, string>): string | undefined {
  if (typeof parentName === "string") return `group ${shown(cut(parentName))}`;
  if (parent === null) return "the top level";
  return parent === undefined ? undefined : `group ${plain(cut(parent))}`;
}

const LONGEST_TEXT = 300;
const MOST_ENTRIES = 20;
const DEEPEST = 6;

/** What was given, long texts and lists cut, saying so. */
export function shortened(value: unknown, depth = 0): unknown {
  if (typeof value === "string")
    return value.length > LONGEST_TEXT ? `${value.slice(0, LONGEST_TEXT)}… (${value.length} characters)` : value;
  if (typeof value !== "object" || value === null) return value;
  if (depth === DEEPEST) return "…";
  if (Array.isArray(value)) {
    const first = value.slice(0, MOST_ENTRIES).map((entry) => shortened(entry, depth + 1));
    return value.length > MOST_ENTRIES ? [...first, `… (${value.length} entries)`] : first;
  }
  const entries = Object.entries(value).filter(([, entry]) => entry !== undefined);
  const cut = entries.slice(0, MOST_ENTRIES * 2).map(([field, entry]) => [field, shortened(entry, depth + 1)] as const);
  return Object.fromEntries(cut);
}
