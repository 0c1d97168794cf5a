import type { Base } from "../../plans/base/base.ts";
import type { Problem } from "../../plans/file/desired.ts";
import type { ReadDesired } from "../../plans/file/read-desired.ts";
import { type MadePlan, makePlan } from "../../plans/make-plan.ts";
import { problemLine } from "../../render/plans/words.ts";
import { type CommandLine, optionOf } from "../../settings/command-line.ts";
import { path, text } from "../../settings/forms.ts";
import { isOn } from "../settings-input.ts";
import { baseFor, readDesiredFile } from "./files.ts";
import { onlyWord, type PlanContext, printLines, readShowing } from "./project.ts";

/** A file that is to be planned. */
export type AskedFile = ReturnType<typeof askedFile>;

/** The file that a command line names, `what` in words, and how it is planned. */
export function askedFile(line: CommandLine, what: string) {
  return {
    file: onlyWord(line, what),
    targeting: optionOf(line, "targeting", text),
    /** The path of the base, where it is not the one beside the file. */
    base: optionOf(line, "base", path),
    prune: isOn(line, "prune"),
    byName: isOn(line, "by-name"),
    /** Everything is read anew. */
    fresh: isOn(line, "fresh"),
  } as const;
}

/** The plan of a file, what the file means, and the base that it went by. */
export interface PlannedFile extends MadePlan {
  readonly read: ReadDesired;
  readonly base: Base | undefined;
}

/** Plans a file onto what is there; gives its problems instead where it cannot be read. Throws what planning throws. */
export async function planFile(
  asked: AskedFile,
  context: PlanContext,
): Promise<PlannedFile | { readonly problems: readonly Problem[] }> {
  const { file, prune, byName, targeting } = asked;
  const read = await readDesiredFile(file);
  const { desired, problems, digest } = read;
  if (problems.length > 0) return { problems };
  // By names, the base beside the file is that of another targeting.
  const base = byName && asked.base === undefined ? undefined : await baseFor(file, asked.base);
  const request = { desired, fileDigest: digest, base, targeting, prune, byName };
  const scene = {
    ...{ ...context, thresholds: context },
    read: (targetingId: string) => readShowing(context, targetingId, asked.fresh),
  };
  return { ...(await makePlan(request, scene)), read, base };
}

/** Prints the problems of a file, each with its place. */
export function printFileProblems(file: string, problems: readonly Problem[]): void {
  printLines(problems.map((problem) => ({ text: problemLine(file, problem), tone: "stops" })));
}
