import * as z from "zod";
import type { RunHeader } from "../runs/store.ts";
import { isOn } from "../runtime/settings-input.ts";
import type { CommandLine } from "../settings/command-line.ts";
import { SettingsError } from "../settings/value-types.ts";
import { plannedRun } from "../tools/apply-plan.ts";
import { ToolError } from "../tools/define-tool.ts";
import { startUndoPlan } from "../tools/undo-run.ts";
import { carriedOut, forPerson, isApproved, printReport } from "./carry-out.ts";
import { onlyWord, type PlanContext, withProject, withRuns } from "./project.ts";

const plannedUndo = z.looseObject({ runId: z.string().optional() });

/** Shows what an undo restores, asks the person, and executes it. Exit code 0: nothing is left to do. */
export async function runUndo(line: CommandLine): Promise<number> {
  const runId = onlyWord(line, "the ID of a run").trim().toUpperCase();
  const yes = isOn(line, "yes");
  return withProject(line, "undo", async (context) => {
    const { header } = (await context.runs.find(runId)) ?? {};
    if (header !== undefined && isElsewhere(header, context)) {
      const made = header.environment === "live" ? "live" : "in a sandbox";
      throw new ToolError(
        `run ${runId} was made ${made}, but the current settings are for another environment`,
        placeToName(header),
      );
    }
    if (context.readOnly) {
      throw new ToolError(
        "nothing can be changed, because TARGETING_MCP_READ_ONLY is set",
        "To see what the run did: targeting-mcp runs RUN.",
      );
    }
    const { text, structured } = await startUndoPlan(runId, context);
    process.stdout.write(`${forPerson(text)}\n`);
    const { runId: planId } = plannedUndo.parse(structured);
    if (planId === undefined) return 0;
    if (!(await isApproved("Undo this?", yes))) return 1;
    const planned = await plannedRun(planId, context);
    return printReport(await carriedOut(planned.header, context), context);
  }).catch(async (thrown: unknown) => {
    if (!(thrown instanceof SettingsError)) throw thrown;
    const header = await withRuns(line, async ({ runs }) => (await runs.find(runId))?.header);
    throw header === undefined ? thrown : new SettingsError(placeToName(header), thrown.variable);
  });
}

/** Returns whether a run was made with another service or sandbox. Keys can be replaced, so other keys are accepted. */
function isElsewhere({ environment, sandbox }: RunHeader, context: PlanContext): boolean {
  return environment !== context.environment || (sandbox !== undefined && sandbox !== context.apiUrl);
}

function placeToName({ runId, environment, sandbox }: RunHeader): string {
  if (environment === "live") {
    return `run ${runId} was made with the live service: set TARGETING_API_URL and TARGETING_API_KEY as they were then`;
  }
  if (sandbox === "embedded") {
    return (
      `run ${runId} was made in a sandbox that was part of its server. That sandbox ended with the server, so ` +
      "there is nothing to undo"
    );
  }
  const address = sandbox === undefined ? "to the address of that sandbox" : `=${sandbox}`;
  return (
    `run ${runId} was made in a sandbox: set TARGETING_MCP_MODE=sandbox and ` +
    `TARGETING_MCP_SANDBOX_URL${sandbox === undefined ? " " : ""}${address}`
  );
}
