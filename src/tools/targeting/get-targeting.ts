import * as z from "zod";
import { RejectedError } from "../../api/errors.ts";
import { rowsThatFit } from "../../render/page.ts";
import { seenLine, seenText, targetingRow, targetingText } from "../../render/reading.ts";
import { managementOf } from "../apis.ts";
import type { ToolContext } from "../context.ts";
import type { ToolAnswer, ToolDefinition } from "../definition.ts";
import { findTargetingId, targetingArguments } from "./targeting-name.ts";

const input = () => z.strictObject(targetingArguments());

/** Reads one targeting, or lists those seen before. */
export const getTargeting = {
  name: "get_targeting",
  title: "Get a targeting",
  description:
    "Reads one targeting by ID, or by name where it was seen before. Without arguments: the targetings seen before " +
    "(the service cannot list targetings).",
  toolset: "targeting",
  effect: "reads",
  idempotent: true,
  input,
  output: () =>
    z.looseObject({
      environment: z.string(),
      targeting: z.looseObject({}).optional(),
      targetings: z.array(z.looseObject({})).optional(),
    }),
  async handler(reference, context) {
    const targetingId = await findTargetingId(reference, context);
    return targetingId === undefined ? seenBefore(context) : readOne(targetingId, context);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

async function readOne(targetingId: string, context: ToolContext): Promise<ToolAnswer> {
  const { environment, memory, signal } = context;
  try {
    const targeting = await managementOf(context).getTargeting(targetingId, { signal });
    await memory.remember([targeting]);
    const row = targetingRow(targeting);
    return { structured: { environment, targeting: row }, text: targetingText(row), isError: false };
  } catch (thrown) {
    if (thrown instanceof RejectedError && thrown.errorCode === "TARGETING_NOT_FOUND")
      await memory.forget([targetingId]);
    throw thrown;
  }
}

async function seenBefore({ environment, memory }: ToolContext): Promise<ToolAnswer> {
  const all = await memory.recent();
  const seen = all.slice(0, rowsThatFit(all, seenLine));
  const omitted = all.length - seen.length;
  return {
    structured: { environment, targetings: seen, ...(omitted > 0 && { omitted }) },
    text: seenText(seen, omitted),
    isError: false,
  };
}
