import { LIMITS } from "../../spec/limits.ts";
import { type BusinessError, businessError } from "./outcome.ts";
import { type AdProduct, idsBy, type Project } from "./store.ts";

/** A group as in `detail.conflicts` (management-api 7.3). Parts may be missing for groups of the same request. */
interface GroupName {
  readonly collection: { readonly _id?: string; readonly name: string };
  readonly targeting?: { readonly _id?: string; readonly name?: string };
}

/**
 * The claims of the earlier items of a request. The items of a request are one unit of time (4.1): what one item takes
 * is unavailable to the next, and what one item frees (a Context ID, room under a limit) cannot be used before the next
 * request.
 */
export interface Claims {
  readonly project: Project;
  /** The groups' own Context IDs that an earlier item took or freed, with the group. */
  readonly groupContexts: Map<string, GroupName>;
  /** The number of Context IDs in the project before the request, and the number that earlier items have added. */
  readonly contextsBefore: number;
  contextsAdded: number;
}

/** Returns the claims at the beginning of a request. */
export function noClaims(project: Project): Claims {
  return { project, groupContexts: new Map(), contextsBefore: project.contextCount, contextsAdded: 0 };
}

/**
 * Returns the error of own Context IDs that another group of the project has, or that an earlier item has claimed
 * (management-api 7.2 `TARGETING_COLLECTION_CONTEXT_DUPLICATED`), or undefined. `self` is the group that they are for.
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

/** Returns the name of a stored group in `detail.conflicts`. */
export function storedGroupName(project: Project, id: string): GroupName {
  const group = project.options.get(id);
  const targeting = group === undefined ? undefined : project.targetings.get(group.targeting);
  return {
    collection: { _id: id, name: group?.name ?? "" },
    ...(targeting === undefined ? {} : { targeting: { _id: targeting._id, name: targeting.name } }),
  };
}

/** Returns the error of adding `count` Context IDs to the project (management-api 8.1, 200,000), or undefined. */
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
 * Finds names repeated within a request (management-api 7.3 `duplicateOfIndex`). Takes each item's names, with the
 * scope within which they must be unique. Returns for each item the index of the item that used one of its names first
 * (its own index if it repeats one itself), or undefined.
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

/** How many more options each ad product would require, by the product's ID. */
export type RequiredIncreases = Map<string, number>;

/**
 * Returns the error of a change after which ad products would require too many options (management-api 7.2, 8.1), or
 * undefined. `change` is what this change adds, `before` what earlier items of the request add.
 */
export function requiredLimitError(
  project: Project,
  change: RequiredIncreases,
  before: RequiredIncreases = new Map(),
): BusinessError | undefined {
  const limit = LIMITS.productRequiredOptions.value;
  const exceeded = [...change].flatMap(([id, increase]) => {
    const count = (project.products.get(id)?.required.size ?? 0) + (before.get(id) ?? 0) + increase;
    return increase > 0 && count > limit ? [{ id, count }] : [];
  });
  if (exceeded.length === 0) return undefined;
  return businessError("AD_PRODUCT_TARGETING_POLICY_LIMIT_EXCEEDED", {
    limit,
    count: Math.max(...exceeded.map(({ count }) => count)),
    products: exceeded.map(({ id }) => id),
  });
}

/** Returns what `count` new top-level options of a targeting add to the products whose setting they inherit. */
export function increasesByNewOptions(project: Project, targeting: string, count: number): RequiredIncreases {
  return increases(project, (product) => (product.newOptions.has(targeting) ? count : 0));
}

/** Returns what a group's settings add if `heirs` sub-options inherit them. `groupGoes`: the group is deleted. */
export function increasesByHeirs(
  project: Project,
  group: string,
  heirs: readonly string[],
  groupGoes: boolean,
): RequiredIncreases {
  return increases(project, (product) => {
    if (!product.required.has(group)) return 0;
    return heirs.filter((heir) => !product.required.has(heir)).length - (groupGoes ? 1 : 0);
  });
}

function increases(project: Project, by: (product: AdProduct) => number): RequiredIncreases {
  const all: RequiredIncreases = new Map();
  for (const product of project.products.values()) {
    const increase = by(product);
    if (increase > 0) all.set(product._id, increase);
  }
  return all;
}

/** Adds `more` to `total`. */
export function addIncreases(total: RequiredIncreases, more: RequiredIncreases): void {
  for (const [id, increase] of more) total.set(id, (total.get(id) ?? 0) + increase);
}

/** Lets a new top-level option inherit the settings of products that require every new option of its targeting. */
export function takeOverAsNew(project: Project, targeting: string, option: string): void {
  for (const product of project.products.values()) {
    const setting = product.newOptions.get(targeting);
    if (setting !== undefined) product.required.set(option, setting);
  }
}

/** Lets a former sub-option inherit the settings of its group (management-api 7.2). */
export function inheritRequiredSetting(project: Project, group: string, heir: string): void {
  for (const product of project.products.values()) {
    const setting = product.required.get(group);
    if (setting !== undefined && !product.required.has(heir)) product.required.set(heir, setting);
  }
}

/** Returns whether an option may not move into a group (management-api 7.2, `TARGETING_CATEGORY_LOCKED`). */
export function isOptionLocked(project: Project, option: string): boolean {
  for (const product of project.products.values()) if (product.required.has(option)) return true;
  for (const campaign of project.campaigns.values()) if (!campaign.ended && campaign.options.has(option)) return true;
  return false;
}

/** Returns the targetings that may not be deleted (management-api 7.2, `TARGETING_LOCKED`). */
export function lockedTargetings(project: Project): ReadonlySet<string> {
  const locked = new Set<string>();
  for (const campaign of project.campaigns.values()) {
    if (!campaign.approved || campaign.ended) continue;
    for (const id of campaign.options) {
      const option = project.options.get(id);
      if (option !== undefined) locked.add(option.targeting);
    }
  }
  return locked;
}
