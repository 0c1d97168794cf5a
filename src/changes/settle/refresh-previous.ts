import type { Reading } from "../../api/management.ts";
import { defined } from "../../platform/by-key.ts";
import { inPieces, undefinedIf } from "../../platform/files.ts";
import { parseJson } from "../../platform/json.ts";
import { isMissing, mapConcurrently, readOptionContents } from "../../reads/option-contents.ts";
import type { KnownChange } from "../../runs/outcome.ts";
import { wholeLines } from "../../runs/store.ts";
import type { RunState } from "../change-state.ts";
import {
  type AmendedObject,
  type PreviousValue,
  previousValueLine,
  type SameFields,
  type Step,
} from "../rows/entries.ts";
import type { ComparedRun } from "./evidence.ts";

/**
 * Steps that change one option. `unsent`: those that add or remove Context IDs and were never sent, or were refused.
 * `sent`: all that were applied or may have been.
 */
interface StepsOf {
  readonly unsent: readonly Step[];
  readonly sent: readonly Step[];
}

/**
 * What to refresh, by the ID of an option or targeting. `contexts`: the options whose Context IDs are read. `same`: the
 * fields that others have already set as the run would.
 */
interface Refresh {
  readonly contexts: ReadonlyMap<string, StepsOf>;
  readonly same: ReadonlyMap<string, SameFields>;
}

/** The Context IDs that steps add and remove. */
interface Touched {
  readonly add: ReadonlySet<string>;
  readonly remove: ReadonlySet<string>;
}

/** An option as it is now. `held`: only those of its Context IDs that unsent steps add or remove. */
interface Present {
  readonly held: ReadonlySet<string>;
  readonly contextCount: number;
}

/**
 * How many Context IDs the run adds to an option and removes from it, compared with the previous values. `isOther`:
 * others have added or removed some of these since.
 */
interface Effect {
  readonly added: number;
  readonly removed: number;
  readonly isOther: boolean;
}

/**
 * Stores the current values of objects as their previous ones, but not where a step that was sent may have set the
 * current value. Returns what the report says about these objects from now on. Throws the ApiError of a failed read.
 */
export async function refreshPreviousValues(
  run: ComparedRun,
  { contexts, same }: Refresh,
  { api, signal }: Reading,
): Promise<readonly AmendedObject[]> {
  const { state } = run;
  const present = new Map(
    await mapConcurrently([...contexts], async ([id, steps]) => {
      const read = await undefinedIf(isMissing, readOptionContents(api, id, signal));
      return read && ([id, presentOf(steps, read.contexts)] as const);
    }),
  );
  const effects = new Map<string, Effect>();
  const refreshed = (value: PreviousValue): PreviousValue => {
    const { name, ...others } = same.get(value._id) ?? {};
    const named = defined({ name });
    if (value.kind === "targeting") return { ...value, ...named };
    const [now, steps] = [present.get(value._id), contexts.get(value._id)];
    const option = { ...value, ...named, ...others };
    if (now === undefined || steps === undefined || value.held === undefined) return option;
    const unsent = unsentIds(steps);
    const isUnsent = (id: string): boolean => unsent.add.has(id) || unsent.remove.has(id);
    const before = value.held.filter(isUnsent);
    const held = [...value.held.filter((id) => !isUnsent(id)), ...now.held];
    const isOther = before.length !== now.held.size || before.some((id) => !now.held.has(id));
    effects.set(value._id, { ...effectOn(state, value._id, held), isOther });
    return { ...option, held, ...(steps.sent.length === 0 && { contextCount: now.contextCount }) };
  };
  const lines = async function* (): AsyncGenerator<string> {
    for await (const line of wholeLines(run.part("former")())) {
      const value = previousValueLine.safeParse(parseJson(line)).data;
      yield `${value === undefined ? line : JSON.stringify(refreshed(value))}\n`;
    }
    // If another process has taken over the run, only that process may replace what is stored.
    await run.lease.check();
  };
  await run.keep("former", inPieces(lines()));
  return [...amendedContexts(state, effects), ...[...same].flatMap(([id, fields]) => amendedFields(state, id, fields))];
}

