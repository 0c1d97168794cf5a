import * as z from "zod";
import type { CommandLine } from "../../settings/command-line.ts";
import { ToolError } from "../../tools/definition.ts";
import { plannedRun } from "../../tools/plans/applied-plan.ts";
import { planWayBack } from "../../tools/plans/planned-way-back.ts";
import { isOn } from "../settings-input.ts";
import { carriedOut, forPerson, isAgreed, printReport } from "./carry-out.ts";
import { onlyWord, withProject } from "./project.ts";

/** The field of a planned way back that says which run it is; absent where nothing goes back. */
const planned = z.looseObject({ runId: z.string().optional() });

/**
 * Takes a run back: shows what goes back and what does not, asks, and carries it out. Gives the exit code: 0 where all of
 * the plan is done or nothing was to be done, else 1.
 */
export async function runUndo(line: CommandLine): Promise<number> {
  const runId = onlyWord(line, "the ID of a run").trim().toUpperCase();
  const yes = isOn(line, "yes");
  return withProject(line, "undo", async (context) => {
    if (context.readOnly) {
      throw new ToolError("nothing may be changed: TARGETING_MCP_READ_ONLY is set", "runs shows what was done.");
    }
    const { text, structured } = await planWayBack(runId, context);
    // What an agent would do next is asked here.
    process.stdout.write(`${forPerson(text)}\n`);
    const { runId: planId } = planned.parse(structured);
    if (planId === undefined) return 0;
    if (!(await isAgreed("Take this back?", yes))) return 1;
    const { header } = await plannedRun(planId, context);
    return printReport(await carriedOut(header, context), context);
  });
}
