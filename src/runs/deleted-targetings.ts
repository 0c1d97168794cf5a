import type { Did } from "./outcome.ts";
import type { RunSummary } from "./store.ts";

type DeletedTargetings = NonNullable<NonNullable<RunSummary["about"]>["deletedTargetings"]>;

/** The part of a run's state that shows which targetings it deleted. */
interface DeletingState {
  readonly objects: {
    readonly length: number;
    at(object: number): { readonly name?: string } | undefined;
    kindOf?(object: number): "targeting" | "group" | undefined;
  };
  readonly facts?: {
    readonly inside?: readonly { readonly _id: string; readonly options: number; readonly groups: number }[];
  };
  idOf(object: number): string | undefined;
  didOf?(object: number): Did | undefined;
}

/** The maximum number of deleted targetings whose names a summary keeps. */
const MAX_NAMED = 20;
const MAX_NAME_CHARACTERS = 120;

/**
 * Returns the first targetings that a run deleted, with their names. For `delete_targeting` also counts the options and
 * groups that these contained, because the items of that tool are only the targetings. Undefined if none was deleted.
 */
export function deletedTargetings(
  { tool }: { readonly tool: string },
  state: DeletingState,
): DeletedTargetings | undefined {
  const areTargetings = tool === "delete_targeting";
  const first: DeletedTargetings["first"][number][] = [];
  const gone = new Set<string>();
  for (let object = 0; object < state.objects.length; object += 1) {
    if (!areTargetings && state.objects.kindOf?.(object) !== "targeting") continue;
    const _id = state.didOf?.(object) === "deleted" ? state.idOf(object) : undefined;
    if (_id === undefined || gone.has(_id)) continue;
    gone.add(_id);
    const name = state.objects.at(object)?.name;
    if (name !== undefined && first.length < MAX_NAMED) first.push({ _id, name: name.slice(0, MAX_NAME_CHARACTERS) });
  }
  if (gone.size === 0) return undefined;
  const inside = (state.facts?.inside ?? []).filter((one) => gone.has(one._id));
  const options = inside.reduce((sum, one) => sum + one.options, 0);
  const groups = inside.reduce((sum, one) => sum + one.groups, 0);
  return { first, ...(options > 0 && { options, groups }) };
}
