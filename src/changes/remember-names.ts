import { objectResults } from "../runs/report.ts";
import type { TargetingMemory } from "../runs/targeting-names.ts";
import type { WriteCall } from "./call.ts";
import type { RunState } from "./state/change-state.ts";

/** Targetings that a run made, renamed or deleted are known by name from now on. */
export async function rememberTargetings({ tool }: WriteCall, state: RunState, memory: TargetingMemory): Promise<void> {
  const ended = (outcomes: readonly string[]) =>
    objectResults(state).flatMap(({ child, name = "", _id, outcome }) =>
      child === undefined && _id !== undefined && outcomes.includes(outcome) ? [{ _id, name }] : [],
    );
  if (tool === "create_targetings" || tool === "rename_targetings") await memory.remember(ended(["succeeded"]));
  if (tool === "delete_targeting") {
    await memory.forget(ended(["succeeded", "alreadyDone"]).map(({ _id }) => _id));
  }
}