function presentOf(steps: StepsOf, contexts: readonly string[]): Present {
  const { add, remove } = unsentIds(steps);
  const held = new Set(contexts.filter((contextId) => add.has(contextId) || remove.has(contextId)));
  return { held, contextCount: contexts.length };
}

/** Returns the Context IDs of steps that were never sent, without those that a sent step changes as well. */
function unsentIds({ unsent, sent }: StepsOf): Touched {
  const own = idsIn(sent);
  const isOwn = (contextId: string): boolean => own.add.has(contextId) || own.remove.has(contextId);
  const { add, remove } = idsIn(unsent);
  const others = (ids: ReadonlySet<string>) => new Set([...ids].filter((contextId) => !isOwn(contextId)));
  return { add: others(add), remove: others(remove) };
}

function idsIn(steps: readonly Step[]): Touched {
  const contexts = steps.flatMap((step) => (step.operation === "updateOptions" ? (step.item.contexts ?? []) : []));
  return {
    add: new Set(contexts.flatMap(({ add = [], set = [] }) => [...add, ...set])),
    remove: new Set(contexts.flatMap(({ remove = [] }) => remove)),
  };
}

function effectOn(state: RunState, id: string, before: readonly string[]) {
  const { add, remove } = idsIn(state.stepsChanging(id).filter(isOwnChange));
  let [added, removed] = [add.size, 0];
  for (const contextId of before) {
    if (add.has(contextId)) added -= 1;
    if (remove.has(contextId)) removed += 1;
  }
  return { added, removed };
}

/** Returns whether a step makes a part of the requested change. A step that reverses another one does not. */
function isOwnChange({ prepares, undoes }: Step): boolean {
  return prepares === undefined && undoes === undefined;
}

function objectsOf(state: RunState, id: string): readonly number[] {
  return [...new Set(state.stepsChanging(id).flatMap(({ objects }) => objects))];
}

function amendedContexts(state: RunState, effects: ReadonlyMap<string, Effect>): readonly AmendedObject[] {
  return [...effects].flatMap(([id, effect]) => {
    const objects = objectsOf(state, id);
    return objects.flatMap((object): readonly AmendedObject[] => {
      const { change } = state.objects.at(object) ?? {};
      const now = change && changeNow(change, effect, objects.length === 1);
      return now === undefined ? [] : [{ object, change: now }];
    });
  });
}

/**
 * Returns the change that is reported for an object from now on. Undefined if it stays the same. If several objects
 * change the same option, it is not known which of them has less to change, so their numbers are omitted unless they
 * change nothing at all.
 */
function changeNow(change: KnownChange, { added, removed, isOther }: Effect, isOnly: boolean): KnownChange | undefined {
  const { added: adds, removed: removes, alreadyThere = 0, absent = 0, ...rest } = change;
  if (!isOnly && !isOther) return undefined;
  if (!isOnly && added + removed > 0) return rest;
  if ((adds ?? added) === added && (removes ?? removed) === removed) return undefined;
  return {
    ...rest,
    ...(adds !== undefined && { added, alreadyThere: alreadyThere + adds - added }),
    ...(removes !== undefined && { removed, absent: absent + removes - removed }),
  };
}

function amendedFields(state: RunState, id: string, same: SameFields): readonly AmendedObject[] {
  return objectsOf(state, id).flatMap((object) => {
    const { change } = state.objects.at(object) ?? {};
    if (change === undefined) return [];
    const { from, to, exposeChildren } = change;
    const isShown = same.exposeChildren !== undefined && exposeChildren !== undefined;
    return [
      {
        object,
        change: {
          ...change,
          ...(from !== undefined && { from: sideNow(from, to, same) }),
          ...(isShown && { exposeChildren: { from: exposeChildren.to, to: exposeChildren.to } }),
        },
      },
    ];
  });
}

type Side = NonNullable<KnownChange["from"]>;

/**
 * Returns the name or the position of an object before a rename or a move, as it is now reported. The fields in `same`
 * already have their new values.
 */
function sideNow(from: Side, to: Side | undefined, { name, parent }: SameFields): Side {
  if (typeof from === "string") return name ?? from;
  const { parentName } = typeof to === "object" && parent !== undefined ? to : {};
  return { ...from, ...defined({ name, parent, parentName }) };
}
