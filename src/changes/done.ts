import * as z from "zod";
import { defined } from "../platform/by-key.ts";
import { parseJson } from "../platform/json.ts";
import type {
  ChangedOption,
  CreatedWithoutId,
  Done,
  OptionEffect,
  OptionState,
  TargetingEffect,
  UncertainObject,
} from "../runs/kind.ts";
import { wholeLines } from "../runs/store.ts";
import type { OptionChanges } from "../spec/records.ts";
import type { RunState } from "./change-state.ts";
import {
  type Binding,
  bindingOf,
  type OptionItem,
  type PreviousOption,
  type PreviousValue,
  previousValueLine,
  type Step,
  type StepOf,
} from "./rows/entries.ts";
import { StepMaker } from "./rows/steps.ts";

type Pieces = AsyncIterable<Uint8Array>;
type Former = ReadonlyMap<string, PreviousValue>;

/** Reads the previous values that a run has stored (its part `former`), by ID. `as` converts each of them. */
export async function readPreviousValues(
  pieces: Pieces,
  as: (value: PreviousValue) => PreviousValue = (value) => value,
): Promise<Former> {
  const former = new Map<string, PreviousValue>();
  for await (const line of wholeLines(pieces)) {
    const read = previousValueLine.safeParse(parseJson(line)).data;
    if (read !== undefined) former.set(read._id, as(read));
  }
  return former;
}

/**
 * What a read has shown about steps that were sent but not answered. The read was made when none of their requests
 * could still be in progress.
 */
export interface Resolved {
  /** By object: the ID of the object that an unanswered step created. */
  readonly made: ReadonlyMap<number, string>;
  /** By object: the ID of an option with the name of an unanswered create, which may have created it. */
  readonly unclear: ReadonlyMap<number, string>;
}

/**
 * Returns what a run did, in order. Changes that the run itself reversed are omitted. `former`: the stored previous
 * values. `resolved`: what was read about steps that got no answer. With it, these steps count as applied; without it,
 * they are listed as unresolved.
 */
export async function effectsOfRun(state: RunState, former: Pieces, resolved?: Resolved): Promise<Done> {
  const before = await readPreviousValues(former);
  const inDoubt = state.inDoubt();
  const idOf = (object: number): string | undefined => state.idOf(object) ?? resolved?.made.get(object);
  const tracks = new Tracks(before, state.facts.within, idOf, () => namesOf(state));
  for (const id of appliedSteps(state, resolved === undefined ? new Set() : inDoubt)) {
    const step = state.steps.at(id);
    if (step !== undefined) tracks.apply(step);
  }
  const stepOf = new Map<number, Step>();
  for (const id of inDoubt) {
    const step = state.steps.at(id);
    for (const object of step?.objects ?? []) if (step !== undefined) stepOf.set(object, step);
  }
  const about = (object: number) => doubtedObject(state, object, stepOf.get(object), before);
  // The service cannot list targetings. So no read can find a targeting that may have been created, or options in an
  // unknown targeting.
  const isFindable = (object: number): boolean =>
    stepOf.get(object)?.operation !== "createTargetings" && about(object).targeting !== undefined;
  const lost = [...stepOf.keys()].filter((object) => !isFindable(object));
  const objects = Array.from({ length: state.objects.length }, (_, object) => object);
  const unknownAlone = objects.filter((object) => state.standing(object) === "unknown" && !stepOf.has(object));
  const unclear = [...(resolved?.unclear ?? [])].map(([object, _id]) => ({ ...about(object), _id }));
  return {
    ...tracks.done(),
    unknown: [...[...unknownAlone, ...lost].map(about), ...unclear],
    unresolved: resolved === undefined ? [...stepOf.keys()].filter(isFindable).map(about) : [],
  };
}

/**
 * Returns what a damaged run may have removed, judged by the parts that it stored before it sent anything. Undefined if
 * a line of the previous values (`former`) is not valid.
 */
