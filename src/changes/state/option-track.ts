import type { DoneOption, OptionState } from "../../runs/done.ts";
import type { FormerOption } from "../rows/former.ts";

/** What an option went through in a run. */
export interface Track {
  /** As the run made it; undefined where it was there before. */
  created?: OptionState & { readonly targeting: string };
  isDeleted: boolean;
  name?: string;
  parent?: string | null;
  /** The group that it was in until that was deleted, and the targeting of both. */
  wasIn?: { readonly parent: string; readonly targeting: string | undefined };
  exposeChildren?: boolean;
  /** Of each Context ID that the run gave or took: whether the option holds it now. Made where it is needed. */
  contexts?: Map<string, boolean>;
}

/** An option as the run left it, which made it. */
export function leftOf(created: OptionState & { readonly targeting: string }, { name, parent, ...track }: Track) {
  return {
    ...created,
    ...(name !== undefined && { name }),
    ...(parent !== undefined && { parent }),
    ...(track.exposeChildren !== undefined && { exposeChildren: track.exposeChildren }),
    ...(track.contexts && { contexts: [...track.contexts].flatMap(([id, isHeld]) => (isHeld ? [id] : [])) }),
  };
}

/** An option that was deleted, where all of it was kept. */
export function stateOf({ name, type, parent, exposeChildren, held }: FormerOption): OptionState | undefined {
  if (name === undefined || type === undefined || parent === undefined || held === undefined) return undefined;
  return { name, type, parent, ...(exposeChildren !== undefined && { exposeChildren }), contexts: held };
}

/** What changed of an option; nothing where it is as it was. */
export function changedOf(
  about: { readonly _id: string; readonly targeting: string | undefined },
  track: Track,
  former: FormerOption | undefined,
): readonly DoneOption[] {
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
