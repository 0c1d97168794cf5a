import { createHash } from "node:crypto";
import { changedEffect, type Effect, effectOfCall, effectText } from "../../answers/approvals.ts";
import { many } from "../../answers/message-words.ts";
import { requestFailure } from "../../answers/request-messages.ts";
import { renderReport } from "../../answers/run-report.ts";
import { PREVIEW_ROWS, type Preview, type PreviewRow, previewNotes } from "../../answers/sheets.ts";
import { isApiError } from "../../api/errors.ts";
import type { WriteCall } from "../../changes/call.ts";
import { fileOf, lossDigest, needsConfirmation } from "../../changes/change-kinds.ts";
import type { ChangeRun } from "../../changes/change-run.ts";
import { RunState } from "../../changes/change-state.ts";
import { isGoing, type Plan, type Planning } from "../../changes/plan/plan.ts";
import { plannedRequests, weighed } from "../../changes/plan/requests.ts";
import { journalLine, type PlannedRequest } from "../../changes/rows/entries.ts";
import { type ContextRow, contextRows, type OptionRow, optionRows } from "../../changes/rows/input-rows.ts";
import type { InputFile } from "../../files/input-file.ts";
import { type FileRow, type RowShape, rowsOf } from "../../files/rows.ts";
import { FileError } from "../../platform/files.ts";
import type { ByteSource } from "../../platform/held-folder.ts";
import { changesNothing, type KnownChange } from "../../runs/outcome.ts";
import { countsOf, type ObjectResult, objectResult } from "../../runs/report.ts";
import { StoreUnavailableError } from "../../runs/store.ts";
import { changesOf, DeadlineExceeded, undefinedIfLate, withinWait } from "../apis.ts";
import { type ToolAnswer, type ToolContext, ToolError } from "../define-tool.ts";
import { withCurrentHolders } from "../option-search.ts";
import { reportRun } from "../run-reports.ts";
import { applySteps, extendedOf, type Given, planInTime, unstartedReport } from "./within-call.ts";

interface Shown {
  readonly plan: Plan;
  /** Removes the predicted failures from `plan` and returns it. When it is applied, the service decides what fails. */
  readonly withoutPredictions: () => Plan;
  readonly notes: readonly string[];
}

/** Reports what a call would do and which items would fail. Stores the plan, so that `apply_plan` can apply it. */
export async function dryRun(given: Given, context: ToolContext): Promise<ToolAnswer> {
  const { call, bytes } = given;
  const changes = changesOf(context);
  const repeats = await changes.lastRun(call, context.caller);
  const shown = await planToShow(given, repeats, context);
  if ("stop" in shown) return reportRun(await goOn(given, shown, context), context);
  const { plan } = shown;
  // The first rows are omitted if the call must be answered before they are found.
  const notes = [...((await undefinedIfLate(context, previewOf(call, bytes, plan))) ?? []), ...shown.notes];
  try {
    const { runId } = await changes.keep(call, context.caller, bytes, { ...context.requested, dryRun: true });
    await propose(runId, plan, context);
    return answerOf(given, plan, { runId, notes }, context);
  } catch (thrown) {
    if (!(thrown instanceof StoreUnavailableError)) throw thrown;
    const note = `the plan was not stored, so apply_plan cannot apply it: ${thrown.message}`;
    return answerOf(given, plan, { notes: [...notes, note] }, context);
  }
}

/**
 * Plans a dry run again to apply it. If its effect has changed, stores the new plan and returns an answer. Also returns
 * an answer if the effect could not be checked, or if the call only checks it.
 */
