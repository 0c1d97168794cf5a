import { many } from "../answers/message-words.ts";
import { isApproval } from "../approvals/approvals.ts";
import { isChangeRun } from "../changes/change-run.ts";
import type { EffectPart } from "../changes/rows/entries.ts";
import { thousands } from "../platform/text.ts";
import type { Run } from "../runs/kind.ts";
import type { DidCounts } from "./wire.ts";

/** What the sentence about a run is made of. What is not known of it is absent. */
export interface TitleParts {
  readonly tool: string;
  readonly status: string;
  readonly items: number;
  readonly done: number;
  readonly did?: DidCounts | undefined;
  /** The name of the one targeting that it is about. */
  readonly targeting?: string | undefined;
  /** The name of its only object. */
  readonly only?: string | undefined;
  /** The new name of its only object, where it is renamed. */
  readonly to?: string | undefined;
  readonly fileName?: string | undefined;
  /** Of a plan: what it is, and how many changes it holds. */
  readonly plan?: { readonly isUndo: boolean; readonly changes: DidCounts } | undefined;
}

/** The longest name in a sentence. */
const MOST_LETTERS = 80;

/** A name as it stands in a sentence. */
function shortTitle(name: string): string {
  return name.length <= MOST_LETTERS ? name : `${name.slice(0, MOST_LETTERS)}…`;
}

type Verb = readonly [done: string, open: string];

const VERBS = {
  add: ["Added", "Add"],
  import: ["Imported", "Import"],
  change: ["Changed", "Change"],
  create: ["Created", "Create"],
  delete: ["Deleted", "Delete"],
  rename: ["Renamed", "Rename"],
  apply: ["Applied", "Apply"],
  undo: ["Undid", "Undo"],
  send: ["Sent", "Send"],
  save: ["Saved", "Save"],
  run: ["Ran", "Run"],
  resume: ["Resumed", "Resume"],
} as const satisfies Readonly<Record<string, Verb>>;

/** Runs that did something: their sentence is in the past. */
const IS_DONE: ReadonlySet<string> = new Set(["succeeded", "partial"]);

/** A run as a sentence without its end, which begins with a verb: `Added 3,000 options to Footwear KR`. */
export function titleOf(parts: TitleParts): string {
  const { tool, status, items, done, did, fileName, plan } = parts;
  const isDone = IS_DONE.has(status);
  const verb = (name: keyof typeof VERBS): string => VERBS[name][isDone ? 0 : 1];
  const targeting = parts.targeting === undefined ? undefined : shortTitle(parts.targeting);
  const only = parts.only === undefined ? undefined : shortTitle(parts.only);
  const within = (word: string): string => (targeting === undefined ? "" : ` ${word} ${targeting}`);
  const part = status === "partial" ? `: ${thousands(done)} of ${thousands(items)}` : "";
  const all = (noun: string): string =>
    status === "partial" ? `${thousands(done)} of ${many(items, noun)}` : many(items, noun);
  switch (tool) {
    case "bulk_add_options":
      return fileName === undefined
        ? `${verb("add")} ${all("option")}${within("to")}`
        : `${verb("import")} ${shortTitle(fileName)}${within("into")}${part}`;
    case "update_contexts":
      return fileName === undefined
        ? `${verb("change")} the Context IDs of ${all("option")}${within("in")}`
        : `${verb("import")} Context IDs from ${shortTitle(fileName)}${within("into")}${part}`;
    case "update_options":
      if (parts.to !== undefined && only !== undefined)
        return `${verb("rename")} ${only} to ${shortTitle(parts.to)}${within("in")}`;
      return `${verb("change")} ${all("option")}${within("in")}`;
    case "delete_options":
      return `${verb("delete")} ${only ?? all("option")}${within("from")}`;
    case "delete_targeting":
      return `${verb("delete")} ${only === undefined ? all("targeting") : `the targeting ${only}`}`;
    case "create_targetings":
      return `${verb("create")} ${only === undefined ? all("targeting") : `the targeting ${only}`}`;
    case "rename_targetings":
      return only === undefined
        ? `${verb("rename")} ${all("targeting")}`
        : `${verb("rename")} ${only}${parts.to === undefined ? "" : ` to ${shortTitle(parts.to)}`}`;
    case "apply_plan":
    case "plan_targeting":
    case "undo_run":
      return planTitle({ verb, within, part, fileName, isUndo: plan?.isUndo ?? tool === "undo_run", did, plan });
    case "track_event":
    case "track_events":
      return `${verb("send")} ${fileName === undefined ? all("event") : `the events of ${shortTitle(fileName)}${part}`}`;
    case "run_event_tests":
      return `${verb("run")} event tests against the live service`;
    case "resume_run":
      return `${verb("resume")} an interrupted run${within("in")}`;
    case "list_options":
    case "get_option":
      return `${verb("save")} ${targeting ?? "options"} to a file`;
    default:
      return `${tool}${within("in")}${part}`;
  }
}

