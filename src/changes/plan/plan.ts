import type { Reading } from "../../api/management.ts";
import { invisibleIn } from "../../files/damage.ts";
import { placeOf } from "../../files/rows.ts";
import type { ResolvedRun } from "../../plans/planned-undo.ts";
import type { ByteSource } from "../../platform/held-folder.ts";
import type { PlacedOption } from "../../reads/saved-options.ts";
import { ownReason, type Reason, type ReportedObject } from "../../runs/outcome.ts";
import { LIMITS, OWN_BODY_BYTES } from "../../spec/limits.ts";
import { bytesOf, contextIdProblem, isUlid, nameProblem, trimContextId } from "../../spec/names-and-contexts.ts";
import type { OptionRecord } from "../../spec/records.ts";
import type { UpdateContextsItem } from "../call.ts";
import { type JournalEntry, PreviousValues, type RunFacts, type Settlement, type Step } from "../rows/entries.ts";
import { RowBlock, type RowRange } from "../rows/row-block.ts";
import { ENTRIES_PER_LINE, ObjectList, StepList, StepMaker } from "../rows/steps.ts";

export interface PlanningContext extends Reading {
  /** The content of the call's file or, for `apply_plan`, the stored plan. */
  readonly bytes?: ByteSource | undefined;
  /** Only for an undo: finds out what the undone run's unanswered requests did. */
  readonly resolve?: (() => Promise<ResolvedRun>) | undefined;
}

/** What an object would lose by a change. A person sees it before approving the change. */
export interface Loss {
  readonly name: string;
  readonly _id: string;
  readonly kind: "targeting" | "option" | "optionGroup" | "contextIds";
  /** How many it would lose: options of a targeting, sub-options of a group, or Context IDs of an option. */
  readonly count: number;
  /** For a group: the sorted IDs of its sub-options, except those that the same run moves elsewhere. */
  readonly subOptions?: readonly string[];
  /** The names of the first sub-options that remain when their group is deleted. Absent if they were not read. */
  readonly freedNames?: readonly string[];
  /** For a group: how many Context IDs the group itself has. */
  readonly ownContextIds?: number;
  /**
   * For a deletion: when the object was last changed or, for a targeting, when one of its options was. A new time shows
   * that Context IDs were replaced even if their number is the same.
   */
  readonly updatedAt?: string;
  /** For an option: set if it is in a group. */
  readonly isInGroup?: true;
  readonly empties?: boolean;
  /** For a targeting: how many Context IDs its options have, if known. `options`: the first and the last options. */
  readonly contextIds?: number;
  readonly options?: readonly LostOption[];
  /** For a targeting: how many of its options are groups, if known. */
  readonly groups?: number;
  /**
   * The group whose last sub-option this is. The service refuses the deletion, because the group would be empty
   * (management-api 7.4, case 6).
   */
  readonly lastOf?: { readonly _id: string; readonly name: string };
}

export const MAX_FREED_NAMES = 5;

/** Returns the loss of an option that is not a group. */
export function optionLoss(
  { name, _id, parent }: { readonly name: string; readonly _id: string; readonly parent?: string | null | undefined },
  count: number,
): Loss {
  return { name, _id, kind: "option", count, ...(typeof parent === "string" && { isInGroup: true }) };
}

/** Returns the loss of an option with `held` Context IDs if `removed` of them are removed and `added` are added. */
export function contextIdLoss(
  { name, _id }: Pick<Loss, "name" | "_id">,
  { held, removed, added }: { readonly held: number; readonly removed: number; readonly added: number },
): Loss {
  const empties = removed === held && added === 0;
  return { name, _id, kind: "contextIds", count: removed, ...(empties && { empties }) };
}

export interface LostOption {
  readonly name: string;
  readonly _id: string;
  readonly contextIds: number;
}

/** What a run removes, stored for an undo: Context IDs (as an item that adds them), options, or a targeting. */
export type Removed =
  | { readonly kind: "row"; readonly row: UpdateContextsItem }
  /** `areRead`: the options already contain their Context IDs. */
  | { readonly kind: "options"; readonly options: Iterable<PlacedOption>; readonly areRead?: true }
  | { readonly kind: "targeting"; readonly _id: string };

