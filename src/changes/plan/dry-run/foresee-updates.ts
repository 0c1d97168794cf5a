import type { ManagementApi } from "../../../api/management.ts";
import { findOptions } from "../../../reading/find-options.ts";
import { mapConcurrently, readOptionContents } from "../../../reading/option-contents.ts";
import type { Reason } from "../../../runs/outcome.ts";
import { LIMITS } from "../../../spec/limits.ts";
import type { OptionChanges, OptionRecord } from "../../../spec/records.ts";
import type { Settlement, Step } from "../../rows/entries.ts";
import { requestReason } from "../../state/api-reasons.ts";
import { badParent, type ContentsReader, refusal } from "./targeting-contents.ts";

/** A change of an option that exists. */
interface Update {
  readonly step: Step;
  readonly option: OptionRecord;
  readonly wanted: OptionChanges;
}

/** What would fail of changes to options, as far as reads can tell. Throws the ApiError of a read that fails. */
export async function foreseeUpdates(
  steps: readonly Step[],
  reader: ContentsReader,
  context: { readonly api: ManagementApi; readonly signal: AbortSignal },
): Promise<readonly Settlement[]> {
  const idOf = ({ bindings }: Step): string | undefined => bindings.find(({ field }) => field === "_id")?.id;
  const ids = [...new Set(steps.flatMap((step) => idOf(step) ?? []))];
  const { found, missing } = await findOptions(context.api, ids, context.signal);
  const updates = steps.flatMap((step): Update[] => {
    const option = found.get(idOf(step) ?? "");
    if (option === undefined || step.operation !== "updateOptions") return [];
    return [{ step, option, wanted: step.item }];
  });
  const renamed = new Set(updates.flatMap(({ option, wanted }) => (renames(option, wanted.name) ? [option._id] : [])));
  const refused = await mapConcurrently(updates, async (update) => {
    const reason =
      (await badChange(update, renamed, reader)) ?? (update.step.after ? undefined : await tooMany(update, context));
    return reason && { step: update.step, reason };
  });
  const gone = steps.flatMap((step) => {
    const error = missing.get(idOf(step) ?? "");
    return error === undefined ? [] : [{ step, reason: requestReason("updateOptions", error) }];
  });
  return [...gone, ...refused].flatMap(({ step, reason }) =>
    step.objects.map((object) => ({ object, outcome: "failed" as const, reason })),
  );
}

function renames(option: OptionRecord, name: string | undefined): boolean {
  return name !== undefined && name !== option.name;
}

/** A name that another option keeps, or a place that it cannot have (management-api 7.4). */
async function badChange(
  { step, option, wanted }: Update,
  renamed: ReadonlySet<string>,
  reader: ContentsReader,
): Promise<Reason | undefined> {
  const isGroup = option.type === "collection";
  const unfit = refusal(step, "TARGETING_CATEGORY_NOT_SUPPORTED");
  if (wanted.exposeChildren !== undefined && option.type === "atomic") return unfit;
  if (wanted.parent !== undefined && isGroup) return unfit;
  const asks = typeof wanted.parent === "string" || renames(option, wanted.name);
  const held = asks && option.targeting !== undefined ? await reader(option.targeting) : undefined;
  if (held === undefined || held instanceof Error) return undefined;
  const misplaced = typeof wanted.parent === "string" ? badParent(step, held, wanted.parent) : undefined;
  if (misplaced !== undefined || wanted.name === undefined || !renames(option, wanted.name)) return misplaced;
  const existingIds = (held.names.get(wanted.name) ?? []).filter((id) => id !== option._id && !renamed.has(id));
  return existingIds.length > 0 ? refusal(step, "TARGETING_CATEGORY_NAME_DUPLICATE", { existingIds }) : undefined;
}

/** More Context IDs than an option may hold; only where it may be so close are those that it has read. */
async function tooMany(
  { step, option, wanted }: Update,
  { api, signal }: { readonly api: ManagementApi; readonly signal: AbortSignal },
): Promise<Reason | undefined> {
  const add = wanted.contexts?.add ?? [];
  const limit = LIMITS.optionContextIds.value;
  if (add.length === 0 || (option.contextCount ?? limit) + add.length <= limit) return undefined;
  const { contexts } = await readOptionContents(api, option._id, signal);
  if (new Set([...contexts, ...add]).size <= limit) return undefined;
  return refusal(step, "TARGETING_CONTEXT_LIMIT_EXCEEDED", { limit, there: contexts.length });
}
