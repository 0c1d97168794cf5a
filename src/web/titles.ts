import { many } from "../answers/message-words.ts";
import type { ApprovalRun } from "../changes/approvals.ts";
import { type ChangeRun, isChangeRun } from "../changes/change-run.ts";
import type { EffectPart } from "../changes/rows/entries.ts";
import { cutText, thousands } from "../platform/text.ts";
import type { Run } from "../runs/kind.ts";
import { changeKindsOf } from "../runs/report.ts";
import type { ChangeKinds } from "../runs/store.ts";
import { DELETED, deletionWords, sumIn } from "./effect-parts.ts";
import {
  type About,
  commaList,
  countsOfWaiting,
  isUndoPlan,
  kindsOfWaiting,
  type OtherKinds,
  objectWords,
  partsOf,
} from "./waiting.ts";
import type { ChangeCounts, RunRow } from "./wire.ts";

/** What the title of a run is made from: facts of its summary, and others. Unknown facts are absent. */
export interface TitleParts extends Pick<About, "did" | "only" | "to" | "fileName" | "mergesRows">, OtherKinds {
  readonly tool: string;
  readonly status: string;
  readonly items: number;
  readonly done: number;
  readonly pending?: number;
  /** How the run changed existing objects, including those that are pending. Absent if that is unknown. */
  readonly how?: ChangeKinds | undefined;
  readonly targeting?: string | undefined;
  /** How many options are deleted or created with their targetings, and how many of these are groups, if known. */
  readonly options?: number | undefined;
  readonly groupsInside?: number | undefined;
  /** What a waiting run would delete: names or, if they do not fit into a title, counts. Empty if it is nothing. */
  readonly deletes?: string | undefined;
  /** Only for runs of plans: whether the plan undoes a run, its number of changes, and the title of the undone run. */
  readonly plan?:
    | { readonly isUndo: boolean; readonly changes: ChangeCounts; readonly of?: string | undefined }
    | undefined;
}

const MAX_LETTERS = 80;

/** The first word of a title: the past tense for the statuses `succeeded` and `partial`, otherwise the base form. */
const VERBS = {
  add: ["Added", "Add"],
  import: ["Imported", "Import"],
  change: ["Changed", "Change"],
  create: ["Created", "Create"],
  delete: ["Deleted", "Delete"],
  rename: ["Renamed", "Rename"],
  move: ["Moved", "Move"],
  remove: ["Removed", "Remove"],
  set: ["Set", "Set"],
  apply: ["Applied", "Apply"],
  undo: ["Undid", "Undo"],
  send: ["Sent", "Send"],
  save: ["Saved", "Save"],
  run: ["Ran", "Run"],
  resume: ["Resumed", "Resume"],
} as const;

/** The noun for what a run of each tool counts. For other tools, `nounOf` chooses one. */
const NOUNS: Readonly<Record<string, string>> = {
  create_targetings: "targeting",
  rename_targetings: "targeting",
  delete_targeting: "targeting",
  apply_plan: "change",
  plan_targeting: "change",
  undo_run: "change",
  resume_run: "change",
  track_event: "event",
  track_events: "event",
  run_event_tests: "test",
};

/**
 * Returns the noun for the items that a run counts, in the singular. If the tool has no noun (`NOUNS`), items of a file
 * are "rows", unless several rows form one item. Items of several kinds are "objects".
 */
function nounOf(
  { tool, fileName, mergesRows, groups }: Pick<TitleParts, "tool" | "fileName" | "mergesRows" | keyof OtherKinds>,
  inside?: object,
): string {
  if (inside !== undefined) return "object";
  const noun = Object.hasOwn(NOUNS, tool) ? NOUNS[tool] : undefined;
  return noun ?? (fileName !== undefined && !mergesRows ? "row" : groups === undefined ? "option" : "object");
}

/** Returns the noun for the items that a run counts, and whether the run changes targetings or groups (`has`). */
export function itemsOf(about: Parameters<typeof nounOf>[0], inside?: object): Pick<RunRow, "noun" | "has"> {
  const { tool, groups, targetings } = about;
  const isOfTargetings = targetings !== undefined || (Object.hasOwn(NOUNS, tool) && NOUNS[tool] === "targeting");
  return { noun: nounOf(about, inside), has: isOfTargetings ? "targetings" : groups && "groups" };
}

