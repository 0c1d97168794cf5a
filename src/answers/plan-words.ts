import type { Problem } from "../plans/file/desired.ts";
import {
  CHANGE_KINDS,
  changesOf,
  type Difference,
  type ExceededLimit,
  isApplicable,
  type ListedChange,
  type ListedChangeKind,
  type ShownValue,
  type StatePlan,
} from "../plans/plan.ts";
import { amount, capitalized, firstOf, thousands } from "../platform/text.ts";
import { plain, quoteUntrusted } from "./fence.ts";

export const KIND_WORDS: Readonly<Record<ListedChangeKind, string>> = {
  created: "created",
  renamed: "renamed",
  moved: "moved",
  contexts: "with other Context IDs",
  settings: "with other settings",
  deleted: "deleted",
  adopted: "found by name",
};

/**
 * Returns a line in the form in which compilers report problems: `FILE:LINE:COLUMN: text`. If the problem has a path,
 * the path replaces the position. For a state in the arguments, which has no lines, `desired` replaces it.
 */
export function problemLine(file: string, { line, column, path, message, remedy }: Problem): string {
  const place = path === undefined ? (line === 0 ? "desired" : `${file}:${line}:${column}`) : plain(path);
  return `${place}: ${plain(message)}. ${plain(remedy)}`;
}

/** Returns everything in a plan except its changes, with one line for each entry. */
export function linesOf({ drift, conflicts, onlyThere, limits, problems }: StatePlan, file: string) {
  return {
    drift: drift.map(differenceLine),
    conflicts: conflicts.map((conflict) => `${differenceLine(conflict)}; ${resolution(conflict)}`),
    onlyThere: onlyThere.map(({ _id, name }) => `${quoteUntrusted(name)} (${_id})`),
    limits: limits.map(limitLine),
    problems: problems.map((problem) => problemLine(file, problem)),
  };
}

/**
 * Returns a note about what cannot be checked before an undo is applied: whether another targeting has the name that it
 * needs, and whether a group in another targeting holds a Context ID that it adds.
 */
export function uncheckedNote(plans: readonly StatePlan[]): readonly string[] {
  const isNaming = plans.some(({ targeting: { _id, rename } }) => _id === undefined || rename !== undefined);
  const fillsGroup = plans.some(({ items }) =>
    items.some((item) => {
      if (item.kind === "create") return item.type === "collection" && item.contexts.length > 0;
      return item.kind === "change" && item.seen.type === "collection" && (item.contexts?.add.length ?? 0) > 0;
    }),
  );
  const left = [
    ...(isNaming ? ["whether another targeting has the name now"] : []),
    ...(fillsGroup ? ["whether a group in another targeting holds these Context IDs now"] : []),
  ];
  return left.length === 0 ? [] : [`Not checked, because the service cannot list targetings: ${left.join(", and ")}.`];
}

/** Returns a change as a line, without the kind of change, which is in the heading. */
export function changeLine({ kind, _id, name, from, to, added, removed, isTargeting }: ListedChange): string {
  const what = `${isTargeting === true ? "the targeting " : ""}${quoteUntrusted(name)}${_id === undefined ? "" : ` (${_id})`}`;
  if (kind === "renamed") return `${what} → ${value(to)}`;
  if (kind === "settings") return `${what}: exposeChildren ${value(from)} → ${value(to)}`;
  if (kind === "moved") return `${what}: ${place(from)} → ${place(to)}`;
  if (kind === "contexts") return `${what}: +${count(added)} −${count(removed)}`;
  if (kind === "deleted") return isTargeting === true ? what : `${what}, with ${contextIds(removed)}`;
  if (kind === "created" && isTargeting !== true) {
    return `${what}${to === undefined ? "" : ` in ${value(to)}`}, with ${contextIds(added)}`;
  }
  return what;
}

/** Returns what a plan changes. If it cannot be applied, begins with the reason. */
function planSummary(changes: readonly ListedChange[], plan: StatePlan): string {
  if (isApplicable(plan)) return planCounts(changes, plan);
  const others = changes.length === 0 ? "" : `; it has ${changeCounts(changes)}`;
  return `cannot be applied: ${obstacles(plan)}${others}`;
}

/** Counts the changes of a plan. If it has none, counts the changes that others have made in the service. */
export function planCounts(changes: readonly ListedChange[], { drift, conflicts, problems }: StatePlan): string {
  if (changes.length > 0 || conflicts.length + problems.length > 0 || drift.length === 0) return changeCounts(changes);
  const [noun, are] = drift.length === 1 ? ["change", "is"] : ["changes", "are"];
  return `no changes of its own; ${count(drift.length)} ${noun} in the service since the base ${are} kept`;
}

