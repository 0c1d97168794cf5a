import type { LeftoverName } from "../changes/change-kinds.ts";
import type { PlannedRequest, RunFacts } from "../changes/rows/entries.ts";
import type { InputFile } from "../files/input-file.ts";
import { thousands } from "../platform/text.ts";
import type { Refusal } from "../runs/kind.ts";
import { type Counts, changesNothing, type DidCounts, type KnownChange, type OtherCount } from "../runs/outcome.ts";
import type { ObjectResult, OptionCounts, ReportCounts, RunStatus, WithinCounts } from "../runs/report.ts";
import type { Approval } from "./approvals.ts";
import type { Row } from "./budget.ts";
import type { VerdictRow } from "./event-messages.ts";
import { cut, OUTCOME_WORDS, type SummarizedFailure } from "./failures.ts";
import { escapeInvisible, placeWords, plain, quoteUntrusted } from "./fence.ts";

type ReportedFacts =
  | "rows"
  | "takenFor"
  | "nearNames"
  | "nearIds"
  | "joinedIds"
  | "elsewhere"
  | "missingIds"
  | "unread"
  | "stale";

export interface ReportedRun extends Pick<RunFacts, ReportedFacts> {
  readonly environment: "live" | "sandbox";
  readonly runId?: string;
  readonly tool: string;
  readonly onlyEmpty?: boolean | undefined;
  readonly undoes?: string;
  readonly status: RunStatus;
  readonly counts: ReportCounts;
  readonly requests?: Readonly<Record<"planned" | "sent" | "resent" | "waitedMs", number>>;
  /** By status code: how many answers with this status made this server send a request again. */
  readonly failedWith?: ReadonlyMap<number, number>;
  /** How many requests were sent and not answered yet. `requests` does not include them. */
  readonly unanswered?: number;
  readonly failures: readonly SummarizedFailure[];
  readonly results: readonly (ObjectResult & { readonly input?: unknown })[];
  /**
   * Set for a page of results, which is never cut: the reasons of failures are shortened instead. `matching`: the
   * number of results on all pages. `hasInput`: whether the results have the input of their items.
   */
  readonly page?: { readonly cursor: string | undefined; readonly matching?: number; readonly hasInput?: boolean };
  readonly plan?: readonly PlannedRequest[];
  /** What sending the events of a dry run would take: requests, one for each event, and their bytes. */
  readonly eventRequests?: { readonly items: number; readonly bytes: number };
  /** Whether the call corrects misspelt names in events before it sends them. */
  readonly autocorrects?: boolean;
  readonly verdicts?: readonly VerdictRow[];
  readonly confirmation?: {
    readonly token?: string;
    readonly effect: string;
    readonly expiresAt: string;
    /** Where approval can be given. Absent: on the web page. */
    readonly channel?: "client" | "token";
  };
  readonly nextSteps?: readonly string[];
  readonly strandedNames?: readonly LeftoverName[];
  readonly hasRejects?: boolean;
  readonly did?: DidCounts;
  readonly newOptions?: WithinCounts;
  /** For a change of Context IDs: counts of options, because several items may change the same option. */
  readonly options?: OptionCounts;
  /** How many options that already exist would get more Context IDs. */
  readonly extended?: number;
  /** For an import: how many of the new options (`all`, without groups) have no Context IDs. */
  readonly withoutContextIds?: { readonly count: number; readonly all: number } | undefined;
  readonly approval?: Approval | undefined;
  readonly alwaysReportsApproval?: boolean;
  readonly totals?: { readonly targetingId: string; readonly name: string; readonly optionCount: number };
  readonly file?: InputFile | undefined;
  readonly otherCounts?: readonly OtherCount[];
  readonly resumed?: Counts;
  readonly temporaryNames?: number;
  readonly lastAt?: number;
  readonly blocked?: Refusal | undefined;
  readonly notes?: readonly string[];
  /** Whether the server stopped before it had planned the run. The run then cannot be resumed. */
  readonly neverPlanned?: boolean | undefined;
  /** Whether an undo of the run has started, even if it restored nothing. The run then cannot be resumed. */
  readonly isUndone?: boolean;
  /** Whether unknown results stay unknown, because a resumed run would not send these events again. */
  readonly unknownIsFinal?: boolean;
}