/** Returns the title of a run. It begins with a verb and has no full stop: `Added 3,000 options to Footwear KR`. */
export function titleOf({ tool, status, items, done, did, how, plan, ...names }: TitleParts): string {
  const cut = (name: string | undefined) => (name === undefined ? undefined : cutText(name, MAX_LETTERS));
  const [targeting, only, to, file] = [names.targeting, names.only, names.to, names.fileName].map(cut);
  const isPartial = status === "partial";
  const verb = (name: keyof typeof VERBS): string => VERBS[name][isPartial || status === "succeeded" ? 0 : 1];
  const within = (word: string): string => (targeting === undefined ? "" : ` ${word} ${targeting}`);
  const all = many(items, nounOf({ tool, ...names }));
  const part = isPartial ? `: ${thousands(done)} of ${all}` : "";
  const imported = status === "succeeded" ? `: ${all}` : part;
  const countOf = (noun: string): string => {
    if (isPartial) return `${thousands(done)} of ${noun === "option" ? all : many(items, noun)}`;
    return noun === "option" ? objectWords(items, names, "items") : many(items, noun);
  };
  const targetings = only === undefined ? names.deletes || countOf("targeting") : `the targeting ${only}`;
  const renamed = to === undefined ? "" : ` to ${to}`;
  /** Returns the title of a run that changes objects: `Renamed 2 options and moved 1 to Bags in Shop`. */
  const changed = (otherwise: string): string => {
    if (status === "succeeded" && did?.changed === 0) return `Changed nothing${within("in")}`;
    const parts =
      how === undefined ? [] : changeParts(how, { ...names, only, to, whole: isPartial ? 0 : items }, "items");
    if (parts.length === 0) return otherwise;
    const words = parts.map(({ does, what, end }, at) => {
      const isOfAll = isPartial && parts.length === 1 && does !== "add" && does !== "remove";
      return `${at === 0 ? verb(does) : verb(does).toLowerCase()} ${isOfAll ? countOf("option") : what}${end}`;
    });
    const isSaid = !isPartial || words.some((word) => word.includes(` of ${thousands(items)} `));
    return commaList(words) + within("in") + (isSaid ? "" : part);
  };
  /** Returns what the run added, if some of the options already existed. Otherwise undefined. */
  const addedWords = ({ created, changed: extended }: ChangeCounts = { created: items, changed: 0, deleted: 0 }) => {
    if (created >= items) return undefined;
    if (created === 0 && extended > 0) return `Context IDs to ${many(extended, "option")}${within("in")}`;
    const more = extended === 0 ? "" : ` and Context IDs to ${thousands(extended)} that existed`;
    return (created === 0 ? "nothing" : `${thousands(created)} of ${many(items, "option")}`) + within("to") + more;
  };
  switch (tool) {
    case "bulk_add_options":
      return file === undefined
        ? `${verb("add")} ${addedWords(status === "succeeded" ? did : undefined) ?? countOf("option") + within("to")}`
        : `${verb("import")} ${file}${within("into")}${imported}`;
    case "update_contexts":
      return file === undefined
        ? changed(`${verb("change")} the Context IDs of ${only ?? countOf("option")}${within("in")}`)
        : `${verb("import")} Context IDs from ${file}${within("into")}${imported}`;
    case "update_options":
      return changed(`${verb("change")} ${only ?? countOf("option")}${within("in")}`);
    case "delete_options":
      if (only !== undefined && !names.deletes)
        return `${verb("delete")} ${names.groups === undefined ? "" : "group "}${only}${within("from")}`;
      return `${verb("delete")} ${names.deletes || countOf("option")}${within("from")}`;
    case "delete_targeting":
      return `${verb("delete")} ${targetings}${withOptions(only !== undefined || items === 1, names.options, names.groupsInside)}`;
    case "create_targetings":
      return `${verb("create")} ${targetings}${withOptions(only !== undefined || items === 1, names.options)}`;
    case "rename_targetings":
      // A run that failed or is running may have only the new name, because it has not read the targeting.
      if (only !== undefined && to === undefined)
        return `${verb("rename")} ${targeting === only ? "a targeting" : (targeting ?? "a targeting")} to ${only}`;
      return `${verb("rename")} ${only === undefined ? countOf("targeting") : only + renamed}`;
    case "apply_plan":
    case "plan_targeting":
    case "undo_run": {
      const isUndo = plan?.isUndo ?? tool === "undo_run";
      const isAhead = AHEAD.has(status);
      const known = isAhead || !names.pending ? how : undefined;
      const counts = changeCounts(plan?.changes ?? did, { ...names, how: known }, { isUndo, isAhead });
      const what = counts === "" ? part : `: ${counts}`;
      const which = plan?.of === undefined ? `changes${within("to")}` : `"${cutText(plan.of, 2 * MAX_LETTERS)}"`;
      if (isUndo) return `${verb("undo")} ${which}${what}`;
      return `${verb("apply")} ${file ?? "a plan"}${within("to")}${what}`;
    }
    case "track_event":
    case "track_events":
      return `${verb("send")} ${file === undefined ? countOf("event") : `the events of ${file}${part}`}`;
    case "run_event_tests":
      return `${verb("run")} event tests against the live service`;
    case "resume_run":
      return `${verb("resume")} an interrupted run${within("in")}`;
    case "list_options":
    case "get_option":
      return `${verb("save")} ${targeting ?? "options"} to ${file ?? "a file"}`;
    default:
      return `${tool}${within("in")}${part}`;
  }
}

