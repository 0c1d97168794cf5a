import * as z from "zod";
import { isObject } from "../../api/answers.ts";
import { inputFile } from "../../files/input-file.ts";
import { type Fixed, parseJson } from "../../platform/json.ts";
import { asked, nearIds, reason, reportedObject, rowCounts, stopEntry, takenName } from "../../runs/outcome.ts";
import type { CreateTargetingItem, OptionChanges, OptionToCreate } from "../../spec/records.ts";
import { BULK_OPERATIONS, type BulkOperation } from "../../spec/routes.ts";

const texts = z.array(z.string());
const numbers = z.array(z.number());
const at = z.number();
const contexts = texts.exactOptional();

const binding = z.object({
  field: z.enum(["targeting", "parent", "_id"]),
  id: z.string().exactOptional(),
  object: z.number().exactOptional(),
});

/**
 * A field of a request item that is filled in when the request is made: a known ID, or the ID of an object of this run,
 * which must have been made before. A delete binds the field `_id`, and its item is that ID alone.
 */
export type Binding = Fixed<z.infer<typeof binding>>;

const weight = z.object({
  items: z.number(),
  /** Options with sub-options, for requests that create options. */
  options: z.number(),
  groupItems: z.number(),
  contextIds: z.number(),
  /** UTF-8 bytes in the body, the comma included. */
  bytes: z.number(),
});

export type Weight = Fixed<z.infer<typeof weight>>;

/** An option to add, without what is bound: its targeting and its group. */
export type OptionItem = Omit<OptionToCreate, "parent">;

/** The item of a step by operation, without the bound fields. A delete sends only the bound ID. */
export interface StepItems {
  readonly createTargetings: CreateTargetingItem;
  readonly renameTargetings: { readonly name: string };
  readonly deleteTargetings: undefined;
  readonly addOptions: OptionItem;
  readonly updateOptions: OptionChanges;
  readonly deleteOptions: undefined;
}

const stepFields = z.object({
  id: z.number(),
  /**
   * Positions in the run's objects: first the one that the item is about, then those that it makes inside, in order.
   */
  objects: numbers,
  bindings: z.array(binding),
  weight,
  /** Steps that must be settled before this one leaves, however they ended. */
  after: numbers.exactOptional(),
  /** This step takes back what was done for its objects, which then fail for this reason. */
  undoes: reason.exactOptional(),
  /** This step only prepares others (a temporary name): its success settles nothing. */
  prepares: z.literal(true).exactOptional(),
  /** The name that the thing had before this step gave it a temporary one. */
  formerName: z.string().exactOptional(),
});

export type StepFields = Fixed<z.infer<typeof stepFields>>;

export type StepOf<Operation extends BulkOperation> = {
  readonly [Each in Operation]: StepFields & { readonly operation: Each; readonly item: StepItems[Each] };
}[Operation];

/** One item of one request: the smallest thing that is sent, resent and answered. */
export type Step = StepOf<BulkOperation>;

const named = { name: z.string() };
const option = z.object({
  ...named,
  type: z.enum(["atomic", "collection"]).exactOptional(),
  contexts,
  children: z.array(z.object({ ...named, contexts })).exactOptional(),
  exposeChildren: z.boolean().exactOptional(),
});
const optionChanges = z.object({
  name: z.string().exactOptional(),
  parent: z.string().nullable().exactOptional(),
  exposeChildren: z.boolean().exactOptional(),
  contexts: z.object({ add: contexts, remove: contexts, set: contexts }).exactOptional(),
});
const targeting = z.object({ ...named, options: z.array(option).exactOptional() });
const noItem = z.undefined();

const stepOf = <Operation extends BulkOperation, Item extends z.ZodType>(operation: Operation, item: Item) =>
  stepFields.extend({ operation: z.literal(operation), item });

/** A step as it is read back; its item has its fields in the order in which steps are made with them. */
const step: z.ZodType<Step> = z.preprocess(
  withItem,
  z.discriminatedUnion("operation", [
    stepOf("createTargetings", targeting),
    stepOf("renameTargetings", z.object(named)),
    stepOf("deleteTargetings", noItem),
    stepOf("addOptions", option),
    stepOf("updateOptions", optionChanges),
    stepOf("deleteOptions", noItem),
  ]),
);