export async function possibleRemovals(
  former: Pieces,
  removed: Pieces,
  isGone: (targetingId: string) => Promise<boolean>,
): Promise<Done | undefined> {
  const before = new Map<string, PreviousValue>();
  for await (const line of wholeLines(former)) {
    const read = previousValueLine.safeParse(parseJson(line)).data;
    if (read === undefined) return undefined;
    before.set(read._id, read);
  }
  const rows: z.infer<typeof removedRow>[] = [];
  for await (const line of wholeLines(removed)) rows.push(removedRow.parse(parseJson(line)));
  const names = new Set(rows.flatMap(({ _id, name }) => (_id === undefined && name !== undefined ? [name] : [])));
  const tracks = new Tracks(before);
  const make = StepMaker.after({ length: 0 });
  const none = { objects: [] };
  for (const { kind, _id, name = "" } of before.values()) {
    if (kind === "targeting") {
      if (await isGone(_id)) tracks.apply(make.deleteTargeting(_id, none));
    } else if (names.has(name)) tracks.apply(make.deleteOption({ id: _id }, false, none));
  }
  for (const { _id: id, add: remove } of rows) {
    if (id !== undefined && remove !== undefined)
      tracks.apply(make.updateOption({ id }, { contexts: { remove } }, none));
  }
  return { ...tracks.done(), unknown: [], unresolved: [] };
}

const removedRow = z.looseObject({
  _id: z.string().optional(),
  name: z.string().optional(),
  add: z.array(z.string()).optional(),
});

function doubtedObject(state: RunState, object: number, step: Step | undefined, former: Former): UncertainObject {
  const _id = state.idOf(object) ?? state.boundId(step, "_id");
  const before = former.get(_id ?? "");
  const name = state.objects.at(object)?.name ?? before?.name;
  const isTargeting = step?.operation === "deleteTargetings" || step?.operation === "renameTargetings";
  const placed = before?.kind === "option" ? before.targeting : undefined;
  const targeting = isTargeting ? _id : (placed ?? state.boundId(step, "targeting") ?? state.facts.within);
  return defined({ _id, name, targeting });
}

export function namesOf(state: RunState): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (let object = 0; object < state.objects.length; object += 1) {
    const [_id, name] = [state.idOf(object), state.objects.at(object)?.name];
    if (_id !== undefined && name !== undefined) names.set(_id, name);
  }
  return names;
}

/** Returns the applied steps and those in `also`, in order. Steps that set temporary names come first. */
function appliedSteps(state: RunState, also: ReadonlySet<number>): readonly number[] {
  const first: number[] = [];
  const others: number[] = [];
  for (let id = 0; id < state.steps.length; id += 1) {
    const part = state.steps.partAt(id);
    const isTemporary = part !== undefined && "formerName" in part && part.formerName !== undefined;
    if (state.isApplied(id) || also.has(id)) (isTemporary ? first : others).push(id);
  }
  return [...first, ...others];
}

class Tracks {
  readonly #former: Former;
  /** The ID of the only targeting that the run changes. Undefined if it changes several, or if that is unknown. */
  readonly #within: string | undefined;
  readonly #options = new Map<string, Track>();
  readonly #withoutId: CreatedWithoutId[] = [];
  readonly #wentInto = new Map<string, Set<string>>();
  readonly #targetings = new Map<string, { created?: string; name?: string; isDeleted: boolean }>();

  readonly #idOf: (object: number) => string | undefined;
  /** Returns the names of the run's objects by ID. Called only if the previous name of an object was not stored. */
  readonly #readNames: () => ReadonlyMap<string, string>;
  #names: ReadonlyMap<string, string> | undefined;

  constructor(
    former: Former,
    within?: string,
    idOf: (object: number) => string | undefined = () => undefined,
    names: () => ReadonlyMap<string, string> = () => new Map(),
  ) {
    this.#former = former;
    this.#within = within;
    this.#idOf = idOf;
    this.#readNames = names;
  }

  apply(step: Step): void {
    const bound = (field: Binding["field"]): string | undefined => {
      const { id, object = -1 } = bindingOf(step, field) ?? {};
      return id ?? this.#idOf(object);
    };
    const idAt = (position: number): string | undefined => this.#idOf(step.objects[position] ?? -1);
    const _id = bound("_id");
    switch (step.operation) {
      case "createTargetings":
        this.#createTargeting(step, idAt);
        return;
      case "addOptions":
        this.#create(step.item, { targeting: bound("targeting") ?? "", parent: bound("parent") ?? null }, idAt);
        return;
      case "renameTargetings":
        if (_id !== undefined) this.#targetings.set(_id, { ...this.#targeting(_id), name: step.item.name });
        return;
      case "deleteTargetings":
        if (_id !== undefined) this.#deleteTargeting(_id);
        return;
      case "updateOptions":
        // The ID is unknown if this run itself created the option and could not read its ID.
        if (_id !== undefined) this.#update(_id, step.item, bound("parent"));
        return;
      case "deleteOptions":
        if (_id !== undefined) this.#delete(_id);
    }
  }