export function changeCounts(changes: readonly ListedChange[]): string {
  const isNothing = changes.every(({ kind }) => kind === "adopted");
  const counts = CHANGE_KINDS.flatMap((kind) => {
    const many = changes.filter((change) => change.kind === kind).length;
    return many === 0 ? [] : [`${count(many)} ${KIND_WORDS[kind]}`];
  });
  return [...(isNothing ? ["nothing to do"] : []), ...counts].join(", ");
}

export const FIELD_WORDS: Readonly<Record<Difference["field"], string>> = {
  name: "name",
  parent: "group",
  type: "type",
  exposeChildren: "exposeChildren",
  contexts: "Context IDs",
  deleted: "no longer exists",
  added: "was added since the base",
  subOptions: "sub-options",
};

/** Returns the object, the field, and its known values: in the base, in the file, in the plan and in the service. */
export function differenceLine({ _id, name, field, base, file, service, planned, line }: Difference): string {
  const what = `${quoteUntrusted(name)}${_id === undefined ? "" : ` (${_id})`}${line === undefined ? "" : `, line ${line}`}`;
  if (field === "deleted" || field === "added") return `${what}: ${FIELD_WORDS[field]}`;
  const sides = Object.entries({ base, file, planned, service }).flatMap(([name, picked]) =>
    picked === undefined ? [] : [`${name} ${field === "parent" ? place(picked) : value(picked)}`],
  );
  // Only the numbers of Context IDs are shown. If they are equal, the line says that the Context IDs differ.
  const isSameCount = field === "contexts" && base !== undefined && base === service;
  return `${what}: ${FIELD_WORDS[field]}: ${sides.join(", ")}${isSameCount ? ", but different ones" : ""}`;
}

function resolution({ field, base, file, service, contextIds: ids }: Difference): string {
  if (field === "deleted") return "remove it from the file, or remove its _id to create it again";
  if (file === "deleted" || field === "subOptions") return "put it back into the file";
  if (service === undefined) return "name an existing group, or describe the group as a new one";
  if (field !== "contexts") {
    const key = field === "parent" ? "group" : FIELD_WORDS[field];
    return `in the file, write the service's ${key}: ${field === "parent" ? place(service) : value(service)}`;
  }
  const { onlyService, onlyFile } = ids ?? {};
  const isAdded = onlyService?.count !== 0 && onlyFile !== undefined && Number(file) - onlyFile.count === base;
  if (isAdded && onlyFile.count > 0) {
    return "to keep what both added, write Context Action Add (in YAML or JSON: contextsAtLeast instead of contexts)";
  }
  const parts = [idList("add", onlyService), idList("remove", onlyFile)].filter((part) => part !== "");
  return `in the file, ${parts.join(", and ")}`;
}

function idList(verb: string, ids: NonNullable<Difference["contextIds"]>["onlyFile"] | undefined): string {
  const { count: all = 0, first = [] } = ids ?? {};
  if (all === 0) return "";
  return `${verb} ${first.length === 0 ? contextIds(all) : firstOf(first, all, quoteUntrusted, { all })}`;
}

export function obstacles({ conflicts, problems, limits }: StatePlan): string {
  const few = limits.map(({ limit, of, there, wanted, fits }) =>
    isSetting(limit)
      ? `it has ${count(wanted)} ${of}, and ${limit} allows ${count(fits)} of ${count(there)}`
      : `${limit}: ${count(wanted)} wanted, ${count(fits)} fit`,
  );
  const counted = [
    conflicts.length > 0 && amount(conflicts.length, "conflict"),
    problems.length > 0 && amount(problems.length, "problem"),
  ];
  const [first, ...more] = few;
  return [...counted, first, more.length > 0 && `and ${amount(more.length, "other limit")}`]
    .filter((part) => part !== false && part !== undefined)
    .join(", ");
}

/** Returns whether a limit comes from the settings of this server, not from the service. */
export function isSetting(limit: string): boolean {
  return limit.startsWith("TARGETING_MCP_");
}

/** Returns a line about a limit that the plan would exceed, with the current number and how many more fit. */
export function limitLine({ limit, of, there, wanted, fits }: ExceededLimit): string {
  if (isSetting(limit)) {
    const enough = limit.endsWith("_PERCENT") ? Math.ceil((100 * wanted) / there) : wanted;
    return (
      `${limit} allows ${count(fits)} ${of} of ${count(there)}, and the plan has ${count(wanted)}; ` +
      `${fits > 0 ? `plan at most ${count(fits)} of them at a time, or ` : ""}ask a person to set ${limit} to ${count(enough)} or ` +
      "more in this server's settings and restart it"
    );
  }
  return `${limit} (${quoteUntrusted(of)}): it has ${count(there)}, would have ${count(wanted)}, and ${count(fits)} fit`;
}

export function count(value: number | undefined): string {
  return thousands(value ?? 0);
}

export function contextIds(many: number | undefined): string {
  return `${count(many)} Context ${many === 1 ? "ID" : "IDs"}`;
}

export function value(picked: ShownValue | undefined): string {
  if (typeof picked === "number") return count(picked);
  return typeof picked === "string" ? quoteUntrusted(picked) : String(picked);
}