/** A journal keeps the item of a step as JSON text, `json`, which is empty for a delete. */
function withItem(value: unknown): unknown {
  if (!isObject(value) || typeof value.json !== "string") return value;
  return { ...value, item: value.json === "" ? undefined : parseJson(value.json) };
}

const unexpectedCount = z.object({ expected: z.number(), found: z.number() });

export type UnexpectedCount = Fixed<z.infer<typeof unexpectedCount>>;

const stepChange = z.union([
  z.object({
    step: z.number(),
    to: z.enum(["done", "alreadyDone"]),
    _id: z.string().exactOptional(),
    /** The IDs of the objects that it made inside, in order, as far as known. */
    childIds: z.array(z.string().nullable()).exactOptional(),
    /** How many Context IDs its option holds now, where that is not what was expected. */
    contextCount: unexpectedCount.exactOptional(),
  }),
  z.object({
    step: z.number(),
    /** `refused` means failed for a reason outside of the item (a wrong key), so that a resumed run tries again. */
    to: z.enum(["failed", "refused", "unknown", "notApplied"]),
    reason,
    /** Another step of the same entry takes back what was done before; it settles the objects. */
    undone: z.literal(true).exactOptional(),
  }),
  /** The service refused it, and another change of this run may make it work: it waits for that one. */
  z.object({ step: z.number(), to: z.literal("deferred"), reason }),
  /** A deferred step is tried again. */
  z.object({ step: z.number(), to: z.literal("pending") }),
  /** Other steps of the same entry do its work instead. */
  z.object({ step: z.number(), to: z.literal("replaced") }),
  /** The step was sent, and may or may not have been applied. */
  z.object({ step: z.number(), to: z.literal("suspect") }),
]);

export type StepChange = Fixed<z.infer<typeof stepChange>>;

const settlement = z.object({
  object: z.number(),
  outcome: z.enum(["succeeded", "alreadyDone", "skipped", "failed", "notApplied", "unknown"]),
  reason: reason.exactOptional(),
  _id: z.string().exactOptional(),
});

/** An object whose outcome needs no request. */
export type Settlement = Fixed<z.infer<typeof settlement>>;

export const rowItem = z.object({ targeting: z.string(), name: z.string(), contexts });
export type RowItem = Fixed<z.infer<typeof rowItem>>;

const rowsEntry = z.object({
  t: z.literal("rows"),
  index: z.number(),
  line: z.number().exactOptional(),
  items: z.array(rowItem),
});

/**
 * Objects that follow each other, each with the one step that adds it to a targeting: most of a large
 * file. `index` and `line` are those of the first.
 */
export interface RowsEntry extends Omit<Fixed<z.infer<typeof rowsEntry>>, "items"> {
  /** Where an entry is written: their JSON in UTF-8, separated by commas, which is copied as it is. */
  readonly items: readonly RowItem[] | Uint8Array;
}

const madeRows = z.object({
  from: z.number(),
  /** Null where the answer named none. */
  ids: z.array(z.string().nullable()),
});

/** Rows that were added: the first of steps that follow each other, and the ID of what each of them made. */
export type MadeRows = Fixed<z.infer<typeof madeRows>>;

const shownValue = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const staleField = z.object({
  _id: z.string().optional(),
  name: z.string(),
  field: z.string(),
  planned: shownValue.optional(),
  service: shownValue.optional(),
});

export type StaleField = Fixed<z.infer<typeof staleField>>;

const plannedRequest = z.object({
  operation: z.enum(BULK_OPERATIONS),
  items: z.number(),
  contextIds: z.number(),
  bytes: z.number(),
});

export type PlannedRequest = Fixed<z.infer<typeof plannedRequest>>;

const effectPart = z.object({
  title: z.string(),
  count: z.number(),
  /** Each object of the kind, and what becomes of it. */
  objects: z.array(
    z.object({
      name: z.string(),
      _id: z.string().exactOptional(),
      says: z.string(),
      /** How many Context IDs go with it, and with a targeting how many options. */
      contextIds: z.number().exactOptional(),
      options: z.number().exactOptional(),
    }),
  ),
});

export type EffectPart = Fixed<z.infer<typeof effectPart>>;

