import { runsText } from "../../render/changes/runs.ts";
import type { CommandLine } from "../../settings/command-line.ts";
import { recentRuns, shownRuns } from "../../tools/runs/shown-runs.ts";
import { isOn } from "../settings-input.ts";
import { forPerson } from "./carry-out.ts";
import { type PlanContext, toldFailure, withRuns } from "./project.ts";

/** Shows the recent runs of this caller, or one of them; no API has to be set for that. Gives the exit code. */
export async function runRuns(line: CommandLine): Promise<number> {
  const [given] = line.words;
  const isJson = isOn(line, "json");
  return withRuns(line, async (context, told) => {
    try {
      const { structured, text } = await (given === undefined
        ? all(context)
        : one(given.trim().toUpperCase(), context));
      process.stdout.write(isJson ? `${JSON.stringify(structured, null, 2)}\n` : `${forPerson(text)}\n`);
      return 0;
    } catch (thrown) {
      return toldFailure(thrown, "runs", told);
    }
  });
}

/** A run belongs to the environment that it was made in, whatever is set now. */
async function one(runId: string, context: PlanContext) {
  const environment = (await context.runs.find(runId))?.header.environment ?? context.environment;
  return shownRuns({ runId }, { ...context, environment });
}

async function all(context: PlanContext) {
  const { environment } = context;
  const runs = await recentRuns(context);
  return { structured: { environment, runs }, text: runsText(runs, undefined) };
}
