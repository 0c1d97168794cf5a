import { hash } from "node:crypto";
import { realpath } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { Readable } from "node:stream";
import { planLines } from "../answers/plan-words.ts";
import type { BaseFile } from "../changes/call.ts";
import type { ChangeRun } from "../changes/change-run.ts";
import { basePathOf } from "../plans/base.ts";
import { formatToRead } from "../plans/file/read-desired.ts";
import { withIds } from "../plans/file/write-ids.ts";
import { type AppliedObjects, idsOfRows } from "../plans/look-again.ts";
import { isApplicable, itemCount } from "../plans/plan.ts";
import { groupNamesOf, type PlanDocument, readPlan } from "../plans/plan-document.ts";
import { FileError } from "../platform/files.ts";
import { amount } from "../platform/text.ts";
import { isOn } from "../runtime/settings-input.ts";
import type { CommandLine } from "../settings/command-line.ts";
import { SettingsError } from "../settings/value-types.ts";
import { isUlid } from "../spec/names-and-contexts.ts";
import { plannedRun } from "../tools/apply-plan.ts";
import { ToolError } from "../tools/define-tool.ts";
import { checkApplicable, documentOf } from "../tools/kept-plan.ts";
import { reportedRun } from "../tools/run-reports.ts";
import { dryRunToApply } from "../tools/write/dry-runs.ts";
import {
  type AskedFile,
  askedFile,
  bytesAtPath,
  isThere,
  type PlannedFile,
  planFile,
  printFileProblems,
  printReading,
  writeOver,
} from "./plan-files.ts";
import { type PlanContext, printLines, printNote, withProject } from "./project.ts";
import { carriedOut, forPerson, isApproved, isUnfinished, printReport, rested, storePlan } from "./runs.ts";

interface ApplyLine extends AskedFile {
  readonly yes: boolean;
  readonly writeIds: boolean;
}

/** Applies a file, a stored plan or a planned run, or continues a run. Exit code 0: nothing is left to do. */
export async function runApply(line: CommandLine): Promise<number> {
  const asked: ApplyLine = {
    ...askedFile(line, "the file of a desired state or of a plan, or the ID of a planned run,"),
    yes: isOn(line, "yes"),
    writeIds: isOn(line, "write-ids"),
  };
  return withProject(line, "apply", async (context) => {
    if (context.readOnly) {
      throw new ToolError(
        "nothing can be changed, because TARGETING_MCP_READ_ONLY is set",
        "To see what would change, run targeting-mcp plan.",
      );
    }
    const runId = asked.file.trim().toUpperCase();
    if (isUlid(runId) && !(await isThere(asked.file))) return applyRun(runId, refusePlanning(asked), context);
    const plan = await planIn(asked.file);
    return plan === undefined ? applyFile(asked, context) : applyPlan(plan, refusePlanning(asked), context);
  });
}

/** Throws if the command line has flags that are only for planning a file. Otherwise returns it unchanged. */
function refusePlanning(asked: ApplyLine): ApplyLine {
  const { targeting, prune, byName, writeIds, sheet } = asked;
  const onlyForFiles = { targeting, prune, "by-name": byName, "write-ids": writeIds, ...sheet };
  const [flag] = Object.entries(onlyForFiles).find(([, value]) => value !== undefined && value !== false) ?? [];
  if (flag === undefined) return asked;
  throw new SettingsError(`--${flag} works only with the file of a desired state, not with a plan or the ID of a run`);
}

const PLAN_BEGINS = '{"kind":"targeting-mcp-plan"';

async function planIn(file: string): Promise<PlanDocument | undefined> {
  const bytes = await bytesAtPath(file);
  const begin = bytes.subarray(0, PLAN_BEGINS.length).toString("utf8");
  return begin === PLAN_BEGINS ? readPlan(bytes.toString("utf8"), file) : undefined;
}

async function applyFile(asked: ApplyLine, context: PlanContext): Promise<number> {
  const { file } = asked;
  const planned = await planFile(asked, context);
  if ("problems" in planned) {
    printFileProblems(file, planned.problems);
    return 1;
  }
  const { document, read } = planned;
  printReading(read);
  print(document, file);
  if (!isApplicable(document.plan)) return 1;
  if (itemCount(document.plan) === 0) return !asked.writeIds || (await writeIds(asked, planned, undefined)) ? 0 : 1;
  if (!(await isApproved("Apply this?", asked.yes))) return 1;
  const header = await storePlan(planned, "plan_targeting", context, {
    base: planned.base && (await baseFileOf(file)),
    sheet: read.file && { file: read.file, bytes: () => Readable.from([read.bytes]) },
  });
  const run = await carriedOut(header, context);
  const exitCode = await printReport(run, context);
  return !asked.writeIds || (await writeIds(asked, planned, run.state)) ? exitCode : 1;
}