/** Returns a result as a line. The length of these lines decides how many results an answer can have. */
export function resultLine(result: ObjectResult): string {
  return resultRow(result).line;
}

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
    // For a failed object with its input, only the code is shown: the failures in the answer explain it.
    input !== undefined && outcome === "failed"
      ? reason?.code
      : did === undefined || did === "same"
        ? OUTCOME_WORDS[outcome]
        : did,
    objectWords(result, outcome === "succeeded" || outcome === "alreadyDone"),
    predicted && `expected ${predicted}${rule === undefined ? "" : ` (${plain(rule)})`}`,
    observed && `actual ${observed}`,
    ...mended.map((one) => `corrected ${plain(one)}`),
    input === undefined ? undefined : escapeInvisible(JSON.stringify(input)),
  ];
  return { data, line: line.filter((part) => part !== undefined && part !== "").join(" ") };
}

function objectWords(result: ObjectResult, isDone = true): string {
  const [_id, name] = [cut(result._id), cut(result.name)];
  const { names, places } = differencesOf(result);
  const shown = names !== undefined && places === undefined ? names : [name];
  const named = shown.flatMap((one) => (one === undefined ? [] : [quoteUntrusted(cut(one))])).join(" → ");
  return [named || undefined, _id && plain(_id), ...changeWords(result, isDone)]
    .filter((part) => part !== undefined)
    .join(" ");
}

const MAX_NAMED = 20;
const FEW_NAMED = 3;

/** The headings for results. Objects without success have none, because they are among the failures. */
const KINDS: readonly { readonly title: string; readonly isOne: (result: ObjectResult) => boolean }[] = [
  { title: "Created", isOne: ({ did }) => did === "created" },
  {
    title: "Changed",
    isOne: (result) => result.did === "changed" || (result.outcome === "pending" && !changesNothing(result)),
  },
  { title: "Deleted", isOne: ({ did, outcome }) => did === "deleted" && outcome === "succeeded" },
  { title: "Found deleted", isOne: ({ did }) => did === "deleted" },
  {
    title: "Unchanged",
    isOne: ({ did, outcome }) => (did === "same" && outcome === "succeeded") || outcome === "pending",
  },
  { title: "Done", isOne: ({ outcome }) => outcome === "succeeded" },
  { title: "Already done", isOne: ({ outcome }) => outcome === "alreadyDone" },
];

interface ChangeWords {
  readonly done?: string;
  readonly allAt?: string;
  readonly isPlanned?: boolean;
}

/** Returns a line for each kind of change. `done`: the heading for objects if only their success is known. */
export function changeLines(
  results: readonly ObjectResult[],
  all: Readonly<Record<string, number>>,
  { done = "Done", allAt = "", isPlanned = false }: ChangeWords = {},
): readonly string[] {
  const lines: string[] = [];
  let left = results.filter(
    ({ outcome }) => outcome === "succeeded" || outcome === "alreadyDone" || (isPlanned && outcome === "pending"),
  );
  for (const { title, isOne } of KINDS) {
    const own = left.filter(isOne);
    left = left.filter((result) => !isOne(result));
    const count = Math.max(all[title] ?? 0, own.length);
    if (own.length === 0) continue;
    const named = count <= MAX_NAMED ? own : own.slice(0, FEW_NAMED);
    const more = count - named.length;
    const words = named.map((result) => objectWords(result)).join(", ");
    lines.push(
      `${titleOf(title, own, { done, isPlanned })} (${positionWords(named)}): ${words}${more > 0 ? ` and ${thousands(more)} more${allAt}` : ""}`,
    );
  }
  return lines;
}

function titleOf(title: string, results: readonly ObjectResult[], { done, isPlanned }: ChangeWords): string {
  if (title === "Done") return done ?? title;
  if (title !== "Changed") return title;
  const differences = results.map(differencesOf);
  if (results.some(isSetting)) return isPlanned ? "Would change" : title;
  if (differences.every(({ names, places }) => names !== undefined && places === undefined))
    return isPlanned ? "Would rename" : "Renamed";
  if (differences.every(({ names, places }) => names === undefined && places !== undefined))
    return isPlanned ? "Would move" : "Moved";
  return isPlanned ? "Would change" : title;
}

