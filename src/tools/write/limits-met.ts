import type { FullOption, FullTargeting, LimitsMet } from "../../answers/run-headline.ts";
import type { ManagementApi } from "../../api/management.ts";
import type { ChangeRun } from "../../changes/change-run.ts";
import { type OptionContents, readOptionContents } from "../../reads/option-contents.ts";
import { readOptions } from "../../reads/option-lists.ts";
import { LIMITS } from "../../spec/limits.ts";
import { bytesOf } from "../../spec/names-and-contexts.ts";
import type { ToolContext } from "../context.ts";
import { shortReads, undefinedIfFailed } from "./follow-run.ts";

const OF_OPTIONS = "TARGETING_CATEGORY_LIMIT_EXCEEDED";
const OF_CONTEXT_IDS = "TARGETING_CONTEXT_LIMIT_EXCEEDED";

const OPTIONS_READ = 3;
const MAX_LISTED = 5000;

/** Returns which limit of management-api 8.1 a run reached, where it stopped, and how much is stored now. */
export async function limitsMet(run: ChangeRun, context: ToolContext): Promise<LimitsMet> {
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

function stoppedAtLimit({ state }: ChangeRun) {
  const sides = { before: { count: 0, isIn: 0 }, after: { count: 0, isIn: 0 } };
  const targetingIds = new Set<string>();
  const optionIds = new Set<string>();
  let first: LimitsMet["first"];
  let isNew = false;
  for (let object = 0; object < state.objects.length; object += 1) {
    const standing = state.standing(object);
    const reason = standing === "failed" ? state.reason(object) : undefined;
    const isStopped = reason?.code === OF_OPTIONS || reason?.code === OF_CONTEXT_IDS;
    if (isStopped) {
      const targeting = reason.detail?.targeting;
      if (reason.code === OF_OPTIONS && typeof targeting === "string") targetingIds.add(targeting);
      const option = reason.operation === "updateOptions" ? state.idOf(object) : undefined;
      if (reason.code === OF_CONTEXT_IDS && option !== undefined) optionIds.add(option);
      isNew ||= reason.code === OF_CONTEXT_IDS && reason.operation !== "updateOptions";
      if (first === undefined) {
        first = state.objects.at(object);
        continue;
      }
    }
    const side = first === undefined ? sides.before : sides.after;
    side.count += 1;
    if (standing === "succeeded" || standing === "alreadyDone") side.isIn += 1;
  }
  return { first, ...sides, isNew, targetingIds: [...targetingIds], optionIds: [...optionIds] };
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
