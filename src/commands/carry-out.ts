import { unmarked } from "../answers/fence.ts";
import { needsConfirmation } from "../changes/change-kinds.ts";
import type { ChangeRun } from "../changes/change-run.ts";
import type { ChangeHeader, StoredPlan } from "../changes/changes.ts";
import type { MadePlan } from "../plans/plan-document.ts";
import { asPlanned } from "../plans/planned-undo.ts";
import { stopSignal } from "../runtime/terminal.ts";
import { changesOf } from "../tools/apis.ts";
import { ToolError } from "../tools/define-tool.ts";
import { reportedRun } from "../tools/run-reports.ts";
import { type Decision, startDecided } from "../tools/write/decide.ts";
import { localUserName } from "../web/browser.ts";
import { confirmInTerminal, type PlanContext, printNote } from "./project.ts";

/** Asks the person. Without a terminal for the question, returns false. */
export async function isApproved(question: string, yes: boolean): Promise<boolean> {
  const without = "Nothing was sent: there is no terminal for the question. To apply without a question, use --yes.";
  return yes || confirmInTerminal(question, "Nothing was sent.", without);
}

/** Stores a plan as a run. `sheet` is the sheet from which the plan was made. The run updates `base` when it ends. */
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

/** Starts an approved run and waits until it stops. The run fails if anything that the plan depends on has changed. */
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

/** Without a terminal, each line of progress counts this many objects. */
const OBJECTS_PER_LINE = 1000;

/** Waits until a run stops, and shows the progress. After a signal, the run stops before its next request. */
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

/** Removes markers for agents and next steps that call tools from a report. */
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
