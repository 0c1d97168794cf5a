import * as z from "zod";
import { pageBudget, renderAnswer, takeRows, writeCursor } from "../answers/budget.ts";
import {
  candidatesText,
  othersText,
  seenLine,
  seenText,
  type TargetingSummary,
  targetingRow,
  targetingText,
} from "../answers/reading.ts";
import { RejectedError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import { folded } from "../platform/by-key.ts";
import { isEmpty, positionNow, type WalkPosition, walkOptions } from "../reads/option-lists.ts";
import { untilStable } from "../reads/pages.ts";
import type { SeenTargeting } from "../runs/backend.ts";
import { DeadlineExceeded, managementOf } from "./apis.ts";
import {
  checkSameName,
  type FoundByName,
  findSeenTargeting,
  placeOf,
  type TargetingReference,
  targetingArguments,
  withNote,
} from "./arguments.ts";
import { type ToolAnswer, type ToolContext, type ToolDefinition, timeLeft, type Waiting } from "./define-tool.ts";
import { allowedText } from "./execution-guard.ts";
import { walkPosition } from "./option-search.ts";

const input = () =>
  z.strictObject({
    ...targetingArguments(),
    summary: z.boolean().optional().describe("Also count options, groups, sub-options, empty ones and Context IDs"),
    cursor: z.string().optional(),
  });

export const getTargeting = {
  name: "get_targeting",
  title: "Get a targeting",
  description:
    "Reads a targeting by ID or name. summary counts the options and Context IDs in it. Part of a name finds targetings whose names contain it. Without arguments, shows targetings seen before, because the service cannot list them.",
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
  handler: ({ summary = false, cursor, ...reference }, context) =>
    readTargeting(reference, summary || cursor ? { cursor } : undefined, context),
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

/** Returns a targeting and, with `counting`, counts its options. Without ID and name, lists the seen targetings. */
export async function readTargeting(
  reference: TargetingReference,
  counting: { readonly cursor: string | undefined } | undefined,
  context: ToolContext,
): Promise<ToolAnswer> {
  const candidates = await withPart(reference, context);
  if (candidates !== undefined) return candidates;
  const found = await findSeenTargeting(reference, context);
  if (found === undefined) {
    const { memory, allowedTargetings, readOnly } = context;
    const mayChange = allowedTargetings
      ? allowedText(allowedTargetings)
      : readOnly
        ? "This server only reads"
        : undefined;
    return listAnswer(await memory.recent(), (seen, omitted) => seenText(seen, omitted, mayChange), context);
  }
  const answer = withNote(found.note, await readOne(found, counting, context));
  const { targetingName } = reference;
  const having = targetingName ? await seenContaining(targetingName, context) : [];
  const others = having.filter(({ _id }) => _id !== found._id).slice(0, OTHERS_NAMED);
  if (others.length === 0) return answer;
  const { structured, text } = answer;
  return { ...answer, structured: { ...structured, others }, text: `${text}\n${othersText(others)}` };
}

const OTHERS_NAMED = 5;

async function seenContaining(
  text: string,
  { memory }: Pick<ToolContext, "memory">,
): Promise<readonly SeenTargeting[]> {
  const part = folded(text);
  return (await memory.recent()).filter(({ name }) => folded(name).includes(part));
}

async function readOne(
  { _id: targetingId, seen }: FoundByName,
  counting: { readonly cursor: string | undefined } | undefined,
  context: ToolContext,
): Promise<ToolAnswer> {
  const { environment, memory, signal } = context;
  const api = managementOf(context);
  try {
    const targeting = await api.getTargeting(targetingId, { signal });
    if (seen !== undefined) await checkSameName(seen, targeting.name, context);
    await memory.remember([targeting]);
    const row = targetingRow(targeting);
    const counted = counting && (await summaryOf(targetingId, counting.cursor, api, context));
    return renderAnswer({ environment, targeting: row, ...counted }, [
      targetingText(row, counted?.summary, counted?.cursor),
    ]);
  } catch (thrown) {
    if (thrown instanceof RejectedError && thrown.errorCode === "TARGETING_NOT_FOUND")
      await memory.forget([targetingId]);
    throw thrown;
  }
}

/** Lists the seen targetings whose names contain a text. Undefined if it is a whole name, or if none contains it. */
async function withPart(
  { targetingId, targetingName }: TargetingReference,
  { environment, memory }: ToolContext,
): Promise<ToolAnswer | undefined> {
  if (targetingId || !targetingName || (await memory.resolve(targetingName)).kind !== "unknown") return undefined;
  const having = await seenContaining(targetingName, { memory });
  if (having.length === 0) return undefined;
  return listAnswer(having, (lines, omitted) => candidatesText(targetingName, lines, omitted), { environment });
}

function listAnswer(
  all: readonly SeenTargeting[],
  textOf: (lines: readonly string[], omitted: number) => string,
  { environment }: Pick<ToolContext, "environment">,
): ToolAnswer {
  const seen = takeRows(all, seenLine, pageBudget());
  const omitted = all.length - seen.length;
  return renderAnswer({ environment, targetings: seen, omitted: omitted || undefined }, [
    textOf(seen.map(seenLine), omitted),
  ]);
}

const counted = z.strictObject({
  topLevel: z.int(),
  groups: z.int(),
  subOptions: z.int(),
  withoutContexts: z.int(),
  contextIds: z.int(),
});
const place = walkPosition.extend({ counted });

const NOTHING: z.output<typeof counted> = { topLevel: 0, groups: 0, subOptions: 0, withoutContexts: 0, contextIds: 0 };

/** The counts of a targeting. With `cursor`, only a part of it was counted so far. */
interface CountedSoFar {
  readonly summary: TargetingSummary;
  readonly cursor?: string;
}

/** Counts the options of a targeting. If one call is too short, returns a cursor with which the next one goes on. */
export function summaryOf(
  targetingId: string,
  given: string | undefined,
  api: ManagementApi,
  context: Waiting & Pick<ToolContext, "signal">,
): Promise<CountedSoFar> {
  const { clock, signal } = context;
  const end = clock.now() + timeLeft(context);
  const query = { summary: targetingId };
  const start = placeOf("list", given, query, { schema: place, beginning: { top: 0, counted: NOTHING } });
  const stoppedAt = (at: WalkPosition, counts: typeof start.counted): CountedSoFar => ({
    summary: { ...counts, complete: false },
    cursor: writeCursor(query, { ...at, counted: counts }),
  });
  return untilStable(async (walk) => {
    const list = { targetingId, signal, ...walk };
    const { counted: known, ...from } = start;
    let counts = { ...known };
    let behind: WalkPosition = from;
    try {
      const now = await positionNow(api, list, from);
      // If the option at which the last call stopped does not exist any more, counting begins again.
      const before = now.isLost ? NOTHING : known;
      counts = { ...before };
      behind = now.isLost ? { top: 0 } : behind;
      for await (const { option, walked, next } of walkOptions(api, list, now.isLost ? behind : now.from)) {
        counts.topLevel = before.topLevel + walked.topLevel;
        counts.subOptions = before.subOptions + walked.subOptions;
        if (option.type === "collection") counts.groups += 1;
        if (isEmpty(option)) counts.withoutContexts += 1;
        counts.contextIds += option.contextCount ?? 0;
        behind = next;
        if (clock.now() >= end) return stoppedAt(behind, counts);
      }
    } catch (thrown) {
      if (thrown instanceof DeadlineExceeded) return stoppedAt(behind, counts);
      throw thrown;
    }
    return { summary: { ...counts, complete: true } };
  });
}
