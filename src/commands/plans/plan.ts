import { requestsOf } from "../../changes/plan/desired/planned-requests.ts";
import type { Problem } from "../../plans/file/desired.ts";
import { asPlanned } from "../../plans/look-again.ts";
import { makePlan } from "../../plans/make-plan.ts";
import { exitCodeOf, groupNamesOf, type PlanJson, planJson } from "../../plans/plan-document.ts";
import { planMarkdown } from "../../render/plans/plan-markdown.ts";
import { planLines } from "../../render/plans/plan-text.ts";
import { problemLine } from "../../render/plans/words.ts";
import { type CommandLine, optionOf } from "../../settings/command-line.ts";
import { SettingsError } from "../../settings/error.ts";
import { path, text, toggle } from "../../settings/forms.ts";
import { baseFor, readDesiredFile } from "./files.ts";
import { onlyWord, type PlanProject, printLines, sceneOf, withProject, writeOver } from "./project.ts";

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
  const { document, there } = await makePlan(
    { desired, fileDigest: digest, base, targeting: asked.targeting, prune, byName },
    sceneOf(project),
  );
  const made = document.plan;
  const exitCode = exitCodeOf(made);
  const shown = { plan: made, file, digest: document.digest, groupName: groupNamesOf(document) };
  if (asked.form === "json") printJson(planJson(document, requestsOf(asPlanned(made, there))));
  else if (asked.form === "markdown") process.stdout.write(planMarkdown(shown));
  else printLines(planLines(shown));
  if (asked.out !== undefined) await writeOver([{ path: asked.out, pieces: [`${JSON.stringify(document)}\n`] }]);
  return exitCode;
}

/** A file that cannot be read has no plan, only what is wrong with it. */
function printProblems(problems: readonly Problem[], { file, form }: PlanLine): 1 {
  if (form === "json") {
    const nothing = { targeting: {}, changes: [], drift: [], conflicts: [], limits: [], requests: [] };
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