/** A part of what a run changed: `{ does: "move", what: "2 options", end: " to Bags" }`. */
interface ChangePart {
  readonly does: keyof typeof VERBS;
  readonly what: string;
  readonly end: string;
}

interface ChangedObjects extends OtherKinds {
  readonly only?: string | undefined;
  readonly to?: string | undefined;
  /** How many objects the run has. A part of the title about all of them names each kind, for example groups. */
  readonly whole: number;
}

/**
 * Returns how a run changed existing objects, as parts of a title. `of`: whether the groups and targetings that a part
 * names are counted among all items of the run, or only among the changed ones.
 */
function changeParts(how: ChangeKinds, objects: ChangedObjects, of: "items" | "changed"): readonly ChangePart[] {
  const { only, to, whole, groups, targetings } = objects;
  const others = (groups?.[of] ?? 0) + (targetings?.[of] ?? 0);
  const nounFor = (count: number): string =>
    count === whole ? objectWords(count, objects, of) : many(count, others > 0 ? "object" : "option");
  const parts: ChangePart[] = [];
  const objectOf = (count: number): string => {
    if (only === undefined) return nounFor(count);
    return parts.length === 0 ? only : "it";
  };
  const { renamed, moved, into, exposed, extended, added, reduced, removed } = how;
  if (renamed > 0) parts.push({ does: "rename", what: objectOf(renamed), end: to === undefined ? "" : ` to ${to}` });
  if (moved > 0) {
    const what = only === undefined && parts.length > 0 ? thousands(moved) : objectOf(moved);
    parts.push({ does: "move", what, end: into === undefined ? "" : ` to ${into ?? "the top level"}` });
  }
  if (exposed > 0) {
    const end = ` to show or hide ${exposed === 1 ? "its" : "their"} sub-options`;
    parts.push({ does: "set", what: only === undefined ? many(exposed, "group") : objectOf(exposed), end });
  }
  const isBoth = added > 0 && removed > 0 && only === undefined;
  const within = (word: string, count: number): string => (isBoth ? "" : ` ${word} ${objectOf(count)}`);
  if (added > 0) parts.push({ does: "add", what: many(added, "Context ID"), end: within("to", extended) });
  const gone = added > 0 ? thousands(removed) : many(removed, "Context ID");
  if (removed > 0) parts.push({ does: "remove", what: gone, end: within("from", reduced) });
  return parts;
}

function withOptions(isOne: boolean, options = 0, groups = 0): string {
  if (groups > 0) return ` with ${many(groups, "group")} and ${many(options - groups, "option")}`;
  return options === 0 ? "" : ` and ${isOne ? "its" : "their"} ${many(options, "option")}`;
}

const AHEAD: ReadonlySet<string> = new Set(["planned", "needs_confirmation"]);

/**
 * Describes counts of changes: `1 option added, 2 options renamed`, `1 group and 2 options restored`. `isAhead`: as
 * changes to make, `add 1 option, rename 2 options`.
 */
