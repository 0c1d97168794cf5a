import * as z from "zod";
import { RejectedError } from "../../api/errors.ts";
import type { ManagementApi } from "../../api/management.ts";
import { undefinedIf } from "../../platform/files.ts";
import { compareContexts, mapConcurrently } from "../../reads/option-contents.ts";
import type { OptionNames } from "../../reads/option-lists.ts";
import { listPages, type OptionList } from "../../reads/pages.ts";
import { ownReason, type Reason } from "../../runs/outcome.ts";
import { LIMITS } from "../../spec/limits.ts";
import { isUlid, ulidTime } from "../../spec/names-and-contexts.ts";
import type { OptionRecord, TargetingRecord } from "../../spec/records.ts";
import type { RunState } from "../change-state.ts";
import { type Step, type StepChange, targetOf } from "../rows/entries.ts";
import {
  type ChangeDriver,
  clockFor,
  clockOrderOf,
  isNewer,
  orderOf,
  orUndefined,
  readServiceClock,
} from "./evidence.ts";

const nameTaken = z.looseObject({ existingId: z.string().optional(), existingIds: z.array(z.string()).optional() });

export function existingIds(reason: Reason): readonly string[] {
  const parsed = nameTaken.safeParse(reason.detail ?? {});
  if (!parsed.success) return [];
  const { existingId, existingIds: several = [] } = parsed.data;
  return existingId === undefined ? several : [existingId, ...several];
}

/**
 * A create whose first attempt got no answer, and whose name is taken now. `reason`: why it would fail, with the IDs of
 * the objects that have the name.
 */
export interface InDoubtNameConflict {
  readonly step: Step;
  readonly reason: Reason;
}

interface OpenCreate extends InDoubtNameConflict {
  /** The objects that the first attempt may have created: they have the name and are not known to be older. */
  readonly ids: readonly string[];
}

/**
 * Decides whether the first attempt of a create has itself created the object that has its name now. `done` if the
 * object is probably newer than that attempt and equals what was sent. `failed` if the object is older. `unknown` if
 * neither is shown. With `madeNow`, a later attempt has created other items of the same all-or-nothing request, so the
 * first attempt created nothing. `namesIn` returns the names in a targeting, including those of sub-options.
 */
export async function reconcileCreates(
  driver: ChangeDriver,
  met: readonly InDoubtNameConflict[],
  madeNow: boolean,
  namesIn: OptionNames,
): Promise<readonly StepChange[]> {
  const ids = ({ step, reason }: InDoubtNameConflict): readonly string[] =>
    existingIds(reason).filter((id) => orderOf(driver, { id, step }) !== "before");
  const claims = met.flatMap((each) => ids(each).map((id) => ({ id, step: each.step })));
  const readings = await readServiceClock(driver, claims);
  const changes: StepChange[] = [];
  const open: OpenCreate[] = [];
  for (const each of met) {
    const candidates = ids(each);
    const { step, reason } = each;
    const create = { ...each, ids: candidates };
    const isNotMade =
      candidates.length === 0 ||
      (madeNow && (isOlderByClock(driver, step, candidates) || (await hasNoGroup(driver, create, namesIn))));
    if (isNotMade) changes.push({ step: step.id, to: "failed", reason });
    else if (madeNow) changes.push({ step: step.id, to: "unknown", reason: ownerUnclear(candidates) });
    else open.push(create);
  }
  const maybeOwn = open.filter(({ step, ids: some }) => some.some((id) => !isLikelyOlder(driver, step, id)));
  const { found, unread } = await withSameContexts(driver, maybeOwn, await lookUp(driver, maybeOwn));
  const elsewhere = open.filter(({ ids: candidates }) => !candidates.some((id) => found.has(id) || unread.has(id)));
  const openClaims = elsewhere.flatMap(({ step, ids: some }) => some.map((id) => ({ id, step })));
  observeOwn(driver, open, found);
  await readServiceClock(driver, openClaims, clockOrderOf);
  for (const each of open) {
    const { step, reason, ids: candidates } = each;
    const isFree = elsewhere.includes(each) && (await hasNoGroup(driver, each, namesIn));
    const made = candidates.map((id) => found.get(id)).find((record) => record !== undefined && isAsSent(step, record));
    const mayBeResolved = (readings === "unread" && made !== undefined) || candidates.some((id) => unread.has(id));
    // An option that differs from what was sent may be another writer's, even if the list that was read before the run
    // does not contain it. So only the service's clock can prove here that it is older.
    const isOlder = made === undefined && !mayBeResolved && isOlderByClock(driver, step, candidates);
    if (made !== undefined && isNewer(driver, { id: made._id, step })) {
      changes.push({ step: step.id, to: "done", _id: made._id, ...(made.children && { childIds: made.children }) });
    } else if (isOlder || isFree) changes.push({ step: step.id, to: "failed", reason });
    else changes.push({ step: step.id, to: "unknown", reason: mayBeResolved ? UNREAD : ownerUnclear(candidates) });
  }
  return changes;
}

