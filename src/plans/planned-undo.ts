import type { ManagementApi, Reading } from "../api/management.ts";
import { FileError } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { amount } from "../platform/text.ts";
import { readOptionContents } from "../reads/option-contents.ts";
import { placedOptions } from "../reads/saved-options.ts";
import { sideBySide } from "../reads/side-by-side.ts";
import type { TargetingMemory } from "../runs/backend.ts";
import type { Done } from "../runs/kind.ts";
import { comparedFields } from "../spec/records.ts";
import type { ServiceOption, ServiceTargeting } from "./base.ts";
import type { lookAgain } from "./match.ts";
import { NOTHING_PLANNED, type PlanItem, type StatePlan } from "./plan.ts";
import { groupsIn, type PlanDocument, planBytes, planDocument } from "./plan-document.ts";
import { unlessMissing } from "./read-targeting.ts";
import { alreadyUndone, contentsNeeded, targetingsIn, undoPlan } from "./undo.ts";
import type { Present, PresentOption, UndoRow } from "./undo-plan.ts";

type PresentById = ReadonlyMap<string, Present>;

export interface PlannedUndo {
  readonly rows: readonly UndoRow[];
  /** The number of objects that need no row, because they already have their previous state. */
  readonly already: number;
  /** The targetings that no longer exist, although the run did not delete them. */
  readonly gone: readonly string[];
  readonly isEmpty: boolean;
  readonly document: PlanDocument;
  readonly text: ByteSource;
  readonly changes: PlannedChanges;
}

/** Reads the state of a run's targetings and plans the undo of the run. Throws an ApiError or a ListError. */
export async function planUndo(
  done: Done,
  { undoes, ...service }: { readonly undoes: string } & Pick<PlanDocument, "environment" | "apiUrl">,
  { memory, ...reading }: Reading & { readonly memory: Pick<TargetingMemory, "resolve"> },
): Promise<PlannedUndo> {
  const present = await readPresent(reading.api, done, reading.signal);
  const { targetings, rows } = undoPlan(done, present, await takenNames(done, present, memory, reading));
  const plans = targetings.map(({ plan }) => plan);
  const [first = nothingOf(targetingsIn(done)[0], present), ...further] = plans;
  const standsFor = targetings.flatMap((one, targeting) => one.standsFor.map((each) => ({ targeting, ...each })));
  const already = alreadyUndone(done, rows);
  const deleted = new Set(done.targetings.flatMap(({ did, _id }) => (did === "deleted" ? [_id] : [])));
  const document = planDocument(
    first,
    { ...service, fileDigest: "", prune: false, byName: false },
    groupsIn([...present.values()].flatMap(({ options }) => [...options.values()])),
    { undoes, rows, ...(already > 0 && { already }), further, standsFor },
  );
  return {
    rows,
    already,
    gone: targetingsIn(done).filter((_id) => !present.has(_id) && !deleted.has(_id)),
    document,
    text: planBytes(document),
    isEmpty: plans.length === 0 && !isUnresolved(document),
    changes: changesOf(first, further, present),
  };
}

/** Returns whether the undone run has unanswered requests. Their effect must be found out before the undo. */
export function isUnresolved({ wayBack: undo }: PlanDocument): boolean {
  return undo?.rows.some((row) => row.undo === "unresolved") ?? false;
}

/** What a run did. `known`: according to the answers that it got. `done`: also according to later reads. */
export interface ResolvedRun {
  readonly known: Done;
  readonly done: Done;
}

/**
 * Plans an undo again after the effects of unanswered requests were looked up. Throws a FileError if others have
 * changed the objects since the undo was first planned.
 */
export async function resolvedUndo(
  { wayBack: shown, plan }: PlanDocument,
  { known, done }: ResolvedRun,
  { api, signal }: Reading,
): Promise<PlannedChanges> {
  const present = await readPresent(api, done, signal);
  const before = new Set(shown?.rows.map(keyOf));
  const taken = new Set(shown?.rows.flatMap((row) => (isNameTaken(row) ? (row._id ?? []) : [])));
  const changed = undoPlan(known, present, taken).rows.filter((row) => !before.has(keyOf(row)));
  if (changed.length > 0) {
    throw new FileError(
      `${amount(changed.length, "object")} of this undo changed since it was planned; nothing was sent`,
      `Call undo_run {"runId":"${shown?.undoes}"} to plan it again and see what it would do now.`,
    );
  }
  const { targetings, rows } = undoPlan(done, present, taken);
  const plans = targetings.map((one) => one.plan);
  // If the run changed no option, an empty plan for its targeting is needed to report its unclear objects.
  const [first = nothingOf(targetingsIn(known)[0] ?? plan.targeting._id, present), ...further] = plans;
  const unknown = new Set(known.unknown.map((object) => JSON.stringify(object)));
  const unclear = done.unknown.flatMap(({ _id, name, ...rest }) =>
    _id === undefined || name === undefined || unknown.has(JSON.stringify({ _id, name, ...rest }))
      ? []
      : [{ _id, name }],
  );
  const listed = new Set(unclear.map(({ _id }) => _id));
  const left = rows.filter(
    (row) => isLeft(row) && !(before.has(keyOf(row)) || (row._id !== undefined && listed.has(row._id))),
  );
  return {
    ...changesOf(first, further, present),
    ...(unclear.length > 0 && { unclear }),
    ...(left.length > 0 && { left }),
  };
}

