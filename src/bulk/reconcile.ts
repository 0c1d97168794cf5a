import * as z from "zod";
import { isApiError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import { LIMITS } from "../spec/limits.ts";
import type { OptionRecord } from "../spec/records.ts";
import { isUlid, ulidTime } from "../spec/ulid.ts";
import { compareContexts } from "./compare-contexts.ts";
import type { Driver } from "./driver.ts";
import { ownReason } from "./reasons.ts";
import type { Order } from "./server-clock.ts";
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

interface Candidate extends MetItsName {
  /** What may be ours: everything that has the name and is not older than the first attempt. */
  readonly ids: readonly string[];
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
  const since = (step: Step): number => driver.state.suspectSince(step.id) ?? 0;
  const order = (id: string, step: Step): Order => {
    const newest = newestBefore(driver, step);
    const byClock = driver.serverClock.order(ulidTime(id), since(step));
    if (newest === undefined || byClock === "before") return byClock;
    return newest === null || id > newest ? "after" : "before";
  };
  const ids = ({ step, reason }: MetItsName): readonly string[] =>
    existingIds(reason).filter((id) => isUlid(id) && order(id, step) !== "before");
  if (met.some((each) => ids(each).some((id) => order(id, each.step) === "unclear"))) await sharpen(driver, met);
  const changes: StepChange[] = [];
  const open: Candidate[] = [];
  for (const each of met) {
    const candidates = ids(each);
    const [first] = candidates;
    if (first === undefined) changes.push({ step: each.step.id, to: "failed", reason: each.reason });
    else if (madeNow) changes.push({ step: each.step.id, to: "unknown", reason: unclear(candidates) });
    else open.push({ ...each, ids: candidates });
  }
  const { found, unread } = await withSameContexts(driver, open, await lookUp(driver, open));
  for (const { step, ids: candidates } of open) {
    const made = candidates.map((id) => found.get(id)).find((record) => record !== undefined && isAsSent(step, record));
    const sure =
      made !== undefined &&
      (order(made._id, step) === "after" || driver.serverClock.isLikelyAfter(ulidTime(made._id), since(step)));
    changes.push(
      sure
        ? { step: step.id, to: "done", _id: made._id, ...childIdsOf(made) }
        : {
            step: step.id,
            to: "unknown",
            reason: candidates.some((id) => unread.has(id)) ? UNREAD : unclear(candidates),
          },
    );
  }
  return changes;
}

/**
 * The newest top-level option before the run, for steps that make top-level options: what is newer was not there before,
 * whatever the clocks say. Undefined where that is not known.
 */
function newestBefore(driver: Driver, step: Step): string | null | undefined {
  if (step.bindings.some(({ field }) => field === "parent")) return undefined;
  const place = step.bindings.find(({ field }) => field === "targeting");
  const targeting = place === undefined ? undefined : driver.state.boundId(place);
  return targeting === undefined ? undefined : driver.state.newest.get(targeting);
}

/**
 * Notes the newest option of each targeting that options are to be added to, before any is: at the beginning of the run,
 * or, where the run made the targeting, once it is there. Where it cannot be read (a key without the read scope), only
 * the clocks can tell old from new later.
 */
export async function noteNewest(driver: Driver): Promise<void> {
  const targetings = new Set<string>();
  const looked = new Set<string>();
  const { state } = driver;
  for (const bindings of state.steps.boundBy("addOptions")) {
    const place = bindings.find(({ field }) => field === "targeting");
    const id = place === undefined ? undefined : state.boundId(place);
    if (id === undefined || looked.has(id)) continue;
    looked.add(id);
    const isFirst = place?.object === undefined ? state.requests.sent === 0 : state.isUntouched(place.object);
    if (isFirst && !state.newest.has(id)) targetings.add(id);
  }
  for (const targeting of targetings) {
    const first = await orUndefined(driver.api.listOptions(targeting, { limit: 1 }));
    const { total } = first ?? {};
    if (total === undefined) continue;
    const last =
      total > 1 ? await orUndefined(driver.api.listOptions(targeting, { limit: 1, offset: total - 1 })) : first;
    const [newest] = last?.items ?? [];
    if (newest !== undefined || total === 0) driver.record({ t: "newest", targeting, _id: newest?._id ?? null });
  }
}

/** How often the service's clock is read, at the most, to tell old from new. */
const CLOCK_READINGS = 10;

/** Reads the service's clock until it is known well enough. A reading that fails leaves it as it is. */
async function sharpen(driver: Driver, met: readonly MetItsName[]): Promise<void> {
  const [first] = met;
  const place = first?.step.bindings.find(({ field }) => field === "targeting");
  const [existing] = first === undefined ? [] : existingIds(first.reason);
  const targeting = place === undefined ? existing : driver.state.boundId(place);
  if (targeting === undefined) return;
  for (let reading = 0; reading < CLOCK_READINGS; reading += 1) {
    const wait = driver.serverClock.nextReadingIn(driver.clock.now());
    if (wait === undefined || driver.signal.aborted) return;
    if (wait > 0) await orUndefined(driver.clock.sleep(wait));
    const sentAt = driver.clock.now();
    const page = await orUndefined(driver.api.listOptions(targeting, { limit: 1 }));
    if (page?.serverTime === undefined) return;
    const { serverTime } = page;
    driver.serverClock.observe({ from: serverTime, to: serverTime + 999, sentAt, receivedAt: driver.clock.now() });
  }
}

/** It could not be looked at: a resumed run does. */
const UNREAD = ownReason("NO_ANSWER", { reason: "what has the name now could not be read" });

/** No further look tells more: a resumed run leaves it. */
function unclear(ids: readonly string[]): Reason {
  return ownReason("OWNER_UNCLEAR", { existingIds: ids });
}

function childIdsOf(made: Made): { readonly childIds?: readonly string[] } {
  return made.children === undefined ? {} : { childIds: made.children };
}

/** What is compared between what was sent and what is there. */
interface Made {
  readonly _id: string;
  readonly name: string;
  readonly type?: string | undefined;
  readonly contextCount?: number | undefined;
  readonly childCount?: number | undefined;
  readonly optionCount?: number | undefined;
  readonly children?: readonly string[] | undefined;
}

/** Whether a thing is what a step would have made. What the service does not tell is taken as equal. */
function isAsSent(step: Step, made: Made): boolean {
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

/** Leaves out of what was found the options that hold other Context IDs than were sent. */
async function withSameContexts(
  driver: Driver,
  wanted: readonly Candidate[],
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
  // What is there and is not what was sent is somebody else's.
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
  readonly found: ReadonlyMap<string, Made>;
  /** IDs of which the reading failed. */
  readonly unread: ReadonlySet<string>;
}

async function lookUp(driver: Driver, wanted: readonly Candidate[]): Promise<LookedUp> {
  const found = new Map<string, Made>();
  const unread = new Set<string>();
  const places = new Map<
    string,
    { readonly targeting: string; readonly parent: string | undefined; ids: Set<string> }
  >();
  for (const { step, ids } of wanted) {
    const at = (field: "targeting" | "parent"): string | undefined => {
      const binding = step.bindings.find((candidate) => candidate.field === field);
      return binding === undefined ? undefined : driver.state.boundId(binding);
    };
    const targeting = at("targeting");
    if (targeting === undefined) {
      for (const id of ids) {
        const record = await orUndefined(driver.api.getTargeting(id));
        if (record === undefined) unread.add(id);
        else found.set(id, record);
      }
      continue;
    }
    const parent = at("parent");
    const place = places.get(`${targeting} ${parent}`) ?? { targeting, parent, ids: new Set() };
    for (const id of ids) place.ids.add(id);
    places.set(`${targeting} ${parent}`, place);
  }
  for (const { targeting, parent, ids } of places.values()) {
    const records = await orUndefined(orNone(findNewest(driver.api, targeting, parent, ids)));
    if (records === undefined) for (const id of ids) unread.add(id);
    for (const record of records ?? []) found.set(record._id, record);
  }
  return { found, unread };
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

/** Where the service says that the place is gone, nothing is in it, now and later. */
async function orNone<T>(reading: Promise<readonly T[]>): Promise<readonly T[]> {
  try {
    return await reading;
  } catch (thrown) {
    if (isApiError(thrown) && thrown.effect === "rejected") return [];
    throw thrown;
  }
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