/**
 * Improves what is known about the service's clock: the IDs of objects that are certainly newer than the first attempt
 * to create them limit how far this clock can be ahead.
 */
function observeOwn(driver: ChangeDriver, open: readonly OpenCreate[], found: LookedUp["found"]): void {
  const { serverClock, state, clock } = driver;
  for (const { step, ids } of open) {
    const since = state.firstSent(step.id)?.at;
    if (clockFor(driver, step) !== serverClock) continue;
    for (const id of ids) {
      const record = found.get(id);
      if (since === undefined || record === undefined || !isAsSent(step, record)) continue;
      if (orderOf(driver, { id, step }) === "after") serverClock.observeMade([ulidTime(id)], since, clock.now());
    }
  }
}

/**
 * Returns whether a step that creates a group has created nothing: the name of the group is free, and the names of its
 * sub-options are taken in older groups. If a name is taken in a newer group, that group may be the step's own, renamed
 * by others.
 */
async function hasNoGroup(driver: ChangeDriver, { step, ids }: OpenCreate, namesIn: OptionNames): Promise<boolean> {
  const targeting = driver.state.boundId(step, "targeting");
  if (step.operation !== "addOptions" || step.objects.length === 1 || targeting === undefined) return false;
  const names = await orUndefined(namesIn(targeting));
  if (names === undefined || names.has(step.item.name)) return false;
  const inOlder = await mapConcurrently(ids, async (id) => {
    const group = (await orUndefined(driver.api.getOption(id, { limit: 1 })))?.option.parent;
    return typeof group === "string" && orderOf(driver, { id: group, step }) === "before";
  });
  return inOlder.every((isInOlder) => isInOlder);
}

/** Returns whether an option is older than the run, unless the service's clock was set back. */
function isLikelyOlder({ state }: ChangeDriver, step: Step, id: string): boolean {
  return isUlid(id) && state.orderByList(step, id) === "likelyBefore";
}

function isOlderByClock(driver: ChangeDriver, step: Step, ids: readonly string[]): boolean {
  return ids.every((id) => clockOrderOf(driver, { id, step }) === "before");
}

/** The reason if the object with the name of a create, or the service's clock, could not be read. A resume retries. */
const UNREAD = ownReason("NO_ANSWER", { reason: "the object that now has this name, or its age, could not be read" });

/** Returns the reason for an outcome that no read can find out. The step is not sent again. */
function ownerUnclear(ids: readonly string[]): Reason {
  return ownReason("OWNER_UNCLEAR", { existingIds: ids });
}

type FoundObject = Pick<OptionRecord, "_id" | "name" | "type" | "contextCount" | "childCount" | "children"> &
  Pick<TargetingRecord, "optionCount">;

/** Returns whether an object has the name, type and counts that a step sent, as far as the service returns them. */
export function isAsSent(step: Step, made: FoundObject): boolean {
  if (step.operation === "createTargetings") {
    const options = (step.item.options ?? []).reduce((sum, option) => sum + 1 + (option.children?.length ?? 0), 0);
    return made.name === step.item.name && (made.optionCount ?? options) === options;
  }
  if (step.operation !== "addOptions") return false;
  const { name, type = "atomic", contexts = [], children } = step.item;
  const sentType = children === undefined ? type : "collection";
  return (
    made.name === name &&
    (made.type ?? sentType) === sentType &&
    (made.contextCount ?? contexts.length) === contexts.length &&
    (made.childCount ?? children?.length ?? 0) === (children?.length ?? 0)
  );
}

async function withSameContexts(
  driver: ChangeDriver,
  wanted: readonly OpenCreate[],
  { found, unread }: LookedUp,
): Promise<LookedUp> {
  const alike = wanted.flatMap(({ step, ids }) => {
    if (step.operation !== "addOptions") return [];
    const { contexts = [] } = step.item;
    return ids.flatMap((_id) => {
      const record = found.get(_id);
      return contexts.length > 0 && record !== undefined && isAsSent(step, record) ? { _id, contexts } : [];
    });
  });
  // Without other writers, `compareContexts` need not read all options. An option that differs from what was sent is a
  // sign of another writer.
  const isAlone = wanted.every(({ step, ids }) =>
    ids.every((_id) => {
      const record = found.get(_id);
      return record === undefined || isAsSent(step, record);
    }),
  );
  const { signal } = driver;
  const { different, unread: closed } = await compareContexts(driver.api, alike, { isAlone, signal });
  const same = [...found].filter(([_id]) => !different.has(_id) && !closed.has(_id));
  return { found: new Map(same), unread: new Set([...unread, ...closed]) };
}

