import type { OptionType } from "../../../spec/records.ts";
import { type BusinessError, businessError } from "../outcome.ts";
import type { NewOption } from "../request-schemas.ts";
import { type Project, putOption, type StoredOption } from "../stored/project.ts";
import { type Claims, claimGroupContexts, ownContextError, projectContextError } from "./claims.ts";

/** What operations take from outside: the time, and new IDs that sort after all earlier ones. */
export interface Sources {
  now(): number;
  newId(): string;
}

/** The type that a new option gets: a group where `children` is given without `type` (assumed). */
export function typeOf(option: NewOption): OptionType {
  return option.type ?? (option.children === undefined ? "atomic" : "collection");
}

/** The names that a new option brings, its own first. */
export function namesOf(option: NewOption): readonly string[] {
  return [option.name, ...(option.children ?? []).map((child) => child.name)];
}

/** How many options a new option is, sub-options included. */
export function sizeOf(option: NewOption): number {
  return 1 + (option.children?.length ?? 0);
}

/** How many Context IDs a new option holds, those of its sub-options included. */
function contextCountOf(option: NewOption): number {
  const children = option.children ?? [];
  return [option, ...children].reduce((total, { contexts }) => total + new Set(contexts).size, 0);
}

/** The error of a new option whose fields do not go together (management-api 7.4, cases 1 and 2), or undefined. */
export function shapeError(option: NewOption): BusinessError | undefined {
  const isGroup = typeOf(option) === "collection";
  const hasContent = (option.children ?? []).length > 0 || (option.contexts ?? []).length > 0;
  const wrong = isGroup ? !hasContent : option.children !== undefined || option.exposeChildren !== undefined;
  return wrong ? businessError("TARGETING_CATEGORY_NOT_SUPPORTED") : undefined;
}

/**
 * Checks the Context IDs of new options that are made together, and claims them when all are free.
 * `targeting` is the one they are for, where it exists already. Gives the error, or undefined.
 */
export function claimContexts(
  claims: Claims,
  options: readonly NewOption[],
  targeting?: string,
): BusinessError | undefined {
  const groups = options.filter((option) => typeOf(option) === "collection");
  const own: Claims = { ...claims, groupContexts: new Map() };
  for (const group of groups) {
    const contexts = new Set(group.contexts);
    const error = ownContextError(claims, contexts) ?? ownContextError(own, contexts);
    if (error !== undefined) return error;
    claimGroupContexts(own, contexts, newGroupName(group, targeting));
  }
  const count = options.reduce((total, option) => total + contextCountOf(option), 0);
  const error = projectContextError(claims, count);
  if (error !== undefined) return error;
  for (const [value, group] of own.groupContexts) claims.groupContexts.set(value, group);
  claims.contextsAdded += count;
  return undefined;
}

function newGroupName(group: NewOption, targeting: string | undefined) {
  const collection = { name: group.name };
  return targeting === undefined ? { collection } : { collection, targeting: { _id: targeting } };
}

/** Stores a new option with its sub-options. */
export function writeNewOption(
  project: Project,
  option: NewOption,
  place: { readonly targeting: string; readonly parent?: string | undefined; readonly at: string },
  newId: () => string,
): StoredOption {
  const common = { targeting: place.targeting, createdAt: place.at, updatedAt: place.at };
  const stored = putOption(project, {
    ...common,
    _id: newId(),
    name: option.name,
    type: typeOf(option),
    parent: place.parent,
    exposeChildren: option.exposeChildren,
    contexts: option.contexts ?? [],
  });
  for (const child of option.children ?? []) {
    const contexts = child.contexts ?? [];
    putOption(project, { ...common, _id: newId(), name: child.name, type: "atomic", parent: stored._id, contexts });
  }
  return stored;
}