export async function dryRunToApply(
  { header, state }: ChangeRun,
  { isDry }: { readonly isDry: boolean },
  context: ToolContext,
): Promise<{ readonly plan: Plan } | { readonly going: Planning } | { readonly answer: ToolAnswer }> {
  const { runId, call } = header;
  const given = { call: await withCurrentHolders(call, context), bytes: context.runs.part(runId, "input") };
  const shown = await planToShow(given, header.repeats, context);
  if ("stop" in shown) return { going: checkWhenPlanned(shown, { header, state }, context) };
  const { plan, notes } = shown;
  const isSame = state.facts.shown === planDigest(plan);
  if (isSame && !isDry) return { plan: asShown(shown.withoutPredictions(), state) };
  if (isSame)
    return {
      answer: answerOf(given, plan, { runId, notes: [...notes, "the effect is still as it was shown"] }, context),
    };
  if (notes.length > 0) {
    const unchecked = "it could not be checked whether this still does what was shown, so nothing was sent";
    return { answer: answerOf(given, plan, { runId, notes: [unchecked, ...notes] }, context) };
  }
  const note = `what this would do has changed since it was shown, so nothing was sent: ${changesSince(state, shown)}`;
  // A check must not end a request for approval, so the run keeps its plan. If it is approved, it is checked again.
  if (isDry && state.facts.waits !== undefined) {
    return { answer: answerOf(given, plan, { runId, notes: [note] }, context) };
  }
  await propose(runId, plan, context);
  return { answer: answerOf(given, plan, { runId, notes: [`${note}. The run holds the new plan`] }, context) };
}

/** Keeps the digest of the plan that the caller saw, so that the run can be applied again while it waits for approval. */
function asShown(plan: Plan, { facts: { shown } }: Pick<RunState, "facts">): Plan {
  plan.note({ ...(shown !== undefined && { shown }) });
  return plan;
}

/** Returns the planning, but it rejects with a FileError if the plan differs from the one that the caller saw. */
function checkWhenPlanned(
  { plan: making, stop }: Planning,
  { header, state: { facts } }: Pick<ChangeRun, "header" | "state">,
  context: ToolContext,
): Planning {
  const checked = async (): Promise<Plan> => {
    const plan = await making;
    const known = plan.settlements.length;
    plan.settlements.push(...(await changesOf(context).preflight(plan, header, context.stopping)));
    const isSame = facts.shown === planDigest(plan);
    plan.settlements.length = known;
    if (isSame) return asShown(plan, { facts });
    throw new FileError(
      "the effect of this dry run has changed since it was shown, so nothing was sent",
      "Make the call with dryRun again.",
    );
  };
  const plan = checked();
  // The run that is planned reports an error. Until this run is stored, nothing else handles it.
  plan.catch(() => undefined);
  return { plan, stop };
}

/** Goes on with planning a dry run in the background. Returns the run that will store the plan. */
async function goOn({ call, bytes }: Given, planning: Planning, context: ToolContext): Promise<ChangeRun> {
  const changes = changesOf(context);
  const about = { ...context.requested, dryRun: true, unplanned: true } as const;
  const header = await changes.keep(call, context.caller, bytes, about);
  return changes.prepare(header, planning, async () => undefined, {
    isForKeeping: true,
    async ask(_, plan) {
      plan.settlements.push(...(await changes.preflight(plan, header, context.stopping)));
      await propose(header.runId, plan, context);
    },
  });
}

async function planToShow(
  { call, bytes }: Given,
  repeats: string | undefined,
  context: ToolContext,
): Promise<Shown | Planning> {
  const changes = changesOf(context);
  const plan = await planInTime((signal) => changes.plan(call, signal, bytes), context);
  if (isGoing(plan)) return plan;
  const known = plan.settlements.length;
  const withoutPredictions = (): Plan => {
    plan.settlements.length = known;
    return plan;
  };
  try {
    const predicted = await withinWait(context, context.signal, (signal) =>
      changes.preflight(plan, { call, repeats }, signal),
    );
    plan.settlements.push(...predicted);
    return { plan, withoutPredictions, notes: [] };
  } catch (thrown) {
    if (!(isApiError(thrown) || thrown instanceof DeadlineExceeded)) throw thrown;
    const why = isApiError(thrown) ? requestFailure(thrown).message : thrown.message;
    const note = `names and limits were not checked against the current state: ${why}`;
    return { plan, withoutPredictions, notes: [note] };
  }
}

