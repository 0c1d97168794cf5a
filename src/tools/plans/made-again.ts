import * as z from "zod";
import type { ChangeHeader } from "../../changes/changes.ts";
import { textOf } from "../../plans/look-again.ts";
import { parseJson } from "../../platform/json.ts";
import type { ToolContext } from "../context.ts";
import { type ToolAnswer, ToolError } from "../definition.ts";
import { planDesiredState } from "./planned-state.ts";
import { planWayBack } from "./planned-way-back.ts";

/** What `madeInTime` keeps of a call until its plan is made. */
const kept = z.object({ given: z.record(z.string(), z.unknown()) });
const wayBack = z.object({ runId: z.string() });

/** Makes the plan of a run again whose process ended before it was made. Throws what planning throws. */
export async function makeAgain(header: ChangeHeader, context: ToolContext): Promise<ToolAnswer> {
  const { given } = kept.safeParse(parseJson(await textOf(context.runs.part(header.runId, "input")))).data ?? {};
  if (given === undefined) throw new ToolError("what this plan was made from is gone", "Make the call again.");
  const undo = wayBack.safeParse(given).data;
  return undo === undefined ? planDesiredState(given, context, header) : planWayBack(undo.runId, context, header);
}
