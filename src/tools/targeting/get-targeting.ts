import * as z from "zod";
import { RejectedError } from "../../api/errors.ts";
import { rowsThatFit } from "../../render/page.ts";
import { candidatesText, seenLine, seenText, targetingRow, targetingText } from "../../render/reading.ts";
import type { SeenTargeting } from "../../runs/backend/targeting-names.ts";
import { folded } from "../../spec/name-match.ts";
import { managementOf } from "../apis.ts";
import type { ToolContext } from "../context.ts";
import type { ToolAnswer, ToolDefinition } from "../definition.ts";
import { findTargeting, noting, type TargetingReference, targetingArguments } from "./targeting-name.ts";

const input = () =>
  z.strictObject({
    ...targetingArguments(),
    targetingName: z.string().optional().describe("Or the name of one seen before, or a part of it"),
    summary: z.boolean().optional().describe("Also count options by kind, empty ones, Context IDs"),
  });

/** Reads one targeting, or lists those seen before. */
export const getTargeting = {
  name: "get_targeting",
  title: "Get a targeting",
  description:
    "Reads one targeting; a part of a name lists those that have it. Without arguments: all seen before (the service " +
    "cannot list targetings).",
  toolset: "targeting",
  effect: "reads",
  idempotent: true,
  input,
  output: () =>
    z.looseObject({
      environment: z.string(),
      targeting: z.looseObject({}).optional(),
      summary: z.looseObject({}).optional(),
      targetings: z.array(z.looseObject({})).optional(),
    }),
  async handler({ summary = false, ...reference }, context) {
    const candidates = await withPart(reference, context);
    if (candidates !== undefined) return candidates;
    const found = await findTargeting(reference, context);
    if (found === undefined) return seenBefore(context);
    return noting(found.note, await readOne(found._id, summary, context));
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

async function readOne(targetingId: string, isSummed: boolean, context: ToolContext): Promise<ToolAnswer> {
  const { environment, memory, signal } = context;
  const api = managementOf(context);
  try {
    const targeting = await api.getTargeting(targetingId, { signal });
    await memory.remember([targeting]);
    const row = targetingRow(targeting);
    const summary = isSummed
      ? await (await import("./targeting-summary.ts")).summaryOf(targetingId, api, context)
      : undefined;
    return {
      structured: { environment, targeting: row, ...(summary && { summary }) },
      text: targetingText(row, summary),
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
  const { seen, omitted } = fitting(all);
  return {
    structured: { environment, targetings: seen, ...(omitted > 0 && { omitted }) },
    text: seenText(seen, omitted),
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
  const { seen, omitted } = fitting((await memory.recent()).filter(({ name }) => folded(name).includes(part)));
  if (seen.length === 0) return undefined;
  return {
    structured: { environment, targetings: seen, ...(omitted > 0 && { omitted }) },
    text: candidatesText(targetingName, seen, omitted),
    isError: false,
  };
}

function fitting(all: readonly SeenTargeting[]): { readonly seen: readonly SeenTargeting[]; readonly omitted: number } {
  const seen = all.slice(0, rowsThatFit(all, seenLine));
  return { seen, omitted: all.length - seen.length };
}