function planTitle({
  verb,
  within,
  part,
  fileName,
  isUndo,
  did,
  plan,
}: Pick<TitleParts, "fileName" | "did" | "plan"> & {
  readonly verb: (name: keyof typeof VERBS) => string;
  readonly within: (word: string) => string;
  readonly part: string;
  readonly isUndo: boolean;
}): string {
  const counts = changeCounts(plan?.changes ?? did);
  const what = counts === "" ? part : `: ${counts}`;
  if (isUndo) return `${verb("undo")} changes${within("to")}${what}`;
  return `${verb("apply")} ${fileName === undefined ? "a plan" : shortTitle(fileName)}${within("to")}${what}`;
}

/** Counts of changes: `1 new, 3 changed, 1 deleted`. */
function changeCounts(counts: DidCounts | undefined): string {
  if (counts === undefined) return "";
  const words = { created: "new", changed: "changed", deleted: "deleted" } as const;
  const parts = (["created", "changed", "deleted"] as const).flatMap((kind) =>
    counts[kind] === 0 ? [] : [`${thousands(counts[kind])} ${words[kind]}`],
  );
  return parts.join(", ");
}

/** The name of the only object of a run, and the one that it gets where it is renamed. */
export function onlyObject(run: Run): Pick<TitleParts, "only" | "to"> {
  const { objects } = run.state;
  if (objects.length !== 1 || isApproval(run)) return {};
  const { name, change } = objects.at(0) ?? {};
  if (!isChangeRun(run)) return {};
  const { from, to } = change ?? {};
  if (typeof from === "string" && typeof to === "string") return { only: from, to };
  return name === undefined ? {} : { only: name };
}

/** How many objects an effect creates, changes and deletes; one that stands in several parts counts once. */
export function countsOfEffect(parts: readonly EffectPart[]): DidCounts {
  const counts = { created: 0, changed: 0, deleted: 0 };
  const changed = new Set<string>();
  for (const { title, count, objects } of parts) {
    const kind = kindOfPart(title);
    if (kind === "changed") for (const [at, { _id }] of objects.entries()) changed.add(_id ?? `${title} ${at}`);
    else if (kind !== undefined) counts[kind] += count;
  }
  return { ...counts, changed: changed.size };
}

const KINDS_OF_PARTS: Readonly<Record<string, keyof DidCounts>> = {
  "Targetings deleted": "deleted",
  "Option groups deleted": "deleted",
  "Options deleted": "deleted",
  "Options that lose Context IDs": "changed",
  "Options that get Context IDs": "changed",
  "Targetings renamed": "changed",
  "Options renamed": "changed",
  "Options moved": "changed",
  "Option groups with other settings": "changed",
  "Targetings created": "created",
  "Options created": "created",
};

/** What a part of an effect does to its objects; undefined where it says what becomes of objects in an undo. */
export function kindOfPart(title: string): keyof DidCounts | undefined {
  return Object.hasOwn(KINDS_OF_PARTS, title) ? KINDS_OF_PARTS[title] : undefined;
}