/** Stores the plan of a dry run with its digest. It can be applied if planning again gives the same digest. */
async function propose(runId: string, plan: Plan, context: ToolContext): Promise<void> {
  const changes = changesOf(context);
  const stored = await changes.runs.stored(runId);
  if (stored === undefined) throw new ToolError("the dry run is no longer stored", "Make the call with dryRun again.");
  const effect = effectOfPlan(plan)?.sentence;
  const state = new RunState(plan);
  const planned = { foreseen: requestsToSend(plan, state), ...extendedOf(stored.header.call, state) };
  plan.facts = { ...plan.facts, shown: planDigest(plan), ...planned, ...(effect !== undefined && { effect }) };
  plan.madeAt = context.clock.now();
  await changes.propose(stored.header, plan);
}

function effectOfPlan({ losses, objects, facts }: Plan): Effect | undefined {
  return losses.length === 0 ? undefined : effectOfCall(losses, objects, facts);
}

function answerOf(
  { call }: Given,
  plan: Plan,
  { runId, notes }: { readonly runId?: string; readonly notes: readonly string[] },
  context: ToolContext,
): ToolAnswer {
  const state = new RunState(plan);
  const effect = effectOfPlan(plan);
  const asksFirst = context.confirm !== "off" && needsConfirmation(plan);
  const asking = asksFirst ? "before this is applied, a person has to approve it: " : "";
  const asks = effect === undefined ? [] : [`${asking}${effectText(effect)}`];
  // If the plan removes something, its effect already lists the changes. Otherwise, the answer lists them.
  const changed = effect === undefined ? plannedChanges(state) : [];
  const same = changed.filter(changesNothing).length;
  return renderReport({
    ...unstartedReport(call, state, context),
    results: changed.slice(0, MAX_SHOWN),
    did: { created: 0, changed: changed.length - same, deleted: 0, same },
    temporaryNames: swaps(changed),
    ...(runId !== undefined && { runId, nextSteps: applySteps(runId, state) }),
    status: "planned",
    plan: requestsToSend(plan, state),
    notes: [...notes, ...asks],
  });
}

/** Returns the requests to show. None if no item would be applied, because nothing is sent then. */
function requestsToSend({ steps }: Plan, state: RunState): readonly PlannedRequest[] {
  return countsOf(state).pending === 0 ? [] : weighed(steps, plannedRequests(steps));
}

const MAX_SHOWN = 20;

function plannedChanges(state: RunState): readonly ObjectResult[] {
  const changed: ObjectResult[] = [];
  for (let object = 0; object < state.objects.length; object += 1) {
    const isChanged = state.objects.at(object)?.change !== undefined && state.standing(object) === "pending";
    if (isChanged) changed.push(objectResult(state, object));
  }
  return changed;
}

function swaps(changed: readonly ObjectResult[]): number {
  const next = new Map(
    changed.map(({ from, to }) => [nameIn(from), nameIn(to)] as const).filter(([from, to]) => from !== to),
  );
  let circles = 0;
  const passed = new Set<string | undefined>([undefined]);
  for (const start of next.keys()) {
    const path = new Set<string | undefined>();
    let name = start;
    while (!passed.has(name)) {
      passed.add(name);
      path.add(name);
      name = next.get(name);
    }
    if (path.has(name)) circles += 1;
  }
  return circles;
}

function nameIn(side: KnownChange["from"]): string | undefined {
  return typeof side === "string" ? side : side?.name;
}

