import {
  CHANGE_KINDS,
  type Difference,
  type ExceededLimit,
  type ListedChange,
  type ListedChangeKind,
  type ShownValue,
  type StatePlan,
} from "../../plans/diff/plan.ts";
import type { Problem } from "../../plans/file/desired.ts";
import { thousands } from "../../platform/text.ts";
import { plain, shown } from "../fence.ts";

/** How each kind of change is called where changes are counted. */
export const KIND_WORDS: Readonly<Record<ListedChangeKind, string>> = {
  created: "created",
  renamed: "renamed",
  moved: "moved",
  contexts: "with other Context IDs",
  settings: "with other settings",
  deleted: "deleted",
  adopted: "found by name",
};

/** A problem as compilers write theirs: `FILE:LINE:COLUMN: text`; or with its path, where there is no file. */
export function problemLine(file: string, { line, column, path, message, remedy }: Problem): string {
  const place = path === undefined ? `${file}:${line}:${column}` : plain(path);
  return `${place}: ${plain(message)}. ${plain(remedy)}`;
}

/** What a plan of a file says besides its changes, each on a line. */
export function linesOf({ drift, conflicts, onlyThere, limits, problems }: StatePlan, file: string) {
  return {
    drift: drift.map(differenceLine),
    conflicts: conflicts.map(differenceLine),
    onlyThere: onlyThere.map(({ _id, name }) => `${shown(name)} (${_id})`),
    limits: limits.map(limitLine),
    problems: problems.map((problem) => problemLine(file, problem)),
  };
}

/** A change on one line, without its kind. */
export function changeLine({ kind, _id, name, from, to, added, removed, isTargeting }: ListedChange): string {
  const what = `${isTargeting === true ? "the targeting " : ""}${shown(name)}${_id === undefined ? "" : ` (${_id})`}`;
  if (kind === "renamed") return `${what}: ${value(from)} → ${value(to)}`;
  if (kind === "settings") return `${what}: exposeChildren ${value(from)} → ${value(to)}`;
  if (kind === "moved") return `${what}: ${place(from)} → ${place(to)}`;
  if (kind === "contexts") return `${what}: +${count(added)} −${count(removed)}`;
  if (kind === "deleted") return `${what}, with ${contextIds(removed)}`;
  if (kind === "created" && isTargeting !== true) {
    return `${what}${to === undefined ? "" : ` in ${value(to)}`}, with ${contextIds(added)}`;
  }
  return what;
}

/** What a plan comes to, in the words of its heading: its changes, or what others did where it has none itself. */
export function planCounts(changes: readonly ListedChange[], { drift, conflicts, problems }: StatePlan): string {
  if (changes.length > 0 || conflicts.length + problems.length > 0 || drift.length === 0) return changeCounts(changes);
  const [noun, are] = drift.length === 1 ? ["change", "is"] : ["changes", "are"];
  return `no changes of its own; ${count(drift.length)} ${noun} by others since the base ${are} kept`;
}

/** How many changes of each kind there are: "2 created, 1 renamed". */
function changeCounts(changes: readonly ListedChange[]): string {
  const counts = CHANGE_KINDS.flatMap((kind) => {
    const many = changes.filter((change) => change.kind === kind).length;
    return many === 0 ? [] : [`${count(many)} ${KIND_WORDS[kind]}`];
  });
  return counts.length === 0 ? "nothing to do" : counts.join(", ");
}

export const FIELD_WORDS: Readonly<Record<Difference["field"], string>> = {
  name: "name",
  parent: "group",
  type: "type",
  exposeChildren: "exposeChildren",
  contexts: "Context IDs",
  deleted: "is no longer there",
  added: "was added by others",
  subOptions: "sub-options",
};

/** What differs, on one line: the object, the field, and its value on each side that has one. */
export function differenceLine({ _id, name, field, base, file, service, planned, line }: Difference): string {
  const what = `${shown(name)}${_id === undefined ? "" : ` (${_id})`}${line === undefined ? "" : `, line ${line}`}`;
  if (field === "deleted" || field === "added") return `${what}: ${FIELD_WORDS[field]}`;
  const sides = Object.entries({ base, file, planned, service }).flatMap(([name, told]) =>
    told === undefined ? [] : [`${name} ${field === "parent" ? place(told) : value(told)}`],
  );
  // Of Context IDs the sides show how many there are.
  const isSameCount = field === "contexts" && base !== undefined && base === service;
  return `${what}: ${FIELD_WORDS[field]}: ${sides.join(", ")}${isSameCount ? ", but not the same ones" : ""}`;
}

/** A limit that would be exceeded, with what is there and what fits. */
export function limitLine({ limit, of, there, wanted, fits }: ExceededLimit): string {
  if (limit.startsWith("TARGETING_MCP_")) {
    return (
      `${limit} allows ${count(fits)} ${of} of ${count(there)}, and the plan has ${count(wanted)}; a person can raise it ` +
      "where this server is started, or have the change planned in smaller parts"
    );
  }
  return `${limit} (${shown(of)}): ${count(there)} are there, it would be ${count(wanted)}, and ${count(fits)} fit`;
}

export function count(value: number | undefined): string {
  return thousands(value ?? 0);
}

export function contextIds(many: number | undefined): string {
  return `${count(many)} Context ${many === 1 ? "ID" : "IDs"}`;
}

export function value(told: ShownValue | undefined): string {
  return typeof told === "string" ? shown(told) : String(told);
}

export function place(told: ShownValue | undefined): string {
  return told === null || told === undefined ? "top level" : value(told);
}
