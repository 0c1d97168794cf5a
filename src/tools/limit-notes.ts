import { placeWords, quoteUntrusted } from "../answers/fence.ts";
import { many, number } from "../answers/message-words.ts";
import type { ManagementApi } from "../api/management.ts";
import type { ChangeRun } from "../changes/change-run.ts";
import { targetOf } from "../changes/rows/entries.ts";
import { type OptionContents, readOptionContents } from "../reads/option-contents.ts";
import { readOptions } from "../reads/option-lists.ts";
import type { ReportedObject } from "../runs/outcome.ts";
import { LIMITS } from "../spec/limits.ts";
import { bytesOf } from "../spec/names-and-contexts.ts";
import type { ToolContext } from "./define-tool.ts";
import { shortReads, undefinedIfFailed } from "./write/within-call.ts";

interface FullOption {
  readonly _id: string;
  readonly name: string;
  readonly contextIds: number;
  readonly bytes: number;
  readonly limit: "count" | "bytes" | "project";
}

interface FullTargeting {
  readonly _id: string;
  readonly name: string;
  /** How many options the targeting has. Only set if the limit for options stopped the run. */
  readonly options?: number;
  /** How many Context IDs the targeting has. A Context ID counts once for each option that has it. */
  readonly contextIds?: number;
}

type LimitsMet = Awaited<ReturnType<typeof limitsMet>>;

/** Returns notes about limits that stopped a run: the limit, what is stored, how much more fits, what was applied. */
export async function limitNotes(run: ChangeRun, context: ToolContext): Promise<readonly string[]> {
  const met = await limitsMet(run, context);
  return [...limitPlace(met), ...met.targetings.flatMap(targetingWords), ...optionsWords(met), ...projectWords(met)];
}

function limitPlace({ first, before, after }: LimitsMet): readonly string[] {
  if (first === undefined) return [];
  const sides = [sideWords("before", before), sideWords("after", after)].filter((words) => words !== undefined);
  const picked = sides.length === 0 ? "" : ` (applied: ${sides.join(", ")})`;
  return [`The limit was reached first at ${placeWords(first)}${picked}, and nothing of that item was applied`];
}

function sideWords(side: "before" | "after", { count, isIn }: LimitsMet["before"]): string | undefined {
  return count === 0 ? undefined : `${number(isIn)} of ${number(count)} ${side} it`;
}

function targetingWords({ _id, name, options }: FullTargeting): readonly string[] {
  if (options === undefined) return [];
  const limit = LIMITS.targetingOptions.value;
  return [
    `The targeting ${quoteUntrusted(name)} (${_id}) has ${number(options)} of at most ${number(limit)} options now, sub-options ` +
      `included: ${fitWords(limit - options)}`,
  ];
}

function optionsWords({ options, optionsOmitted }: LimitsMet): readonly string[] {
  const words = options.map((option) => `${quoteUntrusted(option.name)} (${option._id}) ${holdsWords(option)}`);
  // The number of omitted options is given only if at least one option is shown. If none could be read, for example
  // because they were deleted, the words "3 more options" would follow nothing.
  const hasMore = optionsOmitted > 0 && options.length > 0;
  const more = hasMore
    ? [`${many(optionsOmitted, "more option")} reached the limit; get_option shows their counts`]
    : [];
  return [...words, ...more];
}

function holdsWords({ contextIds, bytes, limit }: FullOption): string {
  const most = LIMITS.optionContextIds.value;
  const holds = `holds ${number(contextIds)} of at most ${number(most)} Context IDs`;
  if (limit === "count") return `${holds}: ${fitWords(most - contextIds)}`;
  if (limit === "project") {
    const all = number(LIMITS.projectContextIds.value);
    return `${holds}, so the limit that was reached is that of the project: ${all} Context IDs`;
  }
  const mostBytes = LIMITS.optionContextBytes.value;
  return `${holds}, with ${number(bytes)} of at most ${number(mostBytes)} bytes: ${fitWords(mostBytes - bytes, " bytes")}`;
}

/** Returns what is known about the limit of the project. The service cannot list all its targetings. */
function projectWords({ isProject, targetings, deletedAgain }: LimitsMet): readonly string[] {
  if (!isProject) return [];
  const limit = LIMITS.projectContextIds.value;
  const held = targetings.flatMap(({ name, contextIds }) => (contextIds === undefined ? [] : [{ name, contextIds }]));
  const words = held.map(
    ({ name, contextIds }) =>
      `the options of ${quoteUntrusted(name)} alone hold ${number(contextIds)}, so at most ${fitWords(limit - contextIds)}`,
  );
  const [was, its] = deletedAgain === 1 ? ["was", "its"] : ["were", "their"];
  const deleted = `${many(deletedAgain, "new option")} ${was} deleted again, because not all ${its} Context IDs fit into the project`;
  return [
    ...(deletedAgain > 0 ? [deleted] : []),
    `The project may hold ${number(limit)} Context IDs over all its targetings; the service gives no total` +
      (words.length === 0 ? "" : `; ${words.join("; ")}`),
  ];
}

function fitWords(room: number, noun = ""): string {
  const left = Math.max(0, room);
  return `${number(left)} more${noun} ${left === 1 && noun === "" ? "fits" : "fit"}`;
}

