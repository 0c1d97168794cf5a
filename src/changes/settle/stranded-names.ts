import type { RunState } from "../state/change-state.ts";
import { targetOf, wantedName } from "./defer.ts";

/** A thing that a run gave a temporary name, and neither the one that it was to have, nor its old one back. */
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
