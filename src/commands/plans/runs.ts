import { runsText } from "../../render/changes/runs.ts";
import { type CommandLine, optionOf } from "../../settings/command-line.ts";
import { toggle } from "../../settings/forms.ts";
import { recentRuns, shownRuns } from "../../tools/runs/shown-runs.ts";
import { forPerson } from "./carry-out.ts";
import { type PlanProject, withProject } from "./project.ts";

/** Shows the recent runs of this caller, or one of them. Gives the exit code. */
export async function runRuns(line: CommandLine): Promise<number> {
  const [runId] = line.words;
  const isJson = optionOf(line, "json", toggle) ?? false;
  return withProject(line, "runs", async (project) => {
    const { structured, text } = await (runId === undefined
      ? all(project)
      : shownRuns({ runId: runId.trim().toUpperCase() }, project.context));
    process.stdout.write(isJson ? `${JSON.stringify(structured, null, 2)}\n` : `${forPerson(text)}\n`);
    return 0;
  });
}

async function all({ context }: PlanProject) {
  const { environment } = context;
  const runs = await recentRuns(context);
  return { structured: { environment, runs }, text: runsText(runs, undefined) };
}
