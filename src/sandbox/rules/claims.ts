import { addCount } from "../../platform/by-key.ts";
import { LIMITS } from "../../spec/limits.ts";
import { type BusinessError, businessError } from "./outcome.ts";
import { type AdProduct, idsBy, type Project } from "./store.ts";

/** A group in `detail.conflicts` (management-api 7.3). One that the same request creates may have no ID yet. */
interface GroupName {
  readonly collection: { readonly _id?: string; readonly name: string };
  readonly targeting?: { readonly _id?: string; readonly name?: string };
}

/**
 * What earlier items of a request take: Context IDs of groups, and space for Context IDs. All items are applied at the
 * same time, so a later item can use neither what an earlier one takes nor what it gives up (management-api 4.1).
 */
export interface Claims {
  readonly project: Project;
  readonly groupContexts: Map<string, GroupName>;
  /** How many Context IDs the project had before the request, and how many the earlier items add. */
  readonly contextsBefore: number;
  contextsAdded: number;
}

export function noClaims(project: Project): Claims {
  return { project, groupContexts: new Map(), contextsBefore: project.contextCount, contextsAdded: 0 };
}

/**
 * Returns an error if another group, or an earlier item, has one of the Context IDs (management-api 7.2
 * `TARGETING_COLLECTION_CONTEXT_DUPLICATED`). `self`: the group that is to get them.
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

export function storedGroupName(project: Project, id: string): GroupName {
  const group = project.options.get(id);
  const targeting = group === undefined ? undefined : project.targetings.get(group.targeting);
  return {
    collection: { _id: id, name: group?.name ?? "" },
    ...(targeting === undefined ? {} : { targeting: { _id: targeting._id, name: targeting.name } }),
  };
}

/** Returns an error if the project would have too many Context IDs (management-api 8.1). */
export function projectContextError(claims: Claims, count: number): BusinessError | undefined {
  const total = claims.contextsBefore + claims.contextsAdded + count;
  return count > 0 && total > LIMITS.projectContextIds.value
    ? businessError("TARGETING_CONTEXT_LIMIT_EXCEEDED")
    : undefined;
}

export function claimGroupContexts(claims: Claims, values: Iterable<string>, group: GroupName): void {
  for (const value of values) claims.groupContexts.set(value, group);
}

/**
 * Returns, for each item that repeats a name, the index of the first item with that name (management-api 7.3
 * `duplicateOfIndex`); undefined for other items. Only names in the same `place` are compared, such as in one
 * targeting.
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

/** How many more required options each ad product would get, by ID of the ad product. */
export type RequiredIncreases = Map<string, number>;

/** Returns an error if an ad product would require too many options (7.2, 8.1). `before`: what earlier items add. */
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

/** Returns how many more required options each ad product gets from `count` new top-level options. */
export function increasesByNewOptions(project: Project, targeting: string, count: number): RequiredIncreases {
  return increases(project, (product) => (product.newOptions.has(targeting) ? count : 0));
}

/**
 * Returns how many more required options each ad product gets if the sub-options `heirs` leave their group and inherit
 * its settings. `groupGoes`: the group itself is deleted, so it no longer counts.
 */
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

export function addIncreases(total: RequiredIncreases, more: RequiredIncreases): void {
  for (const [id, increase] of more) addCount(total, id, increase);
}

/** If ad products require all new options of a targeting, makes a new top-level option required in them. */
export function takeOverAsNew(project: Project, targeting: string, option: string): void {
  for (const product of project.products.values()) {
    const setting = product.newOptions.get(targeting);
    if (setting !== undefined) product.required.set(option, setting);
  }
}

/** If ad products require a group, makes an option that has left this group required in them (management-api 7.2). */
export function inheritRequiredSetting(project: Project, group: string, heir: string): void {
  for (const product of project.products.values()) {
    const setting = product.required.get(group);
    if (setting !== undefined && !product.required.has(heir)) product.required.set(heir, setting);
  }
}

/** Returns whether an ad product requires an option or a campaign that has not ended uses it (management-api 7.2). */
export function isOptionLocked(project: Project, option: string): boolean {
  for (const product of project.products.values()) if (product.required.has(option)) return true;
  for (const campaign of project.campaigns.values()) if (!campaign.ended && campaign.options.has(option)) return true;
  return false;
}

/** Returns the targetings with options in approved campaigns that have not ended (7.2 `TARGETING_LOCKED`). */
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
