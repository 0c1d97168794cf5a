import type { ManagementApi } from "../api/management.ts";
import type { ByteSource } from "../platform/bytes.ts";
import type { ServiceTargeting } from "./base/service-targeting.ts";
import type { PlanItem, StatePlan } from "./diff/plan.ts";
import { lookAgain } from "./diff/stale.ts";
import { type PlanDocument, readPlan } from "./plan-document.ts";
import { type HowToRead, readTargeting } from "./read-targeting.ts";

/** A plan, and what is there now, as those who carry it out need it. */
interface PlannedChanges {
  readonly targeting: StatePlan["targeting"];
  readonly items: readonly PlanItem[];
  readonly alreadyDone: ReadonlySet<number>;
  readonly stale: ReturnType<typeof lookAgain>["stale"];
  readonly there: ReadonlyMap<string, ServiceTargeting["options"][number]>;
  /** Those of further targetings, where a way back has several. */
  readonly further: readonly PlannedChanges[];
}

/** A plan beside the state that it was made from. */
export function asPlanned({ targeting, items }: StatePlan, there: ServiceTargeting | undefined): PlannedChanges {
  const options = new Map(there?.options.map((option) => [option._id, option]));
  return { targeting, items, alreadyDone: new Set(), stale: [], there: options, further: [] };
}

/**
 * Reads a plan that was kept, reads its targeting afresh, and looks whether the plan still fits. Throws a FileError
 * where the plan cannot be read, and the ApiError of a read.
 */
export async function lookAgainAt(
  bytes: ByteSource,
  { api, signal }: { readonly api: ManagementApi; readonly signal: AbortSignal },
): Promise<PlannedChanges> {
  const document = await readKeptPlan(bytes);
  const look = async (plan: StatePlan): Promise<PlannedChanges> => {
    const { _id } = plan.targeting;
    const there = _id === undefined ? undefined : await readTargeting(api, _id, { signal, wants: wantsOf(plan) });
    return { ...asPlanned(plan, there), ...lookAgain(plan, there) };
  };
  const further: PlannedChanges[] = [];
  for (const plan of document.wayBack?.further ?? []) further.push(await look(plan));
  return { ...(await look(document.plan)), further };
}

/**
 * The options whose Context IDs decide whether a plan still fits, or how it is carried out: those that it deletes or whose
 * Context IDs it changes, the groups that something leaves or goes into, and those that have a name which it takes.
 */
function wantsOf({ items }: StatePlan): HowToRead["wants"] {
  const ids = new Set<string>();
  const names = new Set<string>();
  for (const item of items) {
    if (item.kind === "create") names.add(item.name);
    else if (item.kind === "delete" || item.contexts !== undefined) ids.add(item._id);
    if (item.kind === "delete") continue;
    if (item.parent) ids.add("_id" in item.parent ? item.parent._id : "");
    if (item.kind === "change" && item.parent !== undefined && item.seen.parent !== null) ids.add(item.seen.parent);
  }
  return ({ _id, name }) => ids.has(_id) || names.has(name);
}

/** A plan that was kept. Throws a FileError where it cannot be read. */
export async function readKeptPlan(bytes: ByteSource): Promise<PlanDocument> {
  return readPlan(await textOf(bytes), "the kept plan");
}

/** The whole text of some bytes. */
export async function textOf(bytes: ByteSource): Promise<string> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let text = "";
  for await (const piece of bytes()) text += decoder.decode(piece, { stream: true });
  return text + decoder.decode();
}
