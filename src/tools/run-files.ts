import * as z from "zod";
import { messageFor } from "../answers/failures.ts";
import { fileOf } from "../changes/change-kinds.ts";
import { type ChangeRun, isChangeRun } from "../changes/change-run.ts";
import type { RunState } from "../changes/change-state.ts";
import { readPreviousValues } from "../changes/done.ts";
import type { Step } from "../changes/rows/entries.ts";
import { type EventRun, isEventRun } from "../events/run/event-runs.ts";
import { type InputFile, isSheet } from "../files/input-file.ts";
import { planJson } from "../plans/plan-document.ts";
import { parseJson } from "../platform/json.ts";
import type { Run } from "../runs/kind.ts";
import { objectResult } from "../runs/report.ts";
import { DamagedRunError, wholeLines } from "../runs/store.ts";
import type { ToolServices } from "./define-tool.ts";
import { documentOf, requestsFor } from "./kept-plan.ts";

export function resultLine({ state }: Pick<Run, "state">, object: number): string {
  const { reason, ...result } = objectResult(state, object);
  const { code: errorCode, statusCode, detail } = reason ?? {};
  const why = reason === undefined ? {} : { errorCode, statusCode, detail, ...messageFor(reason) };
  return `${JSON.stringify({ ...result, ...why })}\n`;
}

/**
 * Yields what a run removed, as JSON lines that `bulk_add_options` and `update_contexts` accept. For "not-removed",
 * yields what it was going to remove but did not (`removed: "no"`), or may not have removed (`"unknown"`).
 */
export async function* removedLines(
  run: Run,
  which: "removed" | "not-removed",
  { runs }: Pick<ToolServices, "runs">,
): AsyncGenerator<Uint8Array> {
  if (!isChangeRun(run)) return;
  const { runId } = run.header;
  const taken = await takenBy(run.state, runs.part(runId, "former")());
  const picked = (line: string): string => {
    const is = taken(line);
    if (which === "removed") return is === "removed" ? `${line}\n` : "";
    return is === "removed" ? "" : `{"removed":"${is === "unknown" ? is : "no"}",${line.slice(1)}\n`;
  };
  for await (const line of wholeLines(runs.part(runId, "removed")())) {
    const some = picked(line);
    if (some !== "") yield Buffer.from(some);
  }
}

export async function planTextOf(run: Run, services: Pick<ToolServices, "runs">): Promise<string | undefined> {
  if (!isChangeRun(run) || run.header.call.tool !== "apply_plan") return undefined;
  const document = await documentOf(run.header.runId, services);
  return JSON.stringify(planJson(document, requestsFor(document, run.state)));
}

type Taken = "removed" | "notRemoved" | "unknown";

const keptRow = z.object({ _id: z.string().optional(), name: z.string().optional() });

/** Returns a function that says whether a run has removed what a line holds. Lines are stored before the removal. */
async function takenBy(state: RunState, former: AsyncIterable<Uint8Array>): Promise<(line: string) => Taken> {
  const byId = takenById(state);
  const byName = new Map<string, Set<Taken>>();
  for (const before of (await readPreviousValues(former)).values()) {
    const taken = byId.get(before._id) ?? (before.kind === "option" ? byId.get(before.targeting ?? "") : undefined);
    if (taken === undefined || before.name === undefined) continue;
    byName.set(before.name, (byName.get(before.name) ?? new Set()).add(taken));
  }
  const sameForAll = (all: ReadonlySet<Taken>): Taken => {
    const [one = "unknown", ...others] = all;
    return others.length === 0 ? one : "unknown";
  };
  // For a line that names no known object, the answer is known only if it is the same for all objects of the run.
  const ofAll = sameForAll(new Set(byId.values()));
  return (line) => {
    const { _id, name } = keptRow.safeParse(parseJson(line)).data ?? {};
    if (_id !== undefined) return byId.get(_id) ?? "unknown";
    const named = byName.get(name ?? "");
    return named === undefined ? ofAll : sameForAll(named);
  };
}

function takenById(state: RunState): ReadonlyMap<string, Taken> {
  const inDoubt = state.inDoubt();
  const byId = new Map<string, Taken>();
  for (let id = 0; id < state.steps.length; id += 1) {
    const operation = state.steps.partAt(id)?.operation;
    if (operation !== "deleteOptions" && operation !== "deleteTargetings" && operation !== "updateOptions") continue;
    const step = state.steps.at(id);
    const target = state.boundId(step, "_id");
    if (step === undefined || target === undefined || step.undoes !== undefined) continue;
    const taken = inDoubt.has(id) ? "unknown" : takenByStep(step, state);
    const before = byId.get(target);
    byId.set(target, before === undefined || before === taken ? taken : "unknown");
  }
  return byId;
}

