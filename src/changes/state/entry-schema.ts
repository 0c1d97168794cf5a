import * as z from "zod";
import { isObject } from "../../api/answers.ts";
import { inputFile } from "../../files/input-file.ts";
import { parseJson } from "../../platform/json.ts";
import { notApplied, reason, reportedObject } from "../../runs/outcome-schema.ts";
import { BULK_OPERATIONS } from "../../spec/routes.ts";
import type { JournalEntry, Step } from "../rows/entries.ts";
import { rowItem } from "../rows/row-block.ts";

/** Who agreed, as it is read back. */
export const asked = z.enum([
  "agreed_in_client",
  "agreed_in_view",
  "agreed_on_page",
  "agreed_by_token",
  "agreed_in_terminal",
  "not_needed",
]);

/** What a run waits for, as it is read back. */
export const waits = z.object({
  digest: z.string(),
  effect: z.string(),
  parts: z.array(
    z.object({
      title: z.string(),
      count: z.number(),
      objects: z.array(z.object({ name: z.string(), _id: z.string().exactOptional(), says: z.string() })),
    }),
  ),
  until: z.number(),
  stale: z.string().exactOptional(),
  elsewhere: z.enum(["client", "token"]).exactOptional(),
});

/** A decision about a run, as it is read back. */
export const decided = z.object({
  who: z.string(),
  where: z.enum(["client", "view", "page", "token", "terminal"]),
  at: z.number(),
});

const binding = z.object({
  field: z.enum(["targeting", "parent", "_id"]),
  id: z.string().exactOptional(),
  object: z.number().exactOptional(),
});
const weight = z.object({
  items: z.number(),
  options: z.number(),
  groupItems: z.number(),
  contextIds: z.number(),
  bytes: z.number(),
});
const texts = z.array(z.string());
const named = { name: z.string() };
const contexts = texts.exactOptional();
const child = z.object({ ...named, contexts });
const option = z.object({
  ...named,
  type: z.enum(["atomic", "collection"]).exactOptional(),
  contexts,
  children: z.array(child).exactOptional(),
  exposeChildren: z.boolean().exactOptional(),
});

const stepFields = {
  id: z.number(),
  objects: z.array(z.number()),
  bindings: z.array(binding),
  weight,
  after: z.array(z.number()).exactOptional(),
  undoes: reason.exactOptional(),
  prepares: z.literal(true).exactOptional(),
  formerName: z.string().exactOptional(),
};
const noItem = z.undefined();
const optionChanges = z.object({
  name: z.string().exactOptional(),
  parent: z.string().nullable().exactOptional(),
  exposeChildren: z.boolean().exactOptional(),
  contexts: z.object({ add: contexts, remove: contexts, set: contexts }).exactOptional(),
});
const targeting = z.object({ ...named, options: z.array(option).exactOptional() });

/** A step as it is read back; its item has its fields in the order in which steps are made with them. */
const step: z.ZodType<Step> = z.preprocess(
  withItem,
  z.discriminatedUnion("operation", [
    z.object({ ...stepFields, operation: z.literal("createTargetings"), item: targeting }),
    z.object({ ...stepFields, operation: z.literal("renameTargetings"), item: z.object(named) }),
    z.object({ ...stepFields, operation: z.literal("deleteTargetings"), item: noItem }),
    z.object({ ...stepFields, operation: z.literal("addOptions"), item: option }),
    z.object({ ...stepFields, operation: z.literal("updateOptions"), item: optionChanges }),
    z.object({ ...stepFields, operation: z.literal("deleteOptions"), item: noItem }),
  ]),
);

/** A journal keeps the item of a step as JSON text, `json`, which is empty for a delete. */
function withItem(value: unknown): unknown {
  if (!isObject(value) || typeof value.json !== "string") return value;
  return { ...value, item: value.json === "" ? undefined : parseJson(value.json) };
}

