import { RejectedError } from "../../../api/errors.ts";
import { rowsThatFit } from "../../../render/page.ts";
import { candidatesText, seenLine, seenText, targetingRow, targetingText } from "../../../render/reading.ts";
import type { SeenTargeting } from "../../../runs/backend/targeting-names.ts";
import { folded } from "../../../spec/name-match.ts";
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
  if (found === undefined) return seenBefore(context);
  return noting(found.note, await readOne(found._id, counting, context));
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

async function seenBefore({ environment, memory }: ToolContext): Promise<ToolAnswer> {
  const all = await memory.recent();
  const { seen, lines, omitted } = fitting(all);
  return {
    structured: { environment, targetings: seen, ...(omitted > 0 && { omitted }) },
    text: seenText(lines, omitted),
    isError: false,
  };
}

/** The targetings whose names have the given one as a part, where none has it as its name. */
async function withPart(
  { targetingId, targetingName }: TargetingReference,
  { environment, memory }: ToolContext,
): Promise<ToolAnswer | undefined> {
  if (targetingId || !targetingName || (await memory.resolve(targetingName)).kind !== "unknown") return undefined;
  const part = folded(targetingName);
  const { seen, lines, omitted } = fitting((await memory.recent()).filter(({ name }) => folded(name).includes(part)));
  if (seen.length === 0) return undefined;
  return {
    structured: { environment, targetings: seen, ...(omitted > 0 && { omitted }) },
    text: candidatesText(targetingName, lines, omitted),
    isError: false,
  };
}

/** The first of these targetings, as many as fit an answer, and the line of each. */
function fitting(all: readonly SeenTargeting[]): {
  readonly seen: readonly SeenTargeting[];
  readonly lines: readonly string[];
  readonly omitted: number;
} {
  const lines = new Map<SeenTargeting, string>();
  const lineOf = (targeting: SeenTargeting): string => {
    const line = lines.get(targeting) ?? seenLine(targeting);
    lines.set(targeting, line);
    return line;
  };
  const seen = all.slice(0, rowsThatFit(all, lineOf));
  return { seen, lines: seen.map(lineOf), omitted: all.length - seen.length };
}
