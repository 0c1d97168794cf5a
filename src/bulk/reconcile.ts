import * as z from "zod";
import { isApiError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import { LIMITS } from "../spec/limits.ts";
import type { OptionRecord } from "../spec/records.ts";
import { isUlid, ulidTime } from "../spec/ulid.ts";
import type { Driver } from "./driver.ts";
import { ownReason } from "./reasons.ts";
import type { Reason, Step, StepChange } from "./work.ts";

const nameTaken = z.looseObject({ existingId: z.string().optional(), existingIds: z.array(z.string()).optional() });

/** The IDs that a name duplicate error gives (management-api 7.3). */
export function existingIds(reason: Reason): readonly string[] {
  const parsed = nameTaken.safeParse(reason.detail ?? {});
  if (!parsed.success) return [];
  const { existingId, existingIds: several = [] } = parsed.data;
  return existingId === undefined ? several : [existingId, ...several];
}

/** A create whose first attempt stayed unanswered, and whose resend met its name. */
export interface MetItsName {
  readonly step: Step;
  readonly reason: Reason;
}

/**
 * Tells whether what a resent create met is its own doing (architecture, step 6): it is when the existing ID is newer
 * than the first attempt and the thing is what was sent. Older is another's: `failed`. `madeNow` says that the resend
 * made other items of the same unit, so that the first attempt cannot have made this one. What cannot be told is
 * `unknown`. Reads List Options pages, newest first; for targetings each one.
 */
export async function reconcileCreates(
  driver: Driver,
  met: readonly MetItsName[],
  madeNow: boolean,
): Promise<readonly StepChange[]> {
  const open: { readonly step: Step; readonly reason: Reason; readonly id: string; readonly sure: boolean }[] = [];
  const changes: StepChange[] = [];
  for (const { step, reason } of met) {
    const since = driver.state.suspectSince(step.id) ?? 0;
    const [id] = existingIds(reason).filter(isUlid).sort().reverse();
    const order = id === undefined ? "before" : driver.serverClock.order(ulidTime(id), since);
    if (id === undefined || order === "before") changes.push({ step: step.id, to: "failed", reason });
    else if (madeNow) changes.push({ step: step.id, to: "unknown", reason: unclear(id) });
    else open.push({ step, reason, id, sure: order === "after" || ulidTime(id) >= since });
  }
  const found = await lookUp(driver, open);
  for (const { step, id, sure, reason } of open) {
    const made = found.get(id);
    if (made === undefined) changes.push({ step: step.id, to: "unknown", reason: unclear(id) });
    else if (isAsSent(step, made) && sure) changes.push({ step: step.id, to: "done", _id: id, ...childIdsOf(made) });
    else if (sure || isAsSent(step, made)) changes.push({ step: step.id, to: "unknown", reason: unclear(id) });
    else changes.push({ step: step.id, to: "failed", reason });
  }
  return changes;
}

function unclear(id: string): Reason {
  return ownReason("OWNER_UNCLEAR", { existingIds: [id] });
}

function childIdsOf(made: Made): { readonly childIds?: readonly string[] } {
  return made.children === undefined ? {} : { childIds: made.children };
}

/** What is compared between what was sent and what is there. */
interface Made {
  readonly name: string;
  readonly type?: string | undefined;
  readonly contextCount?: number | undefined;
  readonly childCount?: number | undefined;
  readonly optionCount?: number | undefined;
  readonly children?: readonly string[] | undefined;
}

const sent = z.looseObject({
  name: z.string(),
  type: z.string().optional(),
  contexts: z.array(z.string()).optional(),
  children: z.array(z.looseObject({})).optional(),
  options: z.array(z.looseObject({ children: z.array(z.unknown()).optional() })).optional(),
});

/** Whether a thing is what a step would have made. What the service does not tell is taken as equal. */
function isAsSent(step: Step, made: Made): boolean {
  const item = sent.parse(JSON.parse(step.json));
  const options = item.options?.reduce((sum, option) => sum + 1 + (option.children?.length ?? 0), 0) ?? 0;
  const type = item.children === undefined ? (item.type ?? "atomic") : "collection";
  if (step.operation === "createTargetings") {
    return made.name === item.name && (made.optionCount ?? options) === options;
  }
  return (
    made.name === item.name &&
    (made.type ?? type) === type &&
    (made.contextCount ?? item.contexts?.length ?? 0) === (item.contexts?.length ?? 0) &&
    (made.childCount ?? item.children?.length ?? 0) === (item.children?.length ?? 0)
  );
}

async function lookUp(
  driver: Driver,
  wanted: readonly { readonly step: Step; readonly id: string }[],
): Promise<ReadonlyMap<string, Made>> {
  const found = new Map<string, Made>();
  const places = new Map<
    string,
    { readonly targeting: string; readonly parent: string | undefined; ids: Set<string> }
  >();
  for (const { step, id } of wanted) {
    const at = (field: "targeting" | "parent"): string | undefined => {
      const binding = step.bindings.find((candidate) => candidate.field === field);
      return binding === undefined ? undefined : driver.state.boundId(binding);
    };
    const targeting = at("targeting");
    if (targeting === undefined) {
      const record = await orUndefined(driver.api.getTargeting(id));
      if (record !== undefined) found.set(id, record);
      continue;
    }
    const parent = at("parent");
    const place = places.get(`${targeting} ${parent}`) ?? { targeting, parent, ids: new Set() };
    place.ids.add(id);
    places.set(`${targeting} ${parent}`, place);
  }
  for (const { targeting, parent, ids } of places.values()) {
    const records = await orUndefined(findNewest(driver.api, targeting, parent, ids));
    for (const record of records ?? []) found.set(record._id, record);
  }
  return found;
}

/** Reads List Options pages from the newest on until all IDs were met, or none is left to read. */
async function findNewest(
  api: ManagementApi,
  targeting: string,
  parent: string | undefined,
  ids: ReadonlySet<string>,
): Promise<readonly OptionRecord[]> {
  const limit = LIMITS.listLimit.value;
  const query = { limit, ...(parent === undefined ? {} : { parent }) };
  const first = await api.listOptions(targeting, query);
  const found = first.items.filter((option) => ids.has(option._id));
  const offsets =
    first.total === undefined
      ? undefined
      : Array.from({ length: Math.ceil(first.total / limit) - 1 }, (_, page) => (page + 1) * limit).reverse();
  for (
    let offset = offsets === undefined ? limit : offsets.shift();
    offset !== undefined && found.length < ids.size;
  ) {
    const page = await api.listOptions(targeting, { ...query, offset });
    found.push(...page.items.filter((option) => ids.has(option._id)));
    offset = offsets === undefined ? (page.items.length < limit ? undefined : offset + limit) : offsets.shift();
  }
  return found;
}

/** A read that fails proves nothing: what it was to tell stays unknown. */
async function orUndefined<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (thrown) {
    if (isApiError(thrown)) return undefined;
    throw thrown;
  }
}
