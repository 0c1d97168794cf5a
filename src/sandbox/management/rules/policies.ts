import { LIMITS } from "../../../spec/limits.ts";
import { type BusinessError, businessError } from "../outcome.ts";
import type { AdProduct, Project } from "../stored/project.ts";

/** How many more options each ad product would require, by the product's ID. */
export type RequiredIncreases = Map<string, number>;

/**
 * The error of a change after which ad products would require too many options (management-api 7.2, 8.1), or
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

/** What `count` new top-level options of a targeting add to the products whose setting they take over. */
export function increasesByNewOptions(project: Project, targeting: string, count: number): RequiredIncreases {
  return increases(project, (product) => (product.newOptions.has(targeting) ? count : 0));
}

/** What a group's settings add when `heirs` sub-options take them over; the group itself goes when `groupGoes`. */
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

/** A new top-level option takes over the settings of products that want every new option of its targeting. */
export function takeOverAsNew(project: Project, targeting: string, option: string): void {
  for (const product of project.products.values()) {
    const setting = product.newOptions.get(targeting);
    if (setting !== undefined) product.required.set(option, setting);
  }
}

/** A former sub-option takes over the settings of its group (management-api 7.2). */
export function takeOverFromGroup(project: Project, group: string, heir: string): void {
  for (const product of project.products.values()) {
    const setting = product.required.get(group);
    if (setting !== undefined && !product.required.has(heir)) product.required.set(heir, setting);
  }
}

/** Whether an option may not move into a group (management-api 7.2, `TARGETING_CATEGORY_LOCKED`). */
export function isOptionLocked(project: Project, option: string): boolean {
  for (const product of project.products.values()) if (product.required.has(option)) return true;
  for (const campaign of project.campaigns.values()) if (!campaign.ended && campaign.options.has(option)) return true;
  return false;
}

/** The targetings that may not be deleted (management-api 7.2, `TARGETING_LOCKED`). */
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
