import { dirname, relative, resolve, sep } from "node:path";
import { driftLines, planLines, planMarkdown, problemLine } from "../answers/plan-words.ts";
import { requestsOf } from "../changes/plan/plan-desired.ts";
import { planOf } from "../plans/diff.ts";
import type { Problem } from "../plans/file/desired.ts";
import { driftFromFile, driftSince } from "../plans/match.ts";
import { exitCodeOf, groupNamesOf, type PlanJson, planJson } from "../plans/plan-document.ts";
import { asPlanned } from "../plans/planned-undo.ts";
import { checkSeenName, whichTargeting } from "../plans/read-targeting.ts";
import { isOn } from "../runtime/settings-input.ts";
import { type CommandLine, optionOf } from "../settings/command-line.ts";
import { path, SettingsError } from "../settings/value-types.ts";
import {
  type AskedFile,
  askedFile,
  baseFor,
  planFile,
  printFileProblems,
  printReading,
  readDesiredFile,
  writeOver,
} from "./plan-files.ts";
import {
  forCommand,
  type PlanContext,
  printContent,
  printLines,
  printNote,
  readShowing,
  withProject,
} from "./project.ts";

interface PlanLine extends AskedFile {
  readonly form: "text" | "json" | "markdown";
  readonly out: string | undefined;
}

/** Shows what applying a file would change. Exit code: 0: nothing, 2: something, 1: an error or conflict. */
export async function runPlan(line: CommandLine): Promise<number> {
  const [asJson, asMarkdown] = [isOn(line, "json"), isOn(line, "markdown")];
  if (asJson && asMarkdown) throw new SettingsError("--json and --markdown cannot be combined");
  const asked: PlanLine = {
    ...askedFile(line, "the file of a desired state"),
    form: asJson ? "json" : asMarkdown ? "markdown" : "text",
    out: optionOf(line, "out", path),
  };
  return withProject(line, "plan", (context) => plan(asked, context));
}

async function plan(asked: PlanLine, context: PlanContext): Promise<number> {
  const { file } = asked;
  const planned = await planFile(asked, context);
  if ("problems" in planned) return printProblems(planned.problems, asked);
  const { document, there } = planned;
  const made = document.plan;
  const exitCode = exitCodeOf(made);
  const shown = { plan: made, file, digest: document.digest, groupName: groupNamesOf(document) };
  if (asked.form === "json") printJson(planJson(document, requestsOf(asPlanned(made, there))));
  else if (asked.form === "markdown") process.stdout.write(forCommand(planMarkdown(shown)));
  else {
    printReading(planned.read);
    printLines(planLines(shown));
  }
  if (asked.out !== undefined) {
    // A plan names its file, so that applying it updates the base beside the file, but not a base from --base.
    const isBeside = planned.base !== undefined && asked.base === undefined;
    const kept = isBeside ? { ...document, file: pathBetween(asked.out, file) } : document;
    await writeOver([{ path: asked.out, pieces: [`${JSON.stringify(kept)}\n`] }]);
  }
  return exitCode;
}

function pathBetween(from: string, to: string): string {
  return relative(dirname(resolve(from)), resolve(to))
    .split(sep)
    .join("/");
}

function printProblems(problems: readonly Problem[], { file, form }: PlanLine): 1 {
  if (form === "json") {
    const nothing = { targeting: {}, changes: [], drift: [], conflicts: [], limits: [], requests: [] };
    printJson({
      version: 1,
      ...nothing,
      problems: problems.map((one) => ({ ...one, lines: one.lines && [...one.lines] })),
      exitCode: 1,
    });
  } else printFileProblems(file, problems);
  return 1;
}

function printJson(value: PlanJson): void {
  const problems = value.problems.map((problem) => ({ ...problem, remedy: forCommand(problem.remedy) }));
  printContent(`${JSON.stringify({ ...value, problems }, null, 2)}\n`);
}

/** Compares the service with a file's base or, without one, with the file. Exit code: 0: equal, 2: not, 1: an error. */
export async function runDrift(line: CommandLine): Promise<number> {
  const asked = askedFile(line, "the file of a desired state");
  return withProject(line, "drift", (context) => drift(asked, context));
}

async function drift({ file, targeting: given, fresh, sheet }: AskedFile, context: PlanContext): Promise<number> {
  const read = await readDesiredFile(file, sheet);
  const { desired, problems } = read;
  if (problems.length > 0) {
    printFileProblems(file, problems);
    return 1;
  }
  printReading(read);
  const base = await baseFor(file, undefined);
  const { memory } = context;
  const hints = { given, file: desired.targeting, base, byName: false };
  const targetingId = await whichTargeting({ ...hints, memory });
  if (targetingId === undefined) {
    printNote(
      "There is nothing to compare: this machine has never created or read a targeting with the name in the file. If the " +
        "targeting exists, use --targeting with its ID.",
    );
    return 1;
  }
  const there = await readShowing(context, targetingId, fresh);
  checkSeenName(hints, there);
  if (base !== undefined) {
    const found = driftSince(base, there);
    printLines(driftLines(there.targeting, found, `the export of ${base.exportedAt}`).map(changed));
    return found.length === 0 ? 0 : 2;
  }
  const thresholds = { maxChangePercent: 100, maxDeletes: 0 };
  const plan = planOf({ desired, there, prune: false, byName: false, thresholds });
  const { differences, problems: open } = driftFromFile(plan, desired, there);
  const lines = driftLines(there.targeting, differences, "the file").map(changed);
  printLines([...lines, ...open.map((problem) => ({ text: problemLine(file, problem), tone: "stops" as const }))]);
  if (open.length > 0) return 1;
  return differences.length === 0 ? 0 : 2;
}

function changed(text: string) {
  return { text, tone: "plain" } as const;
}