const OF_OPTIONS = "TARGETING_CATEGORY_LIMIT_EXCEEDED";
const OF_CONTEXT_IDS = "TARGETING_CONTEXT_LIMIT_EXCEEDED";

const OPTIONS_READ = 3;
const MAX_LISTED = 5000;

/** Returns which limit a run reached (management-api 8.1), at which object, and how much is stored now. */
async function limitsMet(run: ChangeRun, context: ToolContext) {
  const api = shortReads(context);
  const { signal } = context;
  const { input } = run.header.call;
  const { targetingIds, optionIds, isNew, ...where } = stoppedAtLimit(run);
  const options: FullOption[] = [];
  for (const id of optionIds.slice(0, OPTIONS_READ)) {
    const contents = await undefinedIfFailed(readOptionContents(api, id, signal), context);
    if (contents !== undefined) options.push(fullOption(contents, run));
  }
  const within = run.state.facts.within ?? ("targetingId" in input ? input.targetingId : undefined);
  const isProject = isNew || options.some(({ limit }) => limit === "project");
  const targetings: FullTargeting[] = [];
  for (const id of new Set([...targetingIds, ...(isProject && within !== undefined ? [within] : [])])) {
    const reading = fullTargeting(api, id, { isFull: targetingIds.includes(id), isProject, signal });
    const found = await undefinedIfFailed(reading, context);
    if (found !== undefined) targetings.push(found);
  }
  return { ...where, options, optionsOmitted: optionIds.length - options.length, targetings, isProject };
}

/**
 * Returns the first object that a limit stopped, and how many objects come `before` and `after` it. `isIn`: how many of
 * these were applied.
 */
function stoppedAtLimit({ state }: ChangeRun) {
  const sides = { before: { count: 0, isIn: 0 }, after: { count: 0, isIn: 0 } };
  const targetingIds = new Set<string>();
  const optionIds = new Set<string>();
  let first: ReportedObject | undefined;
  let isNew = false;
  let deletedAgain = 0;
  for (let object = 0; object < state.objects.length; object += 1) {
    const standing = state.standing(object);
    const reason = standing === "failed" ? state.reason(object) : undefined;
    const isStopped = reason?.code === OF_OPTIONS || reason?.code === OF_CONTEXT_IDS;
    if (isStopped) {
      const targeting = reason.detail?.targeting;
      if (reason.code === OF_OPTIONS && typeof targeting === "string") targetingIds.add(targeting);
      const option = reason.operation === "updateOptions" ? state.idOf(object) : undefined;
      // A new option has no more Context IDs than fit into it. If it did not get all of them, the run deleted it again.
      const isDeleted = option !== undefined && isCreated(option, state);
      if (reason.code === OF_CONTEXT_IDS && isDeleted) deletedAgain += 1;
      else if (reason.code === OF_CONTEXT_IDS && option !== undefined) optionIds.add(option);
      isNew ||= reason.code === OF_CONTEXT_IDS && (isDeleted || reason.operation !== "updateOptions");
      if (first === undefined) {
        first = state.objects.at(object);
        continue;
      }
    }
    const side = first === undefined ? sides.before : sides.after;
    side.count += 1;
    if (standing === "succeeded" || standing === "alreadyDone") side.isIn += 1;
  }
  return { first, ...sides, isNew, deletedAgain, targetingIds: [...targetingIds], optionIds: [...optionIds] };
}

/** Returns whether a run created an option: then the steps that add its Context IDs refer to its creation. */
function isCreated(option: string, state: ChangeRun["state"]): boolean {
  const updates = state.stepsChanging(option).filter(({ operation }) => operation === "updateOptions");
  return updates.every((step) => targetOf(step) === undefined);
}

function fullOption({ option, contexts }: OptionContents, { state }: ChangeRun): FullOption {
  const { _id, name } = option;
  let after = new Set(contexts);
  const bytes = bytesOf(after);
  const about = { _id, name, contextIds: after.size, bytes };
  for (const step of state.stepsChanging(_id)) {
    if (step.operation !== "updateOptions" || step.undoes !== undefined || step.prepares) continue;
    const { add = [], remove = [], set } = step.item.contexts ?? {};
    after = new Set([...(set ?? after), ...add]);
    for (const id of remove) after.delete(id);
    if (after.size > LIMITS.optionContextIds.value && after.size > about.contextIds)
      return { ...about, limit: "count" };
    const size = bytesOf(after);
    if (size > LIMITS.optionContextBytes.value && size > bytes) return { ...about, limit: "bytes" };
  }
  return { ...about, limit: "project" };
}

async function fullTargeting(
  api: ManagementApi,
  targetingId: string,
  { isFull, isProject, signal }: Readonly<Record<"isFull" | "isProject", boolean>> & Pick<ToolContext, "signal">,
): Promise<FullTargeting> {
  const { _id, name, optionCount } = await api.getTargeting(targetingId, { signal });
  const about = { _id, name, ...(isFull && optionCount !== undefined && { options: optionCount }) };
  if (!isProject || optionCount === undefined || optionCount > MAX_LISTED) return about;
  let contextIds = 0;
  for await (const { contextCount = 0 } of readOptions(api, targetingId, signal)) contextIds += contextCount;
  return { ...about, contextIds };
}