function takenByStep({ id, objects: [object = -1] }: Step, state: RunState): Taken {
  const standing = state.standing(object);
  if (standing === "unknown") return "unknown";
  return standing !== "failed" && state.isApplied(id) ? "removed" : "notRemoved";
}

export type SheetRun = { readonly file: InputFile; readonly part: "input" | "sheet" } & (
  | { readonly run: ChangeRun; readonly events?: never }
  | { readonly events: EventRun; readonly run?: never }
);

/** Returns the sheet from which a run or its plan was made. Undefined if there is none, or if all events were sent. */
export function sheetRunOf(run: Run): SheetRun | undefined {
  if (isEventRun(run)) {
    const { file } = run.header.call.input.events;
    return file === undefined || !isSheet(file) || !hasOpenRows(run) ? undefined : { events: run, file, part: "input" };
  }
  if (!isChangeRun(run)) return undefined;
  const { call } = run.header;
  const isPlan = call.tool === "apply_plan";
  const file = isPlan ? call.input.sheet : fileOf(call);
  return file === undefined || !isSheet(file) ? undefined : { run, file, part: isPlan ? "sheet" : "input" };
}

/** Returns whether some events were not sent. The rows of sent events are no longer stored. */
function hasOpenRows({ state }: EventRun): boolean {
  const { failed, notApplied, pending } = state.counts();
  return failed + notApplied + pending > 0 && !state.isUnread;
}

interface PartContext extends Pick<ToolServices, "runs"> {
  readonly caller: string;
}

/** A part of a resource ends after about so many characters or bytes. Over stdio, it must stay far below 10 MiB. */
const PART_CHARACTERS = 4_000_000;
const NEWLINE = 0x0a;

/** Returns a run of the caller. Returns "damaged" if its journal is lost; what it removed may still be readable. */
async function ownOrDamaged(runId: string, { runs, caller }: PartContext): Promise<Run | "damaged" | undefined> {
  try {
    return await runs.findOwn(runId, caller);
  } catch (thrown) {
    if (thrown instanceof DamagedRunError) return "damaged";
    throw thrown;
  }
}

/**
 * Returns a part of a resource of a run as JSON lines: results from the object `from` on, or other data from the byte
 * `from` on. If more follows, the last line is the address of the next part.
 */
export async function readPart(
  runId: string,
  part: "results" | "removed" | "not-removed" | "rejects",
  from: number,
  context: PartContext,
): Promise<string | undefined> {
  if (!Number.isSafeInteger(from) || from < 0) return undefined;
  const { runs } = context;
  const next = (end: number): string => nextLine(runId, part, end);
  const run = part === "removed" ? await ownOrDamaged(runId, context) : await runs.findOwn(runId, context.caller);
  if (run === undefined) return undefined;
  if (run === "damaged") return keptFrom(runs.part(runId, "removed")(), from, next);
  if (part === "results") return resultsFrom(run, from);
  return keptFrom(part === "rejects" ? runs.part(runId, part)() : removedLines(run, part, context), from, next);
}

async function keptFrom(
  content: AsyncIterable<Uint8Array>,
  from: number,
  next: (end: number) => string,
): Promise<string> {
  const chunks: Uint8Array[] = [];
  let passed = 0;
  let size = 0;
  for await (const chunk of content) {
    const wanted = chunk.subarray(Math.max(0, from - passed));
    passed += chunk.length;
    if (wanted.length === 0) continue;
    chunks.push(wanted);
    size += wanted.length;
    if (size > PART_CHARACTERS && chunk.includes(NEWLINE)) break;
  }
  const bytes = Buffer.concat(chunks);
  if (size <= PART_CHARACTERS) return bytes.toString("utf8");
  const end = bytes.lastIndexOf("\n") + 1;
  return `${bytes.subarray(0, end).toString("utf8")}${next(from + end)}`;
}

function resultsFrom(run: Run, from: number): string {
  const lines: string[] = [];
  let size = 0;
  for (let object = from; object < run.state.objects.length; object += 1) {
    if (size > PART_CHARACTERS) {
      lines.push(nextLine(run.header.runId, "results", object));
      break;
    }
    const line = resultLine(run, object);
    lines.push(line);
    size += line.length;
  }
  return lines.join("");
}

function nextLine(runId: string, part: string, from: number): string {
  return `${JSON.stringify({ next: `targeting://runs/${runId}/${part}/${from}` })}\n`;
}

export async function readPlanned(runId: string, context: PartContext): Promise<string | undefined> {
  const run = await context.runs.findOwn(runId, context.caller);
  return run && planTextOf(run, context);
}
