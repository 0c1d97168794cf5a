import * as z from "zod";
import { unmarked } from "../answers/fence.ts";
import { runsText } from "../answers/run-headline.ts";
import { needsConfirmation } from "../changes/change-kinds.ts";
import type { ChangeRun } from "../changes/change-run.ts";
import type { ChangeHeader, StoredPlan } from "../changes/changes.ts";
import type { MadePlan } from "../plans/plan-document.ts";
import { asPlanned } from "../plans/planned-undo.ts";
import type { RunHeader } from "../runs/store.ts";
import { isOn } from "../runtime/settings-input.ts";
import { stopSignal } from "../runtime/terminal.ts";
import { type CommandLine, optionOf } from "../settings/command-line.ts";
import { SettingsError, text } from "../settings/value-types.ts";
import { changesOf } from "../tools/apis.ts";
import { plannedRun } from "../tools/apply-plan.ts";
import type { SaveArguments } from "../tools/arguments.ts";
import { ToolError } from "../tools/define-tool.ts";
import { recentRuns, showRunOrList } from "../tools/get-run.ts";
import { savedResultsAt } from "../tools/result-sheet.ts";
import { ownRun, reportedRun } from "../tools/run-reports.ts";
import { startUndoPlan } from "../tools/undo-run.ts";
import { type Decision, startDecided } from "../tools/write/decide.ts";
import { localUserName } from "../web/browser.ts";
import {
  confirmInTerminal,
  onlyWord,
  type PlanContext,
  printNote,
  reportFailure,
  withProject,
  withRuns,
} from "./project.ts";

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

/** Shows a run with the environment in which it was made, even if another one is configured now. */
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

const plannedUndo = z.looseObject({ runId: z.string().optional() });

/** Shows what an undo restores, asks the person, and executes it. Exit code 0: nothing is left to do. */
export async function runUndo(line: CommandLine): Promise<number> {
  const runId = onlyWord(line, "the ID of a run").trim().toUpperCase();
  const yes = isOn(line, "yes");
  return withProject(line, "undo", async (context) => {
    const { header } = (await context.runs.find(runId)) ?? {};
    if (header !== undefined && isElsewhere(header, context)) {
      const made = header.environment === "live" ? "live" : "in a sandbox";
      throw new ToolError(
        `run ${runId} was made ${made}, but the current settings are for another environment`,
        placeToName(header),
      );
    }
    if (context.readOnly) {
      throw new ToolError(
        "nothing can be changed, because TARGETING_MCP_READ_ONLY is set",
        "To see what the run did: targeting-mcp runs RUN.",
      );
    }
    const { text, structured } = await startUndoPlan(runId, context);
    process.stdout.write(`${forPerson(text)}\n`);
    const { runId: planId } = plannedUndo.parse(structured);
    if (planId === undefined) return 0;
    if (!(await isApproved("Undo this?", yes))) return 1;
    const planned = await plannedRun(planId, context);
    return printReport(await carriedOut(planned.header, context), context);
  }).catch(async (thrown: unknown) => {
    if (!(thrown instanceof SettingsError)) throw thrown;
    const header = await withRuns(line, async ({ runs }) => (await runs.find(runId))?.header);
    throw header === undefined ? thrown : new SettingsError(placeToName(header), thrown.variable);
  });
}

/** Returns whether a run was made in another environment or sandbox. Keys may be replaced, so they may differ. */
function isElsewhere({ environment, sandbox }: RunHeader, context: PlanContext): boolean {
  return environment !== context.environment || (sandbox !== undefined && sandbox !== context.apiUrl);
}