  done(): Pick<Done, "targetings" | "options" | "withoutId"> {
    const targetings = [...this.#targetings].flatMap(([_id, track]) => this.#doneTargeting(_id, track));
    const options = [...this.#options].flatMap(([_id, track]) => this.#doneOption(_id, track));
    return { targetings, options, ...(this.#withoutId.length > 0 && { withoutId: this.#withoutId }) };
  }

  #targeting(_id: string) {
    return this.#targetings.get(_id) ?? { isDeleted: false };
  }

  #createTargeting(step: StepOf<"createTargetings">, idAt: (position: number) => string | undefined): void {
    const targeting = idAt(0);
    if (targeting === undefined) return;
    this.#targetings.set(targeting, { created: step.item.name, isDeleted: false });
    let position = 1;
    for (const option of step.item.options ?? []) {
      const first = position;
      this.#create(option, { targeting, parent: null }, (inside) => idAt(first + inside));
      position += 1 + (option.children?.length ?? 0);
    }
  }

  #create(
    { name, type, exposeChildren, contexts = [], children }: OptionItem,
    place: { readonly targeting: string; readonly parent: string | null },
    idAt: (position: number) => string | undefined,
  ): void {
    const _id = idAt(0);
    const { targeting, parent } = place;
    const isGroup = type === "collection" || children !== undefined;
    // The API documents do not say which value exposeChildren has by default.
    const left = { name, type: isGroup ? "collection" : "atomic", parent, exposeChildren, contexts } as const;
    if (_id !== undefined) {
      this.#enter(_id, parent);
      this.#options.set(_id, { created: { ...left, targeting }, isDeleted: false });
    } else this.#withoutId.push({ targeting, left });
    for (const [position, child] of (children ?? []).entries()) {
      const childId = idAt(position + 1);
      const inside = { name: child.name, type: "atomic", parent: _id ?? null, contexts: child.contexts ?? [] } as const;
      if (childId === undefined) {
        this.#withoutId.push({ targeting, left: inside, ...(_id === undefined && { group: name }) });
        continue;
      }
      this.#options.set(childId, { created: { ...inside, targeting }, isDeleted: false });
      this.#enter(childId, _id ?? null);
    }
  }

  #track(_id: string): Track {
    const track = this.#options.get(_id) ?? { isDeleted: false };
    this.#options.set(_id, track);
    return track;
  }

  #update(_id: string, { name, parent, exposeChildren, contexts }: OptionChanges, group: string | undefined): void {
    const track = this.#track(_id);
    const place = group ?? parent;
    if (name !== undefined) track.name = name;
    if (place !== undefined) {
      track.parent = place;
      this.#enter(_id, place);
    }
    if (exposeChildren !== undefined) track.exposeChildren = exposeChildren;
    if (contexts === undefined) return;
    track.contexts ??= new Map(track.created?.contexts.map((id) => [id, true]));
    const held = track.contexts;
    if (contexts.set !== undefined) {
      for (const id of this.#heldBefore(_id) ?? []) held.set(id, false);
      for (const id of held.keys()) held.set(id, false);
      for (const id of contexts.set) held.set(id, true);
    }
    for (const id of contexts.add ?? []) held.set(id, true);
    for (const id of contexts.remove ?? []) {
      // The run added this Context ID and removed it again. Nobody knows whether the option had it before, so it is not
      // reported.
      if (held.get(id) && this.#heldBefore(_id) === undefined) held.delete(id);
      else held.set(id, false);
    }
  }

  #enter(_id: string, group: string | null): void {
    if (group !== null) this.#wentInto.set(group, (this.#wentInto.get(group) ?? new Set()).add(_id));
  }