function changeCounts(
  counts: ChangeCounts | undefined,
  { how, ...kinds }: OtherKinds & Pick<TitleParts, "how">,
  { isUndo, isAhead }: { readonly isUndo: boolean; readonly isAhead: boolean },
): string {
  if (counts === undefined) return "";
  const created = isUndo ? (["restored", "restore"] as const) : (["added", "add"] as const);
  const words = { created, changed: ["changed", "change"], deleted: ["deleted", "delete"] } as const;
  const parts = (["created", "changed", "deleted"] as const).flatMap((kind) => {
    const [done, todo] = words[kind];
    const known =
      kind === "changed" && how !== undefined ? changeParts(how, { ...kinds, whole: counts.changed }, kind) : [];
    if (counts[kind] > 0 && known.length > 0) {
      return known.map(({ does, what, end }) => {
        const [past, base] = VERBS[does].map((word) => word.toLowerCase());
        return isAhead ? `${base} ${what}${end}` : `${what} ${past}${end}`;
      });
    }
    const count = objectWords(counts[kind], kinds, kind);
    return counts[kind] === 0 ? [] : [isAhead ? `${todo} ${count}` : `${count} ${done}`];
  });
  return parts.join(", ");
}

/** Omits the name of the group to which options move, which would make a label too long. Undefined without `kinds`. */
function withoutGroup(kinds: ChangeKinds | undefined): ChangeKinds | undefined {
  const { into: _, ...how } = kinds ?? {};
  return "moved" in how ? how : undefined;
}

/** Returns the label of the button that approves a run, such as `Delete 260 options`. */
export function actOf(run: ChangeRun | ApprovalRun): string {
  if (!isChangeRun(run)) return run.header.call.tool === "resume_run" ? "Resume the run" : "Send the tests";
  const counts = countsOfWaiting(run);
  const { created, changed, deleted } = counts;
  if (isUndoPlan(run)) {
    const kinds = { ...kindsOfWaiting(run), how: withoutGroup(changeKindsOf(run.state)) };
    return `Undo: ${changeCounts(counts, kinds, { isUndo: true, isAhead: true })}`;
  }
  if (run.header.call.tool === "apply_plan") return `Apply ${many(created + changed + deleted, "change")}`;
  const deletes = deletionWords(partsOf(run));
  if (deletes !== "") return `Delete ${deletes}`;
  return changed > 0 ? `Change ${many(changed, "option")}` : "Approve";
}

/** Returns the parts of a title for a run that waits for approval. `of`: the title of the run that it undoes. */
export function waitingTitle(
  run: Run,
  of?: string,
): Pick<TitleParts, "plan" | "options" | "groupsInside" | "deletes" | "how"> & OtherKinds {
  const parts = partsOf(run);
  const how = changeKindsOf(run.state);
  if (isChangeRun(run) && run.header.call.tool === "apply_plan")
    return { plan: { isUndo: isUndoPlan(run), changes: countsOfWaiting(run), of }, how, ...kindsOfWaiting(run) };
  const inside = { options: sumIn(parts, "options"), groupsInside: sumIn(parts, "groups") };
  return { how, ...inside, deletes: deletedNames(parts) ?? deletionWords(parts) };
}

const MAX_NAMED = 3;
/** The maximum number of characters that several names in a title have together. */
const MAX_NAMES_LETTERS = 60;

/**
 * Returns the names of what would be deleted: `group Clothing and option Bags`. A single option has no noun. Undefined
 * if there are too many objects for a title, or if their names are too long for it.
 */
function deletedNames(parts: readonly EffectPart[]): string | undefined {
  const kinds = parts.flatMap(({ title, count, objects }) => {
    const noun = DELETED.get(title);
    return noun === undefined ? [] : [{ noun, count, names: objects.map(({ name }) => cutText(name, MAX_LETTERS)) }];
  });
  const count = kinds.reduce((sum, kind) => sum + kind.count, 0);
  const named = kinds.flatMap(({ names }) => names);
  if (named.length !== count || count === 0 || count > MAX_NAMED) return undefined;
  if (count > 1 && named.join("").length > MAX_NAMES_LETTERS) return undefined;
  if (count === 1 && kinds[0]?.noun === "option") return kinds[0].names[0];
  return kinds
    .map(
      ({ noun, names }) =>
        `${noun}${names.length === 1 ? "" : "s"} ${kinds.length > 1 ? names.join(", ") : commaList(names)}`,
    )
    .join(" and ");
}