function placeToName({ runId, environment, sandbox }: RunHeader): string {
  if (environment === "live") {
    return `run ${runId} was made with the live service: set TARGETING_API_URL and TARGETING_API_KEY as they were then`;
  }
  if (sandbox === "embedded") {
    return (
      `run ${runId} was made in a sandbox that is part of its server, and ends with it. Only that ` +
      "server can undo the run"
    );
  }
  const address = sandbox === undefined ? "to the address of that sandbox" : `=${sandbox}`;
  return (
    `run ${runId} was made in a sandbox: set TARGETING_MCP_MODE=sandbox and ` +
    `TARGETING_MCP_SANDBOX_URL${sandbox === undefined ? " " : ""}${address}`
  );
}

/** Returns whether the person approves. If `yes`, does not ask. Returns false if there is no terminal to ask in. */
export async function isApproved(question: string, yes: boolean): Promise<boolean> {
  const without = "Nothing was sent: there is no terminal for the question. To apply without a question, use --yes.";
  return yes || confirmInTerminal(question, "Nothing was sent.", without);
}

/** Stores a plan as a run. `sheet`: where the plan is from. `base`: the base file to update when the run ends. */
export async function storePlan(
  { document, there }: MadePlan,
  plannedBy: "plan_targeting" | "undo_run",
  context: PlanContext,
  { base, sheet }: Pick<StoredPlan, "base" | "sheet"> = {},
): Promise<ChangeHeader> {
  const { caller } = context;
  const text = JSON.stringify(document);
  const made = asPlanned(document.plan, there);
  return (await changesOf(context).keepPlan(made, { text, plannedBy, base, sheet, caller })).header;
}

/** Starts an approved run and waits until it stops. The run fails if anything has changed on which its plan depends. */
export async function carriedOut(header: ChangeHeader, context: PlanContext): Promise<ChangeRun> {
  const changes = changesOf(context);
  const bytes = context.runs.part(header.runId, "input");
  await changes.runs.checkExecutable(header);
  const plan = await changes.plan(header.call, context.signal, bytes);
  const person = { who: localUserName(process.env), caller: header.caller };
  const decision: Decision = { answer: "approved", channel: "terminal", person, saw: () => true };
  const run = await startDecided(header, plan, needsConfirmation(plan) ? decision : undefined, context);
  if (run === undefined) throw new ToolError("the planned run is no longer stored", "Plan the change again.");
  await rested(run);
  return run;
}

const OBJECTS_PER_LINE = 1000;

/** Waits until a run stops, and shows the progress. A signal stops the run before its next request. */
export async function rested(run: Pick<ChangeRun, "rest" | "watch" | "stop">): Promise<void> {
  const isTerminal = process.stderr.isTTY;
  let reported = 0;
  const unwatch = run.watch(({ items, pending }) => {
    const done = items - pending;
    if (isTerminal) process.stderr.write(`\r${done} of ${items} done`);
    else if (done - reported >= OBJECTS_PER_LINE) {
      reported = done;
      printNote(`${done} of ${items} done`);
    }
  });
  void stopSignal().then(() => run.stop("interrupted"));
  await run.rest;
  unwatch();
  if (isTerminal) process.stderr.write("\r\u001b[K");
}

export function isUnfinished(run: ChangeRun): boolean {
  const status = run.status();
  const { pending, notApplied, unknown } = run.state.counts();
  if (status !== "interrupted" && status !== "cancelled") return status !== "running" && unknown > 0;
  return pending + notApplied + unknown > 0;
}

export function forPerson(text: string): string {
  return unmarked(text)
    .split("\n")
    .filter((line) => !line.startsWith("Next: ") || !/\b[a-z]+_[a-z_]+\b/.test(line.replace(/_id: \S+/, "")))
    .join("\n");
}

export async function printReport(run: ChangeRun, context: PlanContext): Promise<0 | 1> {
  const { text } = await reportedRun(run, context, [], { withTotals: true, reader: "terminal" });
  process.stdout.write(`${forPerson(text)}\n`);
  if (isUnfinished(run)) printNote(`To continue this run: targeting-mcp apply ${run.header.runId}`);
  return run.status() === "succeeded" ? 0 : 1;
}
