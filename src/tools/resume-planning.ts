import * as z from "zod";
import { isChangeRun } from "../changes/change-run.ts";
import type { ChangeHeader } from "../changes/changes.ts";
import { textOf } from "../plans/look-again.ts";
import { readPlan } from "../plans/plan-document.ts";
import { parseJson } from "../platform/json.ts";
import { changesOf } from "./apis.ts";
import type { ToolContext } from "./context.ts";
import { type ToolAnswer, ToolError } from "./define-tool.ts";
import { changesOfDocument, shownPlan } from "./kept-plan.ts";
import { planDesiredState } from "./planned-state.ts";
import { ownRun, reportRun } from "./run-reports.ts";
import { startUndoPlan } from "./undo-plan.ts";

/** What `madeInTime` keeps of a call until its plan is made. */
const kept = z.object({ given: z.record(z.string(), z.unknown()) });
const made = z.object({ kind: z.literal("targeting-mcp-plan") });
const wayBack = z.object({ runId: z.string() });

/**
 * Makes the plan of a run again whose process ended before it was made; one that was made, but not kept whole, is kept.
 * Throws what planning throws.
 */
export async function resumePlanning(header: ChangeHeader, context: ToolContext): Promise<ToolAnswer> {
  const text = await textOf(context.runs.part(header.runId, "input"));
  const value = parseJson(text);
  const { given } = kept.safeParse(value).data ?? {};
  if (made.safeParse(value).success) return keepMade(header, text, context);
  if (given === undefined) {
    throw new ToolError("this plan was not kept: its server ended before; nothing was sent", "Make the call again.");
  }
  const undo = wayBack.safeParse(given).data;
  return undo === undefined ? planDesiredState(given, context, header) : startUndoPlan(undo.runId, context, header);
}

/** Keeps what a plan would do that was itself kept before its process ended, and shows it. */
async function keepMade(header: ChangeHeader, text: string, context: ToolContext): Promise<ToolAnswer> {
  const { call, caller } = header;
  if (call.tool !== "apply_plan") throw new ToolError("this run is no plan", "get_run without runId lists the runs.");
  const { plannedBy, base, undoes } = call.input;
  const changes = changesOfDocument(readPlan(text, "the kept plan"));
  await changesOf(context).keepPlan(changes, { text, plannedBy, base, undoes, caller }, header);
  const run = await ownRun(header.runId, context);
  return isChangeRun(run) ? shownPlan(run, context) : reportRun(run, context);
}
