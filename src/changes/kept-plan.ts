import type { OpenedFile } from "../files/rows.ts";
import { type ByteSource, digestOf } from "../platform/bytes.ts";
import type { RunInput } from "../runs/kind-runs.ts";
import type { PlanningTool, WriteCall } from "./call.ts";
import type { BaseFile, DesiredChanges } from "./plan/desired/desired-changes.ts";

/** A plan as text: whole, or in pieces where it may be large. */
export type PlanText = string | ByteSource;

/**
 * A plan as it is kept: its text, as `lookAgain` reads it, by which tool it was made, and the base of its file or the run
 * that it undoes.
 */
export interface KeptPlan {
  readonly text: PlanText;
  readonly plannedBy: PlanningTool;
  readonly base?: BaseFile | undefined;
  readonly undoes?: string | undefined;
  /** The sheet that it was made of. */
  readonly sheet?: Pick<OpenedFile, "file" | "bytes"> | undefined;
  readonly caller: string;
}

/** What a plan is made from while that takes long, in the place of its text; and the targetings that it is about. */
export interface UnmadePlan extends KeptPlan {
  readonly targetings: readonly string[];
}

/** A plan that was made: what it changes, and its text. */
export interface MadeText {
  readonly changes: DesiredChanges;
  readonly text: PlanText;
}

/** The call of a planned run, and the content that is kept with it. */
export async function plannedCall(
  { text, plannedBy, base, undoes, sheet }: KeptPlan,
  targetings: readonly (string | undefined)[],
): Promise<{ readonly call: WriteCall<"apply_plan">; readonly input: RunInput }> {
  const bytes = inOne(text);
  const digest = await digestOf(bytes);
  const [targetingId, ...further] = targetings;
  const furtherIds = further.flatMap((id) => id ?? []);
  const of = { ...(targetingId !== undefined && { targetingId }), ...(furtherIds.length > 0 && { furtherIds }) };
  const by = {
    ...{ plannedBy, ...(base && { base }), ...(undoes !== undefined && { undoes }) },
    ...(sheet && { sheet: sheet.file }),
  };
  return { call: { tool: "apply_plan", input: { ...by, ...of, digest } }, input: { bytes, digest } };
}

/** A text as the content of a run. */
export function inOne(text: PlanText): ByteSource {
  if (typeof text !== "string") return text;
  return async function* () {
    yield Buffer.from(text);
  };
}
