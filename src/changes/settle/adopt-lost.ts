import { addTo, groupedBy } from "../../platform/by-key.ts";
import { readOptionContents } from "../../reads/option-contents.ts";
import { type OptionNames, optionNamesOnce, readOptionNames } from "../../reads/option-lists.ts";
import { type OptionList, readList } from "../../reads/pages.ts";
import { ownReason } from "../../runs/outcome.ts";
import type { OptionRecord } from "../../spec/records.ts";
import type { StepChange, StepOf } from "../rows/entries.ts";
import { type ChangeDriver, isNewer, type LostCreates, orderOf, orUndefined, readServiceClock } from "./evidence.ts";
import { existingIds, type InDoubtNameConflict, isAsSent, orNone, reconcileCreates } from "./reconcile.ts";

/**
 * Finds creates that an unanswered request has applied, or probably has, although some of their options are missing
 * now. Other writers may have renamed or deleted these options, so they must not be created a second time. (A request
 * that adds options applies all valid items or none: management-api 4.1.) Returns how these creates end. All other
 * creates are sent again. If the answer was lost in this process ("now"), that was a moment ago. A missing option then
 * counts as renamed only if there is a new option with its content: otherwise the service has probably refused it, and
 * sending it again shows why. The caller must have the write lock.
 */
export async function adoptLostCreates(driver: ChangeDriver, lost: LostCreates): Promise<readonly StepChange[]> {
  recallClock(driver);
  const requests = new Map<number | undefined, AddStep[]>();
  for (const id of driver.state.inDoubt()) {
    const step = driver.state.steps.at(id);
    if (step?.operation === "addOptions") addTo(requests, driver.state.firstSent(id)?.at, step);
  }
  const namesIn = optionNamesOnce(driver.api, driver.signal);
  const changes: StepChange[] = [];
  for (const steps of requests.values()) {
    const there: InDoubtNameConflict[] = [];
    const missing: AddStep[] = [];
    for (const step of steps) {
      const targeting = driver.state.boundId(step, "targeting");
      const names = targeting === undefined ? undefined : await orUndefined(namesIn(targeting));
      const id = names?.get(step.item.name);
      if (id !== undefined) there.push({ step, reason: ownReason("EXISTS", { existingIds: [id] }) });
      else if (names !== undefined) missing.push(step);
    }
    if (missing.length === 0) continue;
    // In a request with groups, a missing item may be missing because the service refused it: two groups must not hold
    // the same Context ID.
    const hasGroups = steps.some(({ objects, item }) => objects.length > 1 || item.type === "collection");
    const done = hasGroups ? [] : await createdWith(driver, { there, missing }, namesIn);
    if (done.length > 0 && lost === "before") {
      changes.push(...done, ...areGone(missing));
      continue;
    }
    const renamed = await renamedSince(driver, missing, new Set(there.flatMap(({ reason }) => existingIds(reason))));
    if (renamed.length > 0) changes.push(...done, ...areGone(missing, renamed));
  }
  return changes;
}

/** Adds what earlier processes on this machine knew about the service's clock when they sent the steps in doubt. */
function recallClock({ state, clock, serverClock }: ChangeDriver): void {
  for (const id of state.inDoubt()) {
    const { machine, ahead, at = 0 } = state.firstSent(id) ?? {};
    if (ahead !== undefined && machine === clock.machine) serverClock.recall(ahead, at, clock.now());
  }
}

/**
 * Decides about a request that got no answer, if some of its options exist and others do not. Returns an entry `done`
 * for each option that counts as created by this request. Empty if there is none.
 */
async function createdWith(
  driver: ChangeDriver,
  { there, missing }: { readonly there: readonly InDoubtNameConflict[]; readonly missing: readonly AddStep[] },
  namesIn: OptionNames,
): Promise<readonly StepChange[]> {
  if (there.length === 0) return [];
  // The request may have been applied while the pages of the list were read. If so, a second reading finds all of its
  // options.
  const later = optionNamesOnce(driver.api, driver.signal);
  const isStillMissing = async (step: AddStep): Promise<boolean> => {
    const names = await orUndefined(later(driver.state.boundId(step, "targeting") ?? ""));
    return names !== undefined && !names.has(step.item.name);
  };
  if ((await Promise.all(missing.map(isStillMissing))).includes(false)) return [];
  return (await reconcileCreates(driver, there, false, namesIn)).filter(({ to }) => to === "done");
}

