import { runsText } from "../../render/changes/runs.ts";
import type { CommandLine } from "../../settings/command-line.ts";
import { recentRuns, shownRuns } from "../../tools/runs/shown-runs.ts";
import { isOn } from "../settings-input.ts";
import { forPerson } from "./carry-out.ts";
import { type PlanContext, withProject } from "./project.ts";

/** Shows the recent runs of this caller, or one of them. Gives the exit code. */
export async function runRuns(line: CommandLine): Promise<number> {
  const [runId] = line.words;
  const isJson = isOn(line, "json");
  return withProject(line, "runs", async (context) => {
    const { structured, text } = await (runId === undefined
      ? all(context)
      : shownRuns({ runId: runId.trim().toUpperCase() }, context));
    process.stdout.write(isJson ? `${JSON.stringify(structured, null, 2)}\n` : `${forPerson(text)}\n`);
    return 0;
  });
}

async function all(context: PlanContext) {
  const { environment } = context;
  const runs = await recentRuns(context);
  return { structured: { environment, runs }, text: runsText(runs, undefined) };
}
