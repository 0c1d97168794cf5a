import { RejectedError } from "../../../api/errors.ts";
import { rowsThatFit } from "../../../render/budget.ts";
import {
  candidatesText,
  othersText,
  seenLine,
  seenText,
  targetingRow,
  targetingText,
} from "../../../render/reading.ts";
import type { SeenTargeting } from "../../../runs/backend.ts";
import { folded } from "../../../spec/names.ts";
import { managementOf } from "../../apis.ts";
import type { ToolContext } from "../../context.ts";
import type { ToolAnswer } from "../../definition.ts";
import { findTargeting, noting, type TargetingReference } from "../targeting-name.ts";
import { summaryOf } from "./targeting-summary.ts";

/**
 * One targeting, with the counts of its options where `counting` says so, from its cursor on; or those seen before, or
 * those whose names have the given one as a part. Throws ApiErrors, and a ToolError for a name or cursor of nothing.
 */
export async function readTargeting(
  reference: TargetingReference,
  counting: { readonly cursor: string | undefined } | undefined,
  context: ToolContext,
): Promise<ToolAnswer> {
  const candidates = await withPart(reference, context);
  if (candidates !== undefined) return candidates;
  const found = await findTargeting(reference, context);
  if (found === undefined) return listed(await context.memory.recent(), seenText, context);
  const answer = noting(found.note, await readOne(found._id, counting, context));
  return withOthers(answer, await othersWith(reference, found._id, context));
}

/** Further targetings whose names contain the one that was given. */
async function othersWith(
  { targetingName }: TargetingReference,
  foundId: string,
  { memory }: ToolContext,
): Promise<readonly SeenTargeting[]> {
  if (!targetingName) return [];
  const part = folded(targetingName);
  const others = (await memory.recent()).filter(({ _id, name }) => _id !== foundId && folded(name).includes(part));
  return others.slice(0, OTHERS_NAMED);
}

const OTHERS_NAMED = 5;

function withOthers(answer: ToolAnswer, others: readonly SeenTargeting[]): ToolAnswer {
  if (others.length === 0) return answer;
  const { structured, text } = answer;
  return { ...answer, structured: { ...structured, others }, text: `${text}\n${othersText(others)}` };
}

/** `counting`: its options are counted, too, from the cursor on. */
async function readOne(
  targetingId: string,
  counting: { readonly cursor: string | undefined } | undefined,
  context: ToolContext,
): Promise<ToolAnswer> {
  const { environment, memory, signal } = context;
  const api = managementOf(context);
  try {
    const targeting = await api.getTargeting(targetingId, { signal });
    await memory.remember([targeting]);
    const row = targetingRow(targeting);
    const counted = counting && (await summaryOf(targetingId, counting.cursor, api, context));
    return {
      structured: { environment, targeting: row, ...counted },
      text: targetingText(row, counted?.summary, counted?.cursor),
      isError: false,
    };
  } catch (thrown) {
    if (thrown instanceof RejectedError && thrown.errorCode === "TARGETING_NOT_FOUND")
      await memory.forget([targetingId]);
    throw thrown;
  }
}

/** The targetings whose names have the given one as a part, where none has it as its name. */
async function withPart(
  { targetingId, targetingName }: TargetingReference,
  { environment, memory }: ToolContext,
): Promise<ToolAnswer | undefined> {
  if (targetingId || !targetingName || (await memory.resolve(targetingName)).kind !== "unknown") return undefined;
  const part = folded(targetingName);
  const having = (await memory.recent()).filter(({ name }) => folded(name).includes(part));
  if (having.length === 0) return undefined;
  return listed(having, (lines, omitted) => candidatesText(targetingName, lines, omitted), { environment });
}

/** The first of these targetings, as many as fit an answer; `textOf` makes its text of their lines. */
function listed(
  all: readonly SeenTargeting[],
  textOf: (lines: readonly string[], omitted: number) => string,
  { environment }: Pick<ToolContext, "environment">,
): ToolAnswer {
  const lines = new Map<SeenTargeting, string>();
  const lineOf = (targeting: SeenTargeting): string => {
    const line = lines.get(targeting) ?? seenLine(targeting);
    lines.set(targeting, line);
    return line;
  };
  const seen = all.slice(0, rowsThatFit(all, lineOf));
  const omitted = all.length - seen.length;
  return {
    structured: { environment, targetings: seen, ...(omitted > 0 && { omitted }) },
    text: textOf(seen.map(lineOf), omitted),
    isError: false,
  };
}
