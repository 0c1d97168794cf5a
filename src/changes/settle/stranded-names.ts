import type { RunState } from "../state/change-state.ts";
import { targetOf, wantedName } from "./defer.ts";

/** An option or targeting that still has the temporary name that a run gave it. */
export interface StrandedName {
  readonly _id: string;
  readonly temporaryName: string;
  readonly formerName: string;
  /** False where no answer came, so that the thing may have its old name still. */
  readonly isSure: boolean;
}

/** Things whose names are temporary at this moment: of a run that rests, those that `resume_run` has to settle. */
export function strandedNames(state: RunState): readonly StrandedName[] {
  return state.preparingSteps().flatMap(({ step, isSure }) => {
    const [_id, temporaryName, { formerName }] = [targetOf(step), wantedName(step), step];
    if (_id === undefined || temporaryName === undefined || formerName === undefined) return [];
    const names = state.stepsChanging(_id).filter((other) => other.id !== step.id && wantedName(other) !== undefined);
    return names.some(({ id }) => state.isDone(id)) ? [] : [{ _id, temporaryName, formerName, isSure }];
  });
}