interface LookedUp {
  readonly found: ReadonlyMap<string, FoundObject>;
  readonly unread: ReadonlySet<string>;
}

async function lookUp(driver: ChangeDriver, wanted: readonly OpenCreate[]): Promise<LookedUp> {
  const found = new Map<string, FoundObject>();
  const unread = new Set<string>();
  const places = new Map<
    string,
    { readonly targeting: string; readonly parent: string | undefined; ids: Set<string> }
  >();
  for (const { step, ids } of wanted) {
    const targeting = driver.state.boundId(step, "targeting");
    if (targeting === undefined) {
      for (const id of ids) {
        const record = await orUndefined(driver.api.getTargeting(id));
        if (record === undefined) unread.add(id);
        else found.set(id, record);
      }
      continue;
    }
    const parent = driver.state.boundId(step, "parent");
    const place = places.get(`${targeting} ${parent}`) ?? { targeting, parent, ids: new Set() };
    for (const id of ids) place.ids.add(id);
    places.set(`${targeting} ${parent}`, place);
  }
  for (const { targeting, parent, ids } of places.values()) {
    const records = await orUndefined(orNone(findNewest(driver.api, { targetingId: targeting, parent }, ids)));
    if (records === undefined) for (const id of ids) unread.add(id);
    for (const record of records ?? []) found.set(record._id, record);
  }
  return { found, unread };
}

/** Searches the first page of a list for these IDs, then the others: from the end if the number of pages is known. */
async function findNewest(
  api: ManagementApi,
  list: OptionList,
  ids: ReadonlySet<string>,
): Promise<readonly OptionRecord[]> {
  const { targetingId, parent } = list;
  const found = new Map<string, OptionRecord>();
  const take = (options: readonly OptionRecord[]): boolean => {
    for (const option of options) if (ids.has(option._id)) found.set(option._id, option);
    return found.size === ids.size;
  };
  const limit = LIMITS.listLimit.value;
  const { items, total } = await api.listOptions(targetingId, { limit, parent });
  if (take(items) || items.length === 0) return [...found.values()];
  if (total === undefined && items.length >= limit) {
    for await (const { options } of listPages(api, list, { mayShift: true })) if (take(options)) break;
  }
  for (let page = Math.ceil((total ?? 0) / limit) - 1; page > 0; page -= 1) {
    if (take((await api.listOptions(targetingId, { limit, parent, offset: page * limit })).items)) break;
  }
  return [...found.values()];
}

/**
 * Returns what `reading` returns. Empty if the service answers that there is nothing to read, for example because the
 * group does not exist. Any other error, such as a key without rights, is thrown.
 */
export async function orNone<T>(reading: Promise<readonly T[]>): Promise<readonly T[]> {
  return (await undefinedIf((thrown) => thrown instanceof RejectedError && thrown.kind === "business", reading)) ?? [];
}

const conflicts = z.array(z.looseObject({ collection: z.looseObject({ _id: z.string().optional() }).optional() }));

/** Returns whether other changes of the run may free the name, Context ID, position or room that a change lacks. */
export function mayWorkLater(state: RunState, step: Step, reason: Reason): boolean {
  if (step.operation !== "updateOptions" && step.operation !== "renameTargetings") return false;
  const isChanged = (id: string | undefined): boolean =>
    id !== undefined && id !== targetOf(step) && state.stepsChanging(id).length > 0;
  switch (reason.code) {
    case "TARGETING_NAME_DUPLICATE":
    case "TARGETING_CATEGORY_NAME_DUPLICATE":
      return existingIds(reason).some(isChanged);
    case "TARGETING_COLLECTION_CONTEXT_DUPLICATED": {
      const parsed = conflicts.safeParse(reason.detail?.conflicts);
      return parsed.success && parsed.data.some(({ collection }) => isChanged(collection?._id));
    }
    case "TARGETING_CATEGORY_NOT_SUPPORTED":
      return isMove(step) && state.hasOther(step.id, isMove);
    case "TARGETING_CONTEXT_LIMIT_EXCEEDED":
      return state.hasOther(step.id, takesContextIdsAway);
    default:
      return false;
  }
}

function isMove(step: Step): boolean {
  return step.operation === "updateOptions" && step.weight.groupItems > 0;
}

function takesContextIdsAway(step: Step): boolean {
  if (step.operation !== "updateOptions") return false;
  const { remove, set } = step.item.contexts ?? {};
  return (remove ?? set) !== undefined;
}
