import { ownReason } from "../../runs/reasons.ts";
import type { Settlement } from "./entries.ts";
import type { OnExisting } from "./inputs.ts";

const EXISTS = ownReason("EXISTS");

/** The outcome of an option that exists and is not changed: skipped by choice, or with nothing to be given to it. */
export function leftAsItIs(object: number, _id: string, onExisting: OnExisting): Settlement {
  if (onExisting === "skip") return { object, outcome: "skipped", reason: EXISTS, _id };
  return { object, outcome: "alreadyDone", _id };
}
