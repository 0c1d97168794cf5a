import { driftLines, problemLine } from "../answers/plan-words.ts";
import { planOf } from "../plans/diff/diff.ts";
import { driftFromFile, driftSince } from "../plans/diff/match.ts";
import { whichTargeting } from "../plans/read-targeting.ts";
import type { CommandLine } from "../settings/command-line.ts";
import { type AskedFile, askedFile, baseFor, printFileProblems, printReading, readDesiredFile } from "./plan-files.ts";
import { type PlanContext, printLines, readShowing, tell, withProject } from "./project.ts";

/** Shows the differences from a file's base, or from the file if it has none. Returns the exit code: 0, 2 or 1. */
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
  const targetingId = await whichTargeting({ given, file: desired.targeting, base, byName: false, memory });
  if (targetingId === undefined) {
    tell("The targeting of the file was never seen: nothing can have drifted.");
    return 1;
  }
  const there = await readShowing(context, targetingId, fresh);
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