export class Plan {
  readonly objects = new ObjectList();
  readonly steps = new StepList();
  readonly settlements: Settlement[] = [];
  readonly losses: Loss[] = [];
  readonly removed: Removed[] = [];
  readonly former = new PreviousValues();
  readonly make = new StepMaker(() => this.steps.length);
  facts: RunFacts = {};
  /** The options, by ID, that were read to resolve names. Their previous values are not read again. */
  known: ReadonlyMap<string, OptionRecord> = new Map();

  /** When the plan was made, in milliseconds since 1970. What it has read counts as current for a short time. */
  madeAt?: number;

  object(object: ReportedObject): number {
    return this.objects.add(object);
  }

  note(facts: RunFacts): void {
    this.facts = { ...this.facts, ...facts };
  }

  fail(object: number, reason: Reason): void {
    this.settlements.push({ object, outcome: "failed", reason });
  }

  failGiven(given: { readonly index: number; readonly line?: number; readonly reason: Reason }): void {
    this.fail(this.object(placeOf(given)), given.reason);
  }

  /** Records that an object is not applied, for example because another object that it needs has failed. */
  leaveOut(object: number, reason: Reason): void {
    this.settlements.push({ object, outcome: "notApplied", reason });
  }

  add(step: Step): Step {
    this.steps.add(step);
    return step;
  }

  /** Adds the steps for a range of rows. The objects of these rows must already be in the plan. */
  addRows({ block, from, to }: RowRange): void {
    if (from >= to) return;
    const planned = block.planned(from, to, this.steps.length);
    this.objects.setRows(planned);
    for (let row = from; row < to; row += 1) this.steps.addRow(planned);
  }

  /** Returns the journal entries of the plan. Objects come before the steps that use them. */
  *entries(): Generator<JournalEntry> {
    let yielded = 0;
    for (const section of this.#sections()) {
      const isRows = section instanceof RowBlock;
      const end = isRows ? section.firstObject : Math.max(yielded, endOfObjects(section));
      yield* this.objects.entries(yielded, end);
      if (isRows) yield* section.entries();
      else yield { t: "steps", steps: section };
      yielded = isRows ? end + section.length : end;
    }
    yield* this.objects.entries(yielded);
    yield* this.#ending();
  }

  /** Returns the entries to store until the plan is started: its objects, outcomes and facts, without the steps. */
  *outline(): Generator<JournalEntry> {
    yield* this.objects.entries();
    yield* this.#ending();
  }

  *#ending(): Generator<JournalEntry> {
    yield { t: "settled", settlements: this.settlements };
    if (Object.keys(this.facts).length > 0) yield { t: "facts", facts: this.facts };
  }

  /**
   * Yields the steps in order, as blocks of rows and as lists. The entry of a block contains its objects and its steps.
   * If an earlier step uses an object of the block or a later one, `entries` has already yielded objects of the
   * block. The rows of the block are then yielded as a list of steps.
   */
  *#sections(): Generator<RowBlock | readonly Step[]> {
    let named = 0;
    let steps: Step[] = [];
    for (const part of this.steps.parts()) {
      if (part instanceof RowBlock && part.firstObject >= named) {
        if (steps.length > 0) yield steps;
        yield part;
        steps = [];
        named = part.firstObject + part.length;
        continue;
      }
      for (const step of part instanceof RowBlock ? part.steps() : [part]) {
        named = Math.max(named, endOfObjects([step]));
        if (steps.push(step) < ENTRIES_PER_LINE) continue;
        yield steps;
        steps = [];
      }
    }
    if (steps.length > 0) yield steps;
  }
}

function endOfObjects(steps: readonly Step[]): number {
  let end = 0;
  for (const { objects } of steps) for (const object of objects) end = Math.max(end, object + 1);
  return end;
}

export interface Planning<Made = Plan> {
  readonly plan: Promise<Made>;
  /** Stops planning. The promise `plan` is then rejected, unless planning has finished. */
  stop(): void;
}

export function isGoing<Made extends object>(plan: Made | Planning<Made>): plan is Planning<Made> {
  return "plan" in plan && plan.plan instanceof Promise;
}

