import type { Difference } from "../../plans/diff/plan.ts";
import { shown } from "../fence.ts";
import { count, differenceLine } from "./words.ts";

const UNSEEN = "Who changed it, and when single Context IDs came or went, cannot be seen: the API does not show it.";

/** What drifted, in lines for a terminal. `against` says what the service was compared with. */
export function driftLines(
  { name, _id }: { readonly name: string; readonly _id: string },
  drift: readonly Difference[],
  against: string,
): readonly string[] {
  const about = `Targeting ${shown(name)} (${_id})`;
  if (drift.length === 0) return [`${about}: nothing differs from ${against}`];
  const many = `${count(drift.length)} ${drift.length === 1 ? "difference" : "differences"}`;
  return [`${about}: ${many} from ${against}`, ...drift.map((one) => `  ~ ${differenceLine(one)}`), UNSEEN];
}