/** Describes how a plan differs from the one that the caller saw: which items fail, what is lost, or what is sent. */
function changesSince(before: RunState, { plan, withoutPredictions }: Shown): string {
  const settlements = [...plan.settlements];
  // The plan of a run that waits for approval is stored without the predicted failures.
  const now = new RunState(before.facts.waits === undefined ? plan : withoutPredictions());
  // The answer shows these failures, so they are added again. There may be too many for the arguments of one call.
  for (const predicted of settlements.slice(plan.settlements.length)) plan.settlements.push(predicted);
  const items = Math.max(before.objects.length, now.objects.length);
  let failing = 0;
  let working = 0;
  let other = 0;
  for (let object = 0; object < items; object += 1) {
    const [was, is] = [before.standing(object), now.standing(object)];
    if (was !== "failed" && is === "failed") failing += 1;
    else if (was === "failed" && is !== "failed") working += 1;
    else if (JSON.stringify(before.reason(object)) !== JSON.stringify(now.reason(object))) other += 1;
  }
  const lost = effectOfPlan(plan);
  const parts = [
    ...(before.objects.length === now.objects.length
      ? []
      : [`${before.objects.length} items were planned and ${now.objects.length} are now`]),
    ...(failing > 0 ? [`${many(failing, "more item")} would fail`] : []),
    ...(working > 0 ? [`${many(working, "item")} that would have failed would be applied`] : []),
    ...(other > 0 ? [`${many(other, "item")} would fail for another reason`] : []),
    ...(lost !== undefined && before.facts.effect !== undefined && before.facts.effect !== lost.sentence
      ? [changedEffect(before.facts.effect, lost)]
      : []),
  ];
  if (parts.length > 0) return parts.join("; ");
  return lost?.sentence === before.facts.effect && lost !== undefined
    ? changedEffect(lost.sentence, lost)
    : "other requests would be sent";
}

/** Returns a digest of a plan. Plans that would make the same changes have the same digest. */
function planDigest(plan: Plan): string {
  const hash = createHash("sha256").update(lossDigest(plan.losses));
  for (const entry of plan.entries()) {
    if (entry.t === "facts") continue;
    for (const piece of journalLine(entry)) hash.update(piece);
    hash.update("\n");
  }
  return hash.digest("base64url");
}

async function previewOf(call: WriteCall, bytes: ByteSource | undefined, plan: Plan): Promise<readonly string[]> {
  const file = fileOf(call);
  if (file === undefined || bytes === undefined) return [];
  const left = plan.settlements.filter(({ outcome }) => outcome !== "alreadyDone" && outcome !== "succeeded");
  const objects = left.map(({ object }) => plan.objects.at(object));
  const indexes = new Set(objects.flatMap((one) => (one?.child === undefined ? [one?.index] : [])));
  if (call.tool === "bulk_add_options")
    return previewNotes(file, await firstRows(bytes, file, optionRows, addedWords, indexes));
  if (call.tool === "update_contexts")
    return previewNotes(file, await firstRows(bytes, file, contextRows, changeWords, indexes));
  return [];
}

/** Reads the first rows. `left`: the indexes of rows that would not be applied, and with them the others of their item. */
async function firstRows<Item>(
  bytes: ByteSource,
  file: InputFile,
  shape: RowShape<Item>,
  wordsOf: (item: Item) => Omit<PreviewRow, "line">,
  left: ReadonlySet<number | undefined>,
): Promise<Preview> {
  const rows: FileRow<Item>[] = [];
  let columns: Preview["columns"] = [];
  const read = rowsOf(bytes, file, shape, (header) => {
    columns = header.names.flatMap((column, at) =>
      column === "" ? [] : [{ heading: (header.cells[at] ?? "").trim(), column }],
    );
  });
  for await (const batch of read) {
    rows.push(...batch.slice(0, PREVIEW_ROWS));
    if (rows.length >= PREVIEW_ROWS) break;
  }
  // The first row of each item.
  const ofItem = new Map<string, number>();
  return {
    columns,
    rows: rows.map(({ line, index, content }) => {
      if ("reason" in content) return { line, reason: content.reason };
      const first = content.key === undefined ? index : (ofItem.get(content.key) ?? index);
      if (content.key !== undefined) ofItem.set(content.key, first);
      return { line, ...wordsOf(content.item), isLeft: left.has(index) || left.has(first) };
    }),
  };
}

function addedWords({ name, parentName, type, contexts = [] }: OptionRow): Omit<PreviewRow, "line"> {
  return { option: name, group: parentName, isGroup: type === "collection", contexts: [{ op: "add", ids: contexts }] };
}

function changeWords({ _id, name, calledName, add, remove, set }: ContextRow): Omit<PreviewRow, "line"> {
  const op = set !== undefined ? "set" : remove !== undefined ? "remove" : "add";
  return { option: name ?? calledName ?? _id, contexts: [{ op, ids: set ?? remove ?? add ?? [] }] };
}
