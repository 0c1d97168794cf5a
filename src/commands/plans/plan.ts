import { planOf } from "../../plans/diff/diff.ts";
import { isApplicable, itemCount, type StatePlan } from "../../plans/diff/plan.ts";
import type { Problem } from "../../plans/file/desired.ts";
import { type PlanExitCode, type PlanJson, planDocument, planJson } from "../../plans/plan-document.ts";
import { whichTargeting } from "../../plans/which-targeting.ts";
import { FileError } from "../../platform/file-error.ts";
import { planMarkdown } from "../../render/plans/plan-markdown.ts";
import { planLines } from "../../render/plans/plan-text.ts";
import { problemLine } from "../../render/plans/words.ts";
import { type CommandLine, optionOf } from "../../settings/command-line.ts";
import { SettingsError } from "../../settings/error.ts";
import { path, text, toggle } from "../../settings/forms.ts";
import { baseFor, readDesiredFile } from "./files.ts";
import { onlyWord, type PlanProject, printLines, readShowing, withProject, writeOver } from "./project.ts";

/** The options of a command line for a plan. */
interface PlanLine {
  readonly file: string;
  readonly targeting: string | undefined;
  readonly base: string | undefined;
  readonly prune: boolean;
  readonly byName: boolean;
  readonly form: "text" | "json" | "markdown";
  readonly out: string | undefined;
}

/**
 * Shows what applying a file would change. Gives the exit code: 0 nothing, 2 something, 1 where it cannot be applied.
 */
export async function runPlan(line: CommandLine): Promise<number> {
  const isOn = (flag: string): boolean => optionOf(line, flag, toggle) ?? false;
  if (isOn("json") && isOn("markdown"))
    throw new SettingsError("--json and --markdown were both given: give one of them");
  const asked: PlanLine = {
    file: onlyWord(line, "the file of a desired state"),
    targeting: optionOf(line, "targeting", text),
    base: optionOf(line, "base", path),
    prune: isOn("prune"),
    byName: isOn("by-name"),
    form: isOn("json") ? "json" : isOn("markdown") ? "markdown" : "text",
    out: optionOf(line, "out", path),
  };
  return withProject(line, "plan", (project) => plan(asked, project));
}

async function plan(asked: PlanLine, project: PlanProject): Promise<number> {
  const { file, prune, byName } = asked;
  const { desired, problems, digest } = await readDesiredFile(file);
  if (problems.length > 0) return printProblems(problems, asked);
  // By names, the base beside the file is that of another targeting.
  const base = byName && asked.base === undefined ? undefined : await baseFor(file, asked.base);
  if (prune && base === undefined) {
    throw new FileError(
      "--prune deletes what stood in the base and is gone from the file, and there is no base",
      "Export the targeting with --to, which writes the base beside the file, or name it with --base.",
    );
  }
  const { memory, settings, apiUrl } = project;
  const given = asked.targeting;
  const targetingId = await whichTargeting({ given, file: desired.targeting, base, byName, memory });
  const there = targetingId === undefined ? undefined : await readShowing(project, targetingId);
  const { maxChangePercent, maxDeletes } = settings;
  const made = planOf({ desired, base, there, prune, byName, thresholds: { maxChangePercent, maxDeletes } });
  const document = planDocument(made, {
    environment: settings.environment.kind,
    apiUrl,
    fileDigest: digest,
    prune,
    byName,
  });
  const names = new Map(there?.options.map(({ _id, name }) => [_id, name]));
  const groupName = (id: string): string => names.get(id) ?? id;
  const exitCode = exitCodeOf(made);
  const shown = { plan: made, file, digest: document.digest, groupName };
  if (asked.form === "json") printJson(planJson(document, groupName, exitCode));
  else if (asked.form === "markdown") process.stdout.write(planMarkdown(shown));
  else printLines(planLines(shown));
  if (asked.out !== undefined) await writeOver([{ path: asked.out, pieces: [`${JSON.stringify(document)}\n`] }]);
  return exitCode;
}

function exitCodeOf(plan: StatePlan): PlanExitCode {
  if (!isApplicable(plan)) return 1;
  return itemCount(plan) === 0 ? 0 : 2;
}

/** A file that cannot be read has no plan, only what is wrong with it. */
function printProblems(problems: readonly Problem[], { file, form }: PlanLine): 1 {
  if (form === "json") {
    const nothing = { targeting: {}, changes: [], drift: [], conflicts: [], limits: [] };
    printJson({
      version: 1,
      ...nothing,
      problems: problems.map((one) => ({ ...one, lines: one.lines && [...one.lines] })),
      exitCode: 1,
    });
  } else printLines(problems.map((problem) => ({ text: problemLine(file, problem), tone: "stops" })));
  return 1;
}

function printJson(value: PlanJson): void {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
}