  #heldBefore(_id: string): readonly string[] | undefined {
    const created = this.#options.get(_id)?.created;
    const former = this.#former.get(_id);
    return created?.contexts ?? (former?.kind === "option" ? former.held : undefined);
  }

  /** Applies a deletion. Remaining sub-options of a deleted group move to the top level. */
  #delete(_id: string): void {
    const deleted = this.#track(_id);
    deleted.isDeleted = true;
    const former = this.#former.get(_id);
    const type = former?.kind === "option" ? former.type : deleted.created?.type;
    if (type === "atomic") return;
    const inside = new Set(former?.kind === "option" ? former.subOptions : []);
    for (const id of this.#wentInto.get(_id) ?? []) {
      const track = this.#track(id);
      if ((track.parent === undefined ? track.created?.parent : track.parent) === _id) inside.add(id);
    }
    for (const id of inside) {
      const track = this.#track(id);
      if (track.isDeleted || (track.parent !== undefined && track.parent !== _id)) continue;
      if (track.parent === undefined) {
        track.wasIn = { parent: _id, targeting: former?.kind === "option" ? former.targeting : undefined };
      }
      track.parent = null;
    }
  }

  #deleteTargeting(_id: string): void {
    this.#targetings.set(_id, { ...this.#targeting(_id), isDeleted: true });
    for (const [id, former] of this.#former) {
      if (former.kind === "option" && former.targeting === _id) this.#track(id).isDeleted = true;
    }
  }

  #doneTargeting(
    _id: string,
    { created, name, isDeleted }: { readonly created?: string; readonly name?: string; readonly isDeleted: boolean },
  ): readonly TargetingEffect[] {
    const former = this.#former.get(_id);
    const before = former?.kind === "targeting" ? former.name : undefined;
    if (created !== undefined) return isDeleted ? [] : [{ did: "created", _id, name: name ?? created }];
    if (isDeleted) return [{ did: "deleted", _id, name: before }];
    return name === undefined || name === before ? [] : [{ did: "changed", _id, name: { from: before, to: name } }];
  }

  #nameOf(_id: string): string | undefined {
    this.#names ??= this.#readNames();
    return this.#names.get(_id);
  }

  #doneOption(_id: string, track: Track): readonly OptionEffect[] {
    const { created, isDeleted } = track;
    if (created !== undefined) {
      const { targeting, ...left } = leftOf(created, track);
      return isDeleted ? [] : [{ did: "created", _id, targeting, left }];
    }
    const line = this.#former.get(_id);
    const former = line?.kind === "option" ? line : undefined;
    const targeting = former?.targeting ?? track.wasIn?.targeting ?? this.#within;
    const called = former?.name ?? this.#nameOf(_id);
    const about = { _id, targeting, called };
    if (!isDeleted) return changedOf(about, track, former);
    return [{ did: "deleted", ...about, before: former && stateOf(former) }];
  }
}

interface Track {
  /** The option as the run created it. Undefined if it existed before the run. */
  created?: OptionState & { readonly targeting: string };
  isDeleted: boolean;
  name?: string;
  parent?: string | null;
  /** The group that contained the option and was deleted, and the targeting of that group. */
  wasIn?: { readonly parent: string; readonly targeting: string | undefined };
  exposeChildren?: boolean;
  /** The Context IDs that the run added or removed, and whether the option has each of them now. */
  contexts?: Map<string, boolean>;
}

function leftOf(created: OptionState & { readonly targeting: string }, track: Track) {
  const { name, parent, exposeChildren } = track;
  const contexts = track.contexts && [...track.contexts].flatMap(([id, isHeld]) => (isHeld ? [id] : []));
  return { ...created, ...defined({ name, parent, exposeChildren, contexts }) };
}

/** Returns the previous state of an option. Undefined if a part of the state was not stored. */
function stateOf({ name, type, parent, exposeChildren, held }: PreviousOption): OptionState | undefined {
  if (name === undefined || type === undefined || parent === undefined || held === undefined) return undefined;
  return { name, type, parent, exposeChildren, contexts: held };
}

function changedOf(
  about: Pick<ChangedOption, "_id" | "called" | "targeting">,
  track: Track,
  former: PreviousOption | undefined,
): readonly OptionEffect[] {
  const { name, parent, exposeChildren, wasIn } = track;
  const place = former?.parent === undefined ? wasIn?.parent : former.parent;
  const contexts = contextsOf(track, former?.held);
  const fields = {
    ...(name !== undefined && name !== former?.name && { name: { from: former?.name, to: name } }),
    ...(parent !== undefined && parent !== place && { parent: { from: place, to: parent } }),
    ...(exposeChildren !== undefined &&
      exposeChildren !== former?.exposeChildren && {
        exposeChildren: { from: former?.exposeChildren, to: exposeChildren },
      }),
    ...(contexts !== undefined && { contexts }),
  };
  if (Object.keys(fields).length === 0) return [];
  return [{ did: "changed", ...about, ...fields }];
}

function contextsOf({ contexts }: Track, held: readonly string[] | undefined) {
  const before = new Set(held);
  const added: string[] = [];
  const removed: string[] = [];
  let unsure = 0;
  for (const [id, isHeld] of contexts ?? []) {
    if (held === undefined) unsure += 1;
    else if (isHeld && !before.has(id)) added.push(id);
    else if (!isHeld && before.has(id)) removed.push(id);
  }
  return added.length + removed.length + unsure === 0 ? undefined : { added, removed, unsure };
}