type AddStep = StepOf<"addOptions">;

/** The maximum number of new options in one list whose content is compared with what a request sent. */
const MAX_RENAMED = 50;

/**
 * Returns the IDs of options that an unanswered request has probably created and that others have renamed since. They
 * are probably newer than the request and have the content of one of the `steps`. New options without content prove
 * little. They are returned only if no step has content, and if there are at least as many of them as steps. `named`:
 * the IDs of options with the name of another item of the request.
 */
async function renamedSince(
  driver: ChangeDriver,
  steps: readonly AddStep[],
  named: ReadonlySet<string>,
): Promise<readonly string[]> {
  const { api, signal, state } = driver;
  const own = new Set([...named, ...Array.from({ length: state.objects.length }, (_, object) => state.idOf(object))]);
  const placeOf = (step: AddStep): OptionList => {
    return { targetingId: state.boundId(step, "targeting") ?? "", parent: state.boundId(step, "parent"), signal };
  };
  const places = groupedBy(steps, (step) => placeOf(step).parent ?? placeOf(step).targetingId);
  const names = new Set(steps.map(({ item }) => item.name));
  const alike: string[] = [];
  const empty: string[] = [];
  for (const placed of places.values()) {
    const [step] = placed;
    if (step === undefined) continue;
    const records = (await orUndefined(orNone(readList(api, placeOf(step), (option) => option)))) ?? [];
    // An option now has one of the names: the request may have been applied since the names were read. It is then sent
    // again, and the answer shows what it created.
    if (records.some(({ name }) => names.has(name))) return [];
    const claims = records
      .filter(({ _id }) => !own.has(_id) && orderOf(driver, { id: _id, step }) !== "before")
      .sort((one, other) => (one._id < other._id ? 1 : -1))
      .slice(0, MAX_RENAMED)
      .map((record) => ({ id: record._id, step, record }));
    await readServiceClock(driver, claims);
    const compared = claims.map(async (claim) => {
      const { record } = claim;
      const possible = placed.filter((one) => isAsSent(one, { ...record, name: one.item.name }));
      if (possible.length === 0 || !isNewer(driver, claim)) return;
      if (possible.some(isWithoutContent)) empty.push(record._id);
      else if (await hasContentOfOne(driver, record, possible)) alike.push(record._id);
    });
    await Promise.all(compared);
  }
  if (alike.length > 0) return alike;
  return steps.every(isWithoutContent) && empty.length >= steps.length ? empty : [];
}

function isWithoutContent({ item }: AddStep): boolean {
  return (item.contexts ?? []).length + (item.children ?? []).length === 0;
}

/** Returns whether an option has the content (Context IDs, or sub-options of a group) of one of the sent options. */
async function hasContentOfOne(
  { api, state, signal }: ChangeDriver,
  { _id, contextCount }: OptionRecord,
  sent: readonly AddStep[],
): Promise<boolean> {
  const targeting = state.boundId(sent[0], "targeting") ?? "";
  const isGroup = contextCount === undefined || contextCount === 0;
  const reading = isGroup
    ? readOptionNames(api, targeting, signal, _id).then((names) => [...names.keys()])
    : readOptionContents(api, _id, signal).then(({ contexts }) => contexts);
  const held = new Set((await orUndefined(reading)) ?? []);
  return sent.some(({ item }) => {
    const { contexts = [], children = [] } = item;
    const wanted = contexts.length > 0 ? contexts : children.map(({ name }) => name);
    return wanted.length > 0 && wanted.every((one) => held.has(one));
  });
}

/** Ends as `unknown` those creates whose options others have renamed or deleted since. So they are not sent again. */
function areGone(steps: readonly AddStep[], renamed: readonly string[] = []): readonly StepChange[] {
  const reason = ownReason("OWNER_UNCLEAR", { isGone: true, ...(renamed.length > 0 && { existingIds: renamed }) });
  return steps.map(({ id }) => ({ step: id, to: "unknown", reason }));
}