export type EffectObject = EffectPart["objects"][number];

/** What a run waits for: a person's decision about exactly this effect. */
export const waits = z.object({
  digest: z.string(),
  /** The effect as the model is told it. */
  effect: z.string(),
  /** What happens, by kind and by name. */
  parts: z.array(effectPart),
  /** Milliseconds since 1970. */
  until: z.number(),
  /** What has changed since, for the agent, and for the person object by object: it cannot be agreed to any more. */
  stale: z.string().exactOptional(),
  differs: z.array(z.string()).exactOptional(),
  /** Where it is approved instead of on the page: the client still asks, or the agent holds a token. */
  elsewhere: z.enum(["client", "token"]).exactOptional(),
});

export const decided = z.object({
  who: z.string(),
  where: z.enum(["client", "view", "page", "token", "terminal"]),
  at,
});
export type Decided = Fixed<z.infer<typeof decided>>;

const runFacts = z.object({
  /** The tool that the run is told under, where that is not the one of its call. */
  tool: z.string().exactOptional(),
  /** The one targeting in which all options are that it changes. */
  within: z.string().exactOptional(),
  /** How many options that targeting has, and its name, where a person has to approve what is taken away from it. */
  optionsThere: z.number().exactOptional(),
  withinName: z.string().exactOptional(),
  asked: asked.exactOptional(),
  rows: rowCounts.exactOptional(),
  /** Of a sheet of which this was not known when the call answered: how its rows are read. */
  look: inputFile.pick({ sheet: true, seen: true }).exactOptional(),
  /** The effect that a person was asked to confirm, as a sentence of counts: a later effect is compared with it. */
  effect: z.string().exactOptional(),
  /** How many options got Context IDs without being read before, so that it is not known what they held. */
  unread: z.number().exactOptional(),
  /** Of a plan that is applied: what has changed since it was planned, the first of it. */
  stale: z.array(staleField).exactOptional(),
  /** Of a plan that waits: the requests that it takes, as far as what was there is known. */
  foreseen: z.array(plannedRequest).exactOptional(),
  /** Of a dry run: the digest of all that was shown. */
  shown: z.string().exactOptional(),
  waits: waits.exactOptional(),
  decided: decided.exactOptional(),
  /** Context IDs that differ from one that their option holds only in case, width or composition. */
  nearIds: nearIds.exactOptional(),
  /** Names that did not match exactly. */
  takenFor: z.array(takenName).exactOptional(),
});

export type RunFacts = Fixed<z.infer<typeof runFacts>>;

const entry = z.discriminatedUnion("t", [
  z.object({ t: z.literal("objects"), objects: z.array(reportedObject) }),
  z.object({ t: z.literal("settled"), settlements: z.array(settlement) }),
  z.object({ t: z.literal("steps"), steps: z.array(step) }),
  rowsEntry,
  z.object({ t: z.literal("facts"), facts: runFacts }),
  /** A crash cut the plan off before anything was sent: planning starts again. */
  z.object({ t: z.literal("replan") }),
  z.object({ t: z.literal("planned"), requests: z.number(), at }),
  /** The newest top-level option of a targeting before anything was sent; null where it had none. */
  z.object({ t: z.literal("newest"), targeting: z.string(), _id: z.string().nullable() }),
  z.object({ t: z.literal("send"), steps: numbers, at, again: z.boolean() }),
  z.object({
    t: z.literal("answer"),
    at,
    changes: z.array(stepChange),
    steps: z.array(step).exactOptional(),
    settlements: z.array(settlement).exactOptional(),
    made: madeRows.exactOptional(),
  }),
  /** The request that was announced last did not leave. */
  z.object({ t: z.literal("withheld"), at }),
  /** A request with these steps may have left while another process was writing: they are in doubt again. */
  z.object({ t: z.literal("late"), steps: numbers, at }),
  z.object({ t: z.literal("waited"), ms: z.number() }),
  stopEntry,
  z.object({ t: z.literal("resume"), at }),
]);

/** One line of a run's journal. Applying all lines in order gives the run's state. */
export type JournalEntry = Exclude<Fixed<z.infer<typeof entry>>, { readonly t: "rows" }> | RowsEntry;

export const journalEntry: z.ZodType<JournalEntry> = entry;

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