export function place(picked: ShownValue | undefined): string {
  return picked === null || picked === undefined ? "top level" : value(picked);
}

/** What a line of a plan is about, which decides its colour. */
export type Tone = "comes" | "changes" | "goes" | "stops" | "plain";

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

interface ShownPlan {
  readonly plan: StatePlan;
  readonly file: string;
  readonly digest: string;
  readonly groupName: (id: string) => string;
}

export function planLines({ plan, file, digest, groupName }: ShownPlan): readonly TonedLine[] {
  const changes = changesOf(plan, groupName);
  const { targeting } = plan;
  const lines = linesOf(plan, file);
  const id = targeting._id === undefined ? "a new targeting" : targeting._id;
  return [
    line(`Targeting ${quoteUntrusted(targeting.name)} (${id}): ${planSummary(changes, plan)}`),
    ...CHANGE_KINDS.flatMap((kind) => changeSection(kind, changes)),
    ...section("Changed in the service since the base, and kept", lines.drift, "plain"),
    ...section("Not in the file, and kept", lines.onlyThere, "plain"),
    ...section("Conflicts: write the service's value into the file, or renew the base", lines.conflicts, "stops"),
    ...section("Limits", lines.limits, "stops"),
    ...section("Problems", lines.problems, "stops", ""),
    line(""),
    line(`Plan ${digest.slice(0, 16)}`),
  ];
}

function changeSection(kind: ListedChangeKind, changes: readonly ListedChange[]): readonly TonedLine[] {
  const own = changes.filter((change) => change.kind === kind);
  return section(capitalized(KIND_WORDS[kind]), own.map(changeLine), TONES[kind]);
}

function section(
  title: string,
  lines: readonly string[],
  tone: Tone,
  sign = `  ${SIGNS[tone]} `,
): readonly TonedLine[] {
  if (lines.length === 0) return [];
  const body = lines.map((text) => ({ text: `${sign}${text}`, tone }));
  return [line(""), line(`${title} (${count(lines.length)}):`), ...body];
}

function line(text: string): TonedLine {
  return { text, tone: "plain" };
}

/** The maximum number of rows. With more, the text may be too long for a comment on a pull request. */
const MAX_ROWS = 500;

/** Returns a plan as Markdown for a pull request: first what prevents applying it, then a table of the changes. */
export function planMarkdown({ plan, file, digest, groupName }: ShownPlan): string {
  const changes = changesOf(plan, groupName);
  const { targeting } = plan;
  const lines = linesOf(plan, file);
  const rows = changes
    .slice(0, MAX_ROWS)
    .map((change) => `| ${KIND_WORDS[change.kind]} | ${cell(changeLine(change))} |`);
  const more = changes.length - rows.length;
  return `${[
    `### Plan of ${cell(quoteUntrusted(targeting.name))}: ${planSummary(changes, plan)}`,
    ...list("Problems", lines.problems),
    ...list("Conflicts", lines.conflicts),
    ...list("Limits", lines.limits),
    ...(rows.length === 0 ? [] : ["", "| change | of |", "|---|---|", ...rows]),
    ...(more > 0 ? ["", `And ${count(more)} more.`] : []),
    ...list("Changed in the service since the base, and kept", lines.drift),
    ...list("Not in the file, and kept", lines.onlyThere),
    "",
    `Plan \`${digest}\``,
  ].join("\n")}\n`;
}

function list(title: string, lines: readonly string[]): readonly string[] {
  if (lines.length === 0) return [];
  const shown = lines.slice(0, MAX_ROWS).map((line) => `- ${cell(line)}`);
  const more = lines.length > shown.length ? [`- and ${count(lines.length - shown.length)} more`] : [];
  return ["", `**${title}** (${count(lines.length)})`, "", ...shown, ...more];
}

/** Escapes a foreign text for a cell of a table, so that it cannot act as Markdown, HTML or a mention. */
function cell(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+!|<>~@&-]/g, (sign) =>
    sign === "@" ? "&#64;" : sign === "&" ? "&amp;" : sign === "<" ? "&lt;" : `\\${sign}`,
  );
}

const UNSEEN = "The API does not show who made these changes, or when single Context IDs were added or removed.";

/** Returns the differences as lines for a terminal. `against`: what the service was compared with, in words. */
export function driftLines(
  { name, _id }: { readonly name: string; readonly _id: string },
  drift: readonly Difference[],
  against: string,
): readonly string[] {
  const about = `Targeting ${quoteUntrusted(name)} (${_id})`;
  if (drift.length === 0) return [`${about}: nothing differs from ${against}`];
  const many = `${count(drift.length)} ${drift.length === 1 ? "difference" : "differences"}`;
  return [`${about}: ${many} from ${against}`, ...drift.map((one) => `  ~ ${differenceLine(one)}`), UNSEEN];
}