const change = z.union([
  z.object({
    step: z.number(),
    to: z.enum(["done", "alreadyDone"]),
    _id: z.string().exactOptional(),
    childIds: z.array(z.string().nullable()).exactOptional(),
    contextCount: z.object({ expected: z.number(), found: z.number() }).exactOptional(),
  }),
  z.object({
    step: z.number(),
    to: z.enum(["failed", "refused", "unknown"]).or(notApplied),
    reason,
    undone: z.literal(true).exactOptional(),
  }),
  z.object({ step: z.number(), to: z.literal("deferred"), reason }),
  z.object({ step: z.number(), to: z.literal("pending") }),
  z.object({ step: z.number(), to: z.literal("replaced") }),
  z.object({ step: z.number(), to: z.literal("suspect") }),
]);
const settlement = z.object({
  object: z.number(),
  outcome: z.enum(["succeeded", "alreadyDone", "skipped", "failed", "unknown"]).or(notApplied),
  reason: reason.exactOptional(),
  _id: z.string().exactOptional(),
});
const at = z.number();

/** An entry as a line of a journal, in pieces. */
export function journalLine(entry: JournalEntry): readonly (string | Uint8Array)[] {
  if (entry.t === "rows" && entry.items instanceof Uint8Array) {
    const { items, ...rest } = entry;
    return [`${JSON.stringify(rest).slice(0, -1)},"items":[`, items, "]}"];
  }
  const steps =
    "steps" in entry && entry.t !== "send" && entry.t !== "late" ? { steps: entry.steps?.map(keptStep) } : {};
  return [JSON.stringify({ ...entry, ...steps })];
}

function keptStep({ item, ...step }: Step) {
  return { ...step, json: item === undefined ? "" : JSON.stringify(item) };
}

const shownValue = z.union([z.string(), z.number(), z.boolean(), z.null()]);

/** One line of a journal as it is read back. */
export const journalEntry: z.ZodType<JournalEntry> = z.discriminatedUnion("t", [
  z.object({ t: z.literal("objects"), objects: z.array(reportedObject) }),
  z.object({ t: z.literal("settled"), settlements: z.array(settlement) }),
  z.object({ t: z.literal("steps"), steps: z.array(step) }),
  z.object({
    t: z.literal("rows"),
    index: z.number(),
    line: z.number().exactOptional(),
    items: z.array(rowItem),
  }),
  z.object({
    t: z.literal("facts"),
    facts: z.object({
      tool: z.string().exactOptional(),
      within: z.string().exactOptional(),
      optionsThere: z.number().exactOptional(),
      asked: asked.exactOptional(),
      rows: z.object({ read: z.number(), merged: z.number(), skipped: z.number() }).exactOptional(),
      look: inputFile.pick({ sheet: true, seen: true }).exactOptional(),
      effect: z.string().exactOptional(),
      unread: z.number().exactOptional(),
      stale: z
        .array(
          z.object({
            _id: z.string().optional(),
            name: z.string(),
            field: z.string(),
            planned: shownValue.optional(),
            service: shownValue.optional(),
          }),
        )
        .exactOptional(),
      foreseen: z
        .array(
          z.object({
            operation: z.enum(BULK_OPERATIONS),
            items: z.number(),
            contextIds: z.number(),
            bytes: z.number(),
          }),
        )
        .exactOptional(),
      shown: z.string().exactOptional(),
      waits: waits.exactOptional(),
      decided: decided.exactOptional(),
      nearIds: z
        .object({ count: z.number(), first: z.array(z.object({ given: z.string(), held: z.string() })) })
        .exactOptional(),
      takenFor: z.array(z.object({ given: z.string(), name: z.string() })).exactOptional(),
    }),
  }),
  z.object({ t: z.literal("replan") }),
  z.object({ t: z.literal("planned"), requests: z.number(), at }),
  z.object({ t: z.literal("newest"), targeting: z.string(), _id: z.string().nullable() }),
  z.object({ t: z.literal("send"), steps: z.array(z.number()), at, again: z.boolean() }),
  z.object({
    t: z.literal("answer"),
    at,
    changes: z.array(change),
    steps: z.array(step).exactOptional(),
    settlements: z.array(settlement).exactOptional(),
    made: z.object({ from: z.number(), ids: z.array(z.string().nullable()) }).exactOptional(),
  }),
  z.object({ t: z.literal("withheld"), at }),
  z.object({ t: z.literal("late"), steps: z.array(z.number()), at }),
  z.object({ t: z.literal("waited"), ms: z.number() }),
  z.object({
    t: z.literal("stop"),
    cause: z.enum(["finished", "cancelled", "interrupted", "ended"]),
    at,
    reason: reason.exactOptional(),
  }),
  z.object({ t: z.literal("resume"), at }),
]);
