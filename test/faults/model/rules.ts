import { READS, type StoredLimits } from "./facts.ts";
import type { Option, Project, Targeting } from "./project.ts";

/** Why an item fails (management-api 2.3). */
export interface ItemError {
  readonly statusCode: number;
  readonly errorCode: string;
  readonly detail?: Readonly<Record<string, unknown>>;
}

/** How one item of a bulk request ended. */
export type ItemOutcome = { readonly data: Record<string, unknown> } | { readonly error: ItemError };

/** Whether an item failed. */
export function isError<T extends object>(outcome: T | { readonly error: ItemError }): outcome is { error: ItemError } {
  return "error" in outcome;
}

/** An error of management-api 7.2. */
export function refusal(
  statusCode: number,
  errorCode: string,
  detail?: Readonly<Record<string, unknown>>,
): { readonly error: ItemError } {
  return { error: { statusCode, errorCode, ...(detail === undefined ? {} : { detail }) } };
}

export const NOT_SUPPORTED = refusal(400, "TARGETING_CATEGORY_NOT_SUPPORTED");
export const NO_TARGETING = refusal(404, "TARGETING_NOT_FOUND");
export const NO_OPTION = refusal(404, "TARGETING_CATEGORY_NOT_FOUND");

/** Returns a context targeting. Audience targetings are not reachable through the API (management-api 1). */
export function targetingIn(project: Project, id: string): Targeting | undefined {
  const targeting = project.targetings.get(id);
  return targeting?.kind === "context" ? targeting : undefined;
}

/** Returns an option of a context targeting. */
export function optionIn(project: Project, id: string): Option | undefined {
  const option = project.options.get(id);
  return option !== undefined && targetingIn(project, option.targeting) !== undefined ? option : undefined;
}

/** Returns an error if another targeting has the name: it must be unique in the project (management-api 8.3, 7.3). */
export function targetingNameTaken(project: Project, name: string, own?: string) {
  const holder = [...project.targetings.values()].find((each) => each.name === name && each.id !== own);
  if (holder === undefined) return undefined;
  return refusal(409, "TARGETING_NAME_DUPLICATE", holder.kind === "context" ? { existingId: holder.id } : undefined);
}

/**
 * Returns an error if another option has the name: it must be unique in the targeting, including groups and sub-options
 * (management-api 8.3, 7.3).
 */
export function optionNameTaken(project: Project, targeting: string, name: string, own?: string) {
  const holders = project.optionsNamed(targeting, name).filter((each) => each.id !== own);
  if (holders.length === 0) return undefined;
  return refusal(409, "TARGETING_CATEGORY_NAME_DUPLICATE", { existingIds: holders.map((each) => each.id) });
}

/**
 * Returns an error if a group already has one of the Context IDs: groups share no own Context IDs (management-api 7.2).
 */
export function contextsHeldByGroups(groups: readonly Option[], contexts: readonly string[], project: Project) {
  const wanted = new Set(contexts);
  const conflicts = groups.flatMap((group) =>
    [...group.contexts]
      .filter((value) => wanted.has(value))
      .map((value) => ({
        value,
        collection: { _id: group.id, name: group.name },
        targeting: { _id: group.targeting, name: project.targetings.get(group.targeting)?.name },
      })),
  );
  if (conflicts.length === 0) return undefined;
  const shown = conflicts.slice(0, READS.conflictsShown);
  return refusal(400, "TARGETING_COLLECTION_CONTEXT_DUPLICATED", { conflicts: shown });
}

/** Checks the limits of stored Context IDs. Only additions can exceed a limit (management-api 8.1, 8.2 rule 1). */
export function contextLimitExceeded(
  limits: StoredLimits,
  project: Project,
  options: readonly { readonly before: number; readonly after: ReadonlySet<string> }[],
) {
  const grown = options.filter(({ before, after }) => after.size > before);
  const growth = options.reduce((sum, { before, after }) => sum + after.size - before, 0);
  const bytes = (ids: ReadonlySet<string>): number =>
    [...ids].reduce((sum, contextId) => sum + Buffer.byteLength(contextId, "utf8"), 0);
  const tooMuch =
    grown.some(({ after }) => after.size > limits.optionContextIds || bytes(after) > limits.optionContextBytes) ||
    (growth > 0 && project.contextCount + growth > limits.projectContextIds);
  return tooMuch ? refusal(400, "TARGETING_CONTEXT_LIMIT_EXCEEDED") : undefined;
}

/** Checks how many options a targeting may have (management-api 8.1). */
export function optionLimitExceeded(limits: StoredLimits, targeting: Targeting, more: number) {
  if (targeting.options.size + more <= limits.targetingOptions) return undefined;
  return refusal(400, "TARGETING_CATEGORY_LIMIT_EXCEEDED", { targeting: targeting.id, limit: limits.targetingOptions });
}