/** Returns a reason if the service would not accept a name (management-api 8.3). */
export function badName(name: string): Reason | undefined {
  const problem = nameProblem(name);
  return problem === undefined ? undefined : ownReason("INVALID_NAME", { ...problem });
}

/** Returns a reason if a text is no valid ID. `field`: the input field that has the text. */
export function badId(field: string, id: string): Reason | undefined {
  return isUlid(id) ? undefined : ownReason("INVALID_ID", { field, value: id.slice(0, 40) });
}

/** Context IDs as the service stores them: trimmed, without duplicates, in the order of first occurrence. */
type CheckedContextIds =
  | { readonly ok: true; readonly ids: readonly string[] }
  | { readonly ok: false; readonly reason: Reason };

const NO_CONTEXT_IDS: CheckedContextIds = { ok: true, ids: [] };

/**
 * Trims and checks Context IDs (management-api 8.1). If some are invalid, returns a reason with the first problem and
 * the number of invalid ones.
 */
export function checkContextIds(contextIds: readonly string[]): CheckedContextIds {
  const [only] = contextIds;
  if (only === undefined) return NO_CONTEXT_IDS;
  if (contextIds.length === 1) {
    const trimmed = trimContextId(only);
    if (contextIdProblem(trimmed) === undefined) return { ok: true, ids: [trimmed] };
  }
  const ids = new Set<string>();
  let bad: Reason | undefined;
  let count = 0;
  contextIds.forEach((contextId, position) => {
    const trimmed = trimContextId(contextId);
    const problem = contextIdProblem(trimmed);
    if (problem === undefined) ids.add(trimmed);
    else {
      count += 1;
      bad ??= ownReason("INVALID_CONTEXT_ID", { ...problem, position, value: trimmed.slice(0, 40) });
    }
  });
  if (bad !== undefined) return { ok: false, reason: { ...bad, detail: { ...bad.detail, count } } };
  return { ok: true, ids: [...ids] };
}

/** Returns a reason if a Context ID contains invisible characters, which files may not contain either. */
export function invisibleContextIds(contextIds: readonly string[]): Reason | undefined {
  const found = contextIds.map((id) => invisibleIn(trimContextId(id)));
  const count = found.filter((characters) => characters.length > 0).length;
  if (count === 0) return undefined;
  const position = found.findIndex((characters) => characters.length > 0);
  const value = contextIds[position]?.slice(0, 40);
  return ownReason("INVALID_CONTEXT_ID", { rule: "invisible", characters: found[position], position, value, count });
}

/** Returns a reason if these are more Context IDs, or more bytes, than an option can have (management-api 8.1). */
export function tooManyForOption(ids: readonly string[]): Reason | undefined {
  const limit = LIMITS.optionContextIds.value;
  const limitBytes = LIMITS.optionContextBytes.value;
  if (ids.length > limit) return ownReason("TOO_MANY_CONTEXT_IDS", { count: ids.length, limit });
  if (ids.length * LIMITS.contextIdBytes.value <= limitBytes) return undefined;
  const bytes = bytesOf(ids);
  return bytes > limitBytes ? ownReason("TOO_MANY_CONTEXT_IDS", { bytes, limitBytes }) : undefined;
}

const OTHER_FIELDS_BYTES = 4096;

/** The maximum size of all Context IDs in one request body in bytes. The rest is for other fields. */
export const PART_BYTES = OWN_BODY_BYTES - OTHER_FIELDS_BYTES;

/** Returns the size of a Context ID in a request body in bytes, including the comma. */
export function bytesInBody(id: string): number {
  return Buffer.byteLength(JSON.stringify(id), "utf8") + 1;
}

/** Splits Context IDs into parts that fit into one request each (management-api 8.1). Returns at least one part. */
export function parts(ids: readonly string[]): readonly (readonly string[])[] {
  const all: string[][] = [[]];
  let bytes = 0;
  for (const id of ids) {
    const size = bytesInBody(id);
    const part = all.at(-1) ?? [];
    const full = part.length >= LIMITS.requestContextIds.value || bytes + size > PART_BYTES;
    if (full) {
      all.push([id]);
      bytes = size;
    } else {
      part.push(id);
      bytes += size;
    }
  }
  return all;
}