async function applyPlan(document: PlanDocument, { file, yes }: ApplyLine, context: PlanContext): Promise<number> {
  checkOrigin(document, context);
  print(document, file);
  checkApplicable(document, context);
  if (itemCount(document.plan) === 0) return 0;
  if (!(await isApproved("Apply this?", yes))) return 1;
  const base = await baseFileOfPlan(file, document);
  const header = await storePlan({ document, there: undefined }, "plan_targeting", context, { base });
  return printReport(await carriedOut(header, context), context);
}

async function applyRun(runId: string, { yes }: Pick<ApplyLine, "yes">, context: PlanContext): Promise<number> {
  const run = await plannedRun(runId, context);
  const { header } = run;
  if (header.environment !== context.environment) throw otherService();
  if (header.dryRun && run.status() === "planned") return applyDryRun(run, yes, context);
  if (run.status() === "planned") {
    const document = await documentOf(runId, context);
    checkOrigin(document, context);
    print(document, runId);
    checkApplicable(document, context);
    if (itemCount(document.plan) > 0 && !(await isApproved("Apply this?", yes))) return 1;
    return printReport(await carriedOut(header, context), context);
  }
  if (!isUnfinished(run)) {
    await rested(run);
    return printReport(run, context);
  }
  const { pending, notApplied, unknown } = run.state.counts();
  const open = amount(pending + notApplied + unknown, "item");
  if (!(await isApproved(`Continue this run? ${open} may not be done yet.`, yes))) return 1;
  await context.runs.resume(runId);
  const resumed = await plannedRun(runId, context);
  await rested(resumed);
  return printReport(resumed, context);
}

/** Shows the effect of a dry run, asks, and makes the changes. Sends nothing if the effect has changed since. */
async function applyDryRun(run: ChangeRun, yes: boolean, context: PlanContext): Promise<number> {
  const { header } = run;
  if (header.sandbox !== undefined && header.sandbox !== context.apiUrl) throw otherService();
  const now = await dryRunToApply(run, { isDry: false }, context);
  const { text } = "answer" in now ? now.answer : await reportedRun(run, context);
  process.stdout.write(`${forPerson(text)}\n`);
  if ("answer" in now || !(await isApproved("Apply this?", yes))) return 1;
  return printReport(await carriedOut(header, context), context);
}

function checkOrigin({ environment, apiUrl }: PlanDocument, context: PlanContext): void {
  if (environment !== context.environment || apiUrl !== context.apiUrl) throw otherService();
}

function otherService(): FileError {
  return new FileError(
    "the plan is for another environment or address than the settings; nothing was sent",
    "Use the settings with which it was planned (TARGETING_API_URL, TARGETING_API_KEY), or plan the file again.",
  );
}

function print(document: PlanDocument, file: string): void {
  const { plan, digest } = document;
  printLines(planLines({ plan, file, digest, groupName: groupNamesOf(document) }));
}

/** Returns the base in the same folder as a file, for the run that will update this base. Throws if there is none. */
async function baseFileOf(file: string): Promise<BaseFile> {
  const path = await realpath(basePathOf(file));
  return { root: dirname(path), steps: [basename(path)] };
}

/** Returns the base of a plan's file, which the run will update. Undefined if there is no such file or base. */
async function baseFileOfPlan(planPath: string, { file }: PlanDocument): Promise<BaseFile | undefined> {
  if (file === undefined) return undefined;
  const path = resolve(dirname(planPath), file);
  if (await isThere(basePathOf(path))) return baseFileOf(path);
  printNote(`${basePathOf(file)} is not in the folder of the plan, so it is not updated.`);
  return undefined;
}

/** Writes `_id`s into the rows of a file that have none. Returns false if the file has changed since it was read. */
async function writeIds(
  { file, sheet }: Pick<AskedFile, "file" | "sheet">,
  { read: { desired, digest }, document: { plan } }: PlannedFile,
  objects: AppliedObjects | undefined,
): Promise<boolean> {
  const ids = idsOfRows(desired, plan, objects);
  if (ids.size === 0) return true;
  const bytes = await bytesAtPath(file);
  if (hash("sha256", bytes) !== digest) {
    printNote(`${file} has changed since it was read, so no _id was written. Run the command again with --write-ids.`);
    return false;
  }
  const written = await withIds(bytes, { format: formatToRead(file), path: file, sheet }, ids);
  await writeOver([{ path: file, pieces: [written] }]);
  printNote(`${file}: ${amount(ids.size, "_id")} written; nothing else in the file has changed`);
  return true;
}