/** Returns positions as text. An object inside another one has two numbers: `items 1-3, 3.1, 3.2`. */
function positionWords(results: readonly ObjectResult[]): string {
  const byLine = results.some(({ line }) => line !== undefined);
  const spots: { first: number; last: number; within: string }[] = [];
  // Options that a plan deletes without a row have no line.
  const placed = byLine ? results.filter(({ line }) => line !== undefined) : results;
  for (const { index, line, child, grandchild } of placed) {
    const at = line ?? index + 1;
    const within = [child, grandchild]
      .flatMap((position) => (position === undefined ? [] : [`.${position + 1}`]))
      .join("");
    const before = spots.at(-1);
    if (within === "" && before?.within === "" && (at === before.last || at === before.last + 1)) before.last = at;
    else spots.push({ first: at, last: at, within });
  }
  const words = spots.map(({ first, last, within }) => (first === last ? `${first}${within}` : `${first}-${last}`));
  const isOne = spots.length === 1 && spots[0]?.first === spots[0]?.last;
  return `${byLine ? "line" : "item"}${isOne ? "" : "s"} ${words.join(", ")}`;
}

type Side = NonNullable<KnownChange["from"]>;

function differencesOf({ from, to }: KnownChange) {
  if (from === undefined || to === undefined) return {};
  const sides = [from, to].map((side) => (typeof side === "string" ? { name: side } : side));
  const names = sides.flatMap(({ name }) => name ?? []);
  const named = sides.flatMap((side) => placeIn(side) ?? []);
  // Groups are compared by ID: if the same call renames a group, it has two names, and two groups can have one name.
  const groups = new Set(sides.map(({ parent }) => parent));
  const isSameName = new Set(named).size < 2;
  const isMoved = groups.has(undefined) ? !isSameName : groups.size === 2;
  const places = isSameName ? sides.map(({ parent }, at) => `${named[at]} ${plain(cut(parent ?? ""))}`) : named;
  return { ...(new Set(names).size === 2 && { names }), ...(isMoved && { places }) };
}

function isSetting({ exposeChildren: shown }: KnownChange): boolean {
  return shown?.from !== shown?.to;
}

function changeWords(change: KnownChange, isDone: boolean): readonly string[] {
  const { added = 0, removed = 0, alreadyThere = 0, absent = 0 } = change;
  const ids = [
    added > 0 && `${thousands(added)} ${isDone ? "added" : "to add"}`,
    removed > 0 && `${thousands(removed)} ${isDone ? "removed" : "to remove"}`,
    alreadyThere > 0 && `${thousands(alreadyThere)} already there`,
    absent > 0 && `${thousands(absent)} not there`,
  ].filter((part) => part !== false);
  const { names = [], places = [] } = differencesOf(change);
  const quoted = names.map((name) => quoteUntrusted(cut(name)));
  const sides = places.map((place, at) => [...quoted.slice(at, at + 1), place].join(" in "));
  return [
    sides.length > 0 && `from ${sides.join(" to ")}`,
    isSetting(change) && `exposeChildren ${change.exposeChildren?.from} → ${change.exposeChildren?.to}`,
    ids.length > 0 && `(${ids.join(", ")})`,
  ].filter((part) => part !== false);
}

function placeIn({ parent, parentName }: Exclude<Side, string>): string | undefined {
  if (typeof parentName === "string") return `group ${quoteUntrusted(cut(parentName))}`;
  if (parent === null) return "the top level";
  return parent === undefined ? undefined : `group ${plain(cut(parent))}`;
}

const LONGEST_TEXT = 300;
const MAX_ENTRIES = 20;
const DEEPEST = 6;

/** Shortens long texts, lists and objects in a value. Adds how long the texts and lists are. */
export function shortened(value: unknown, depth = 0): unknown {
  if (typeof value === "string")
    return value.length > LONGEST_TEXT ? `${value.slice(0, LONGEST_TEXT)}… (${value.length} characters)` : value;
  if (typeof value !== "object" || value === null) return value;
  if (depth === DEEPEST) return "…";
  if (Array.isArray(value)) {
    const first = value.slice(0, MAX_ENTRIES).map((entry) => shortened(entry, depth + 1));
    return value.length > MAX_ENTRIES ? [...first, `… (${value.length} entries)`] : first;
  }
  const entries = Object.entries(value).filter(([, entry]) => entry !== undefined);
  const cut = entries.slice(0, MAX_ENTRIES * 2).map(([field, entry]) => [field, shortened(entry, depth + 1)] as const);
  return Object.fromEntries(cut);
}