function isLeft({ undo }: UndoRow): boolean {
  return undo === "notOurs" || undo === "impossible";
}

function isNameTaken({ _id, targeting, reasons = [] }: UndoRow): boolean {
  return _id === targeting && reasons.includes("nameTaken");
}

/**
 * Returns the targetings whose previous name another targeting has and keeps. The service cannot list targetings, so
 * only those that this server remembers are compared.
 */
async function takenNames(
  { targetings }: Done,
  present: PresentById,
  memory: Pick<TargetingMemory, "resolve">,
  { api, signal }: Reading,
): Promise<ReadonlySet<string>> {
  const wanted = new Map<string, string>();
  for (const one of targetings) {
    const name = one.did === "changed" ? one.name.from : one.did === "deleted" ? one.name : undefined;
    if (name !== undefined && present.get(one._id)?.targeting.name !== name) wanted.set(one._id, name);
  }
  const holders = new Map<string, string>();
  for (const [_id, name] of wanted) {
    const found = await memory.resolve(name);
    for (const one of found.kind === "one" ? [found.thing] : found.kind === "ambiguous" ? found.candidates : []) {
      if (one._id === _id || one.name !== name) continue;
      const there = present.get(one._id)?.targeting ?? (await unlessMissing(api.getTargeting(one._id, { signal })));
      if (there?.name === name) holders.set(_id, one._id);
    }
  }
  // A name is taken if another targeting has it and keeps it. A targeting that this undo renames gives up its name, but
  // only if its own previous name is not taken. So this is repeated until nothing is added.
  const taken = new Set<string>();
  for (let before = -1; before < taken.size; ) {
    before = taken.size;
    for (const [_id, holder] of holders) if (!wanted.has(holder) || taken.has(holder)) taken.add(_id);
  }
  return taken;
}

/** Returns a text that is equal for equal rows of two plans. Positions and groups are not compared. */
function keyOf({ at: _, group: __, ...row }: UndoRow): string {
  return JSON.stringify(Object.entries(row).sort(([one], [other]) => (one < other ? -1 : 1)));
}

function changesOf(first: StatePlan, others: readonly StatePlan[], present: PresentById): PlannedChanges {
  const changesIn = (plan: StatePlan): PlannedChanges => ({
    ...asPlanned(plan, undefined),
    there: optionsIn(present.get(plan.targeting._id ?? "")),
  });
  return { ...changesIn(first), further: others.map(changesIn) };
}

function nothingOf(_id: string | undefined, present: PresentById): StatePlan {
  const name = present.get(_id ?? "")?.targeting.name ?? "";
  return { ...NOTHING_PLANNED, targeting: { _id, name } };
}

/** Returns the options by ID. Context IDs that the undo does not need were not read; `contexts` is then empty. */
function optionsIn(present: Present | undefined): PlannedChanges["there"] {
  const options = [...(present?.options.values() ?? [])];
  return new Map(options.map((option) => [option._id, { ...option, contexts: option.contexts ?? [] }]));
}

/** Reads the targetings of a run that still exist. Throws an ApiError, or a ListError if their lists keep changing. */
async function readPresent(api: ManagementApi, done: Done, signal: AbortSignal): Promise<PresentById> {
  const present = new Map<string, Present>();
  for (const _id of targetingsIn(done)) {
    const read = await unlessMissing(readTargetingNow({ api, signal }, _id, done));
    if (read !== undefined) present.set(_id, read);
  }
  return present;
}

async function readTargetingNow({ api, signal }: Reading, targetingId: string, done: Done): Promise<Present> {
  const { _id, name } = await api.getTargeting(targetingId, { signal });
  const options = new Map<string, PresentOption>();
  for await (const { option } of placedOptions(api, targetingId, signal)) {
    options.set(option._id, { ...comparedFields(option), contextCount: option.contextCount ?? 0 });
  }
  const present: Present = { targeting: { _id, name }, options };
  const needed = contentsNeeded(done, present);
  const read = async (id: string, within: AbortSignal) =>
    (await unlessMissing(readOptionContents(api, id, within))) ?? "missing";
  for await (const { from, value } of sideBySide({ source: () => needed, map: read, signal, pace: api.pace })) {
    const there = options.get(from);
    if (value === "missing") options.delete(from);
    else if (there !== undefined && value !== undefined) {
      const { contexts } = value;
      options.set(from, { ...there, contexts, contextCount: contexts.length });
    }
  }
  return present;
}

export interface PlannedChanges {
  readonly targeting: StatePlan["targeting"];
  readonly items: readonly PlanItem[];
  readonly alreadyDone: ReadonlySet<number>;
  readonly stale: ReturnType<typeof lookAgain>["stale"];
  readonly there: ReadonlyMap<string, Omit<ServiceOption, "digest">>;
  /** Options that the undone run may have created. The undo does not delete them, but reports them. */
  readonly unclear?: readonly { readonly _id: string; readonly name: string }[];
  /** Objects with unanswered requests that the undo does not restore, with the reasons. */
  readonly left?: readonly UndoRow[];
  readonly further: readonly PlannedChanges[];
}

export function asPlanned({ targeting, items }: StatePlan, there: ServiceTargeting | undefined): PlannedChanges {
  const options = new Map(there?.options.map((option) => [option._id, option]));
  return { targeting, items, alreadyDone: new Set(), stale: [], there: options, further: [] };
}
