import { planOf } from "../../plans/diff/diff.ts";
import { driftFromFile, driftSince } from "../../plans/diff/drift.ts";
import { whichTargeting } from "../../plans/which-targeting.ts";
import { driftLines } from "../../render/plans/drift-text.ts";
import { problemLine } from "../../render/plans/words.ts";
import { type CommandLine, optionOf } from "../../settings/command-line.ts";
import { text, toggle } from "../../settings/forms.ts";
import { baseFor, readDesiredFile } from "./files.ts";
import { onlyWord, type PlanProject, printLines, readShowing, tell, withProject } from "./project.ts";

/** Shows what differs by now from a file's base, or from the file where it has none. Gives the exit code: 0, 2 or 1. */
export async function runDrift(line: CommandLine): Promise<number> {
  const file = onlyWord(line, "the file of a desired state");
  const targeting = optionOf(line, "targeting", text);
  const fresh = optionOf(line, "fresh", toggle) ?? false;
  return withProject(line, "drift", (project) => drift(file, { given: targeting, fresh }, project));
}

async function drift(
  file: string,
  { given, fresh }: { readonly given: string | undefined; readonly fresh: boolean },
  project: PlanProject,
): Promise<number> {
  const { desired, problems } = await readDesiredFile(file);
  if (problems.length > 0) {
    printLines(problems.map((problem) => ({ text: problemLine(file, problem), tone: "stops" })));
    return 1;
  }
  const base = await baseFor(file, undefined);
  const { memory } = project;
  const targetingId = await whichTargeting({ given, file: desired.targeting, base, byName: false, memory });
  if (targetingId === undefined) {
    tell("The targeting of the file was never seen: nothing can have drifted.");
    return 1;
  }
  const there = await readShowing(project, targetingId, fresh);
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
