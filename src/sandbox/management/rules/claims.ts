import { LIMITS } from "../../../spec/limits.ts";
import { type BusinessError, businessError } from "../outcome.ts";
import { idsBy } from "../stored/id-index.ts";
import type { Project } from "../stored/project.ts";

/** A group as `detail.conflicts` names it (management-api 7.3); parts may be missing for groups of the same request. */
interface GroupName {
  readonly collection: { readonly _id?: string; readonly name: string };
  readonly targeting?: { readonly _id?: string; readonly name?: string };
}

/**
 * What the items of one request have taken so far. The items of a request are one unit of time (4.1): what one item
 * takes is gone for the next, and what one item frees (a Context ID, room under a limit) cannot be used before the
 * next request.
 */
export interface Claims {
  readonly project: Project;
  /** Own Context IDs of groups: taken or freed by an earlier item, with the group. */
  readonly groupContexts: Map<string, GroupName>;
  /** The project's Context IDs when the request began, and how many earlier items have added. */
  readonly contextsBefore: number;
  contextsAdded: number;
}

/** Begins a request. */
export function noClaims(project: Project): Claims {
  return { project, groupContexts: new Map(), contextsBefore: project.contextCount, contextsAdded: 0 };
}

/**
 * The error of own Context IDs that another group of the project has, or that an earlier item has claimed
 * (management-api 7.2 `TARGETING_COLLECTION_CONTEXT_DUPLICATED`), or undefined. `self` is the group they are for.
 */
export function ownContextError(claims: Claims, added: Iterable<string>, self?: string): BusinessError | undefined {
  const conflicts: unknown[] = [];
  for (const value of added) {
    if (conflicts.length >= LIMITS.conflictsShown.value) break;
    const owner = ownerOf(claims, value, self);
    if (owner !== undefined) conflicts.push({ value, ...owner });
  }
  return conflicts.length === 0 ? undefined : businessError("TARGETING_COLLECTION_CONTEXT_DUPLICATED", { conflicts });
}

function ownerOf(claims: Claims, value: string, self: string | undefined): GroupName | undefined {
  const [holder] = idsBy(claims.project.groupContexts, value, self);
  if (holder !== undefined) return storedGroupName(claims.project, holder);
  const claimed = claims.groupContexts.get(value);
  return claimed !== undefined && (self === undefined || claimed.collection._id !== self) ? claimed : undefined;
}

/** How a stored group is named in `detail.conflicts`. */
export function storedGroupName(project: Project, id: string): GroupName {
  const group = project.options.get(id);
  const targeting = group === undefined ? undefined : project.targetings.get(group.targeting);
  return {
    collection: { _id: id, name: group?.name ?? "" },
    ...(targeting === undefined ? {} : { targeting: { _id: targeting._id, name: targeting.name } }),
  };
}

/** The error of adding `count` Context IDs to the project (management-api 8.1, 200,000), or undefined. */
export function projectContextError(claims: Claims, count: number): BusinessError | undefined {
  const total = claims.contextsBefore + claims.contextsAdded + count;
  return count > 0 && total > LIMITS.projectContextIds.value
    ? businessError("TARGETING_CONTEXT_LIMIT_EXCEEDED")
    : undefined;
}

/** Claims own Context IDs for a group. */
export function claimGroupContexts(claims: Claims, values: Iterable<string>, group: GroupName): void {
  for (const value of values) claims.groupContexts.set(value, group);
}

/**
 * Names repeated within a request (management-api 7.3 `duplicateOfIndex`). Takes each item's names, with the place
 * within which they must be unique; gives for each item the index of the item that used one of its names first (its
 * own index when it repeats one itself), or undefined.
 */
export function repeatedNames(
  items: readonly { readonly place: string; readonly names: readonly string[] }[],
): readonly (number | undefined)[] {
  const firstUse = new Map<string, Map<string, number>>();
  return items.map(({ place, names }, index) => {
    const used = firstUse.get(place) ?? new Map<string, number>();
    firstUse.set(place, used);
    let repeated: number | undefined;
    for (const name of names) {
      const first = used.get(name);
      if (first === undefined) used.set(name, index);
      else repeated ??= first;
    }
    return repeated;
  });
}
