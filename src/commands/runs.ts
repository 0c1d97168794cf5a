import { runsText } from "../answers/run-headline.ts";
import { isOn } from "../runtime/settings-input.ts";
import { type CommandLine, optionOf } from "../settings/command-line.ts";
import { SettingsError, text } from "../settings/value-types.ts";
import type { SaveArguments } from "../tools/arguments.ts";
import { recentRuns, showRunOrList } from "../tools/get-run.ts";
import { savedResultsAt } from "../tools/result-sheet.ts";
import { ownRun } from "../tools/run-reports.ts";
import { forPerson } from "./carry-out.ts";
import { type PlanContext, reportFailure, withRuns } from "./project.ts";

export async function runRuns(line: CommandLine): Promise<number> {
  const [given] = line.words;
  const isJson = isOn(line, "json");
  const [to, delimiter] = [optionOf(line, "to", text), optionOf(line, "delimiter", text)];
  if (given === undefined && to !== undefined) {
    throw new SettingsError("--to needs the ID of a run: targeting-mcp runs RUN --to FILE");
  }
  return withRuns(line, async (context, reporting) => {
    try {
      const runId = given?.trim().toUpperCase();
      const { structured, text: words } = await (runId === undefined
        ? showRuns(context)
        : to === undefined
          ? showRun(runId, context)
          : sheetOf(runId, { saveTo: to, delimiter }, context));
      process.stdout.write(isJson ? `${JSON.stringify(structured, null, 2)}\n` : `${forPerson(words)}\n`);
      return 0;
    } catch (thrown) {
      return reportFailure(thrown, "runs", reporting);
    }
  });
}

/** Shows a run with the environment in which it was made, whatever is configured now. */
async function showRun(runId: string, context: PlanContext) {
  const environment = (await context.runs.find(runId))?.header.environment ?? context.environment;
  return showRunOrList({ runId }, { ...context, environment });
}

async function sheetOf(runId: string, to: SaveArguments, context: PlanContext) {
  const run = await ownRun(runId, context);
  return savedResultsAt(run, to, { ...context, environment: run.header.environment });
}

async function showRuns(context: PlanContext) {
  const { environment } = context;
  const runs = await recentRuns(context);
  return { structured: { environment, runs }, text: runsText(runs, undefined) };
}
