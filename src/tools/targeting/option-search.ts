import type { ManagementApi } from "../../api/management.ts";
import { readOptionContents } from "../../reading/option-contents.ts";
import { type Step, type Walk, type WalkPosition, walkOptions } from "../../reading/option-walk.ts";
import { steadily } from "../../reading/pages.ts";
import type { OptionRecord } from "../../spec/records.ts";
import { type ToolContext, timeLeft } from "../context.ts";
import { TookTooLong } from "../within-wait.ts";

/** What is looked for: options whose name holds a text, that hold a Context ID, or both. */
export interface Wanted {
  readonly search?: string | undefined;
  readonly contextId?: string | undefined;
}

/** What was found, in the order of the walk; `next` is absent when the walk reached its end. */
export interface Found {
  readonly steps: readonly Step[];
  readonly scanned: number;
  readonly next: WalkPosition | undefined;
  /** Whether the wait was over before the walk was. */
  readonly stopped: boolean;
}

/** How many options' Context IDs are read at the same time. */
const READ_AT_ONCE = 8;

/**
 * Looks for options from a position on, until `most` are found, all were looked at, or one wait has passed; anew where a
 * list shifted meanwhile. Throws ApiErrors. Names match whatever their case.
 */
export async function searchOptions(
  api: ManagementApi,
  context: ToolContext,
  job: { readonly walk: Walk; readonly from: WalkPosition; readonly wanted: Wanted; readonly most: number },
): Promise<Found> {
  const { clock } = context;
  const end = clock.now() + timeLeft(context);
  const matches = matcher(api, context, job.wanted);
  return steadily(async (walk) => {
    const steps: Step[] = [];
    let scanned = 0;
    let next: WalkPosition | undefined;
    try {
      for await (const batch of batches(walkOptions(api, { ...job.walk, ...walk }, job.from), READ_AT_ONCE)) {
        const hits = await Promise.all(batch.map((step) => matches(step.option)));
        for (const [index, step] of batch.entries()) {
          scanned += 1;
          if (hits[index]) steps.push(step);
          if (steps.length === job.most) return { steps, scanned, next: step.next, stopped: false };
        }
        next = batch.at(-1)?.next;
        if (clock.now() >= end) return { steps, scanned, next, stopped: true };
      }
    } catch (thrown) {
      // What was found before a read that took too long is told, and the cursor goes on behind it.
      if (thrown instanceof TookTooLong && next !== undefined) return { steps, scanned, next, stopped: true };
      throw thrown;
    }
    return { steps, scanned, next: undefined, stopped: false };
  });
}

function matcher(api: ManagementApi, context: ToolContext, { search, contextId }: Wanted) {
  const part = search?.normalize("NFC").toLowerCase();
  return async (option: OptionRecord): Promise<boolean> => {
    if (part !== undefined && !option.name.normalize("NFC").toLowerCase().includes(part)) return false;
    if (contextId === undefined) return true;
    if (option.contextCount === 0) return false;
    return (await contextIdsOf(api, context, option)).has(contextId);
  };
}

/** Every Context ID of an option: from the shelf, or read anew. */
async function contextIdsOf(api: ManagementApi, { shelf, signal }: ToolContext, option: OptionRecord) {
  const kept = shelf.get(option);
  if (kept !== undefined) return kept;
  const ids = new Set((await readOptionContents(api, option._id, signal)).contexts);
  shelf.put(option, ids);
  return ids;
}

async function* batches<Item>(items: AsyncIterable<Item>, size: number): AsyncGenerator<readonly Item[]> {
  let batch: Item[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
