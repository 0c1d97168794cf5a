import { createHash } from "node:crypto";
import * as z from "zod";
import { inputFile } from "../../files/input-file.ts";
import { defined } from "../../platform/by-key.ts";
import { type Fixed, isJsonObject, parseJson } from "../../platform/json.ts";
import {
  asked,
  elsewhere,
  joinedIds,
  nearIds,
  ownReason,
  reason,
  reportedObject,
  rowCounts,
  stopEntry,
  takenName,
} from "../../runs/outcome.ts";
import {
  type CreateTargetingItem,
  comparedFields,
  type OptionChanges,
  type OptionRecord,
  type OptionToCreate,
} from "../../spec/records.ts";
import { BULK_OPERATIONS, type BulkOperation } from "../../spec/routes.ts";
import type { OnExisting } from "../call.ts";

const texts = z.array(z.string());
const numbers = z.array(z.number());
const at = z.number();
const contexts = texts.exactOptional();

const binding = z.object({
  field: z.enum(["targeting", "parent", "_id"]),
  id: z.string().exactOptional(),
  object: z.number().exactOptional(),
});

/** A field of a step that holds an ID, which may be unknown until the step is sent. A deletion has only `_id`. */
export type Binding = Fixed<z.infer<typeof binding>>;

/** What a field is bound to: an ID, or an object of the run whose ID is used once it is known. */
export type Bound = Omit<Binding, "field">;

export function bindingOf(step: { readonly bindings: readonly Binding[] } | undefined, field: Binding["field"]) {
  return step?.bindings.find((binding) => binding.field === field);
}

const weight = z.object({
  items: z.number(),
  options: z.number(),
  groupItems: z.number(),
  contextIds: z.number(),
  /** The size of the item in a request body: UTF-8 bytes, including the comma after it. */
  bytes: z.number(),
});

export type Weight = Fixed<z.infer<typeof weight>>;

/** An option to create. `targeting` and `parent` are not among its fields, because they are bindings. */
export type OptionItem = Omit<OptionToCreate, "parent">;

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
  /** The object that the item creates, and then those inside it. For other items: all objects that it decides about. */
  objects: numbers,
  bindings: z.array(binding),
  weight,
  /** The IDs of steps that must have ended, with any outcome, before this step is sent. */
  after: numbers.exactOptional(),
  /**
   * Set if the step reverses an earlier step because another part of the change failed: the reason of that failure. The
   * objects of both steps fail for this reason.
   */
  undoes: reason.exactOptional(),
  /**
   * Set if a later step completes the change: this step sets a temporary name, or reverses a part of a failed change.
   * The step that reverses the last part has `undoes` instead.
   */
  prepares: z.literal(true).exactOptional(),
  /** The name of the object before it got a temporary name. */
  formerName: z.string().exactOptional(),
});

export type StepFields = Fixed<z.infer<typeof stepFields>>;

export type StepOf<Operation extends BulkOperation> = {
  readonly [Each in Operation]: StepFields & { readonly operation: Each; readonly item: StepItems[Each] };
}[Operation];

/** One item of a bulk request. It has its own answer, and can be sent again without the other items. */
export type Step = StepOf<BulkOperation>;

export type Create = StepOf<"createTargetings" | "addOptions">;

export function isCreate<Of extends Pick<Step, "operation">>(step: Of): step is Of & Pick<Create, "operation"> {
  return step.operation === "createTargetings" || step.operation === "addOptions";
}

export function isDeletion({ operation }: Pick<Step, "operation">): boolean {
  return operation === "deleteOptions" || operation === "deleteTargetings";
}

export function targetOf(step: Step): string | undefined {
  return bindingOf(step, "_id")?.id;
}

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

/** The schema of a step. A parsed item has its fields in the order of its schema. */
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

/** Parses the item of a step, which the journal stores as JSON text in `json`. The text of a deletion is empty. */
function withItem(value: unknown): unknown {
  if (!isJsonObject(value) || typeof value.json !== "string") return value;
  return { ...value, item: value.json === "" ? undefined : parseJson(value.json) };
}

const unexpectedCount = z.object({ expected: z.number(), found: z.number() });

export type UnexpectedCount = Fixed<z.infer<typeof unexpectedCount>>;

const stepChange = z.union([
  z.object({
    step: z.number(),
    to: z.enum(["done", "alreadyDone"]),
    _id: z.string().exactOptional(),
    /** The IDs of the objects that the item created inside its main object, in order. Null for an unknown ID. */
    childIds: z.array(z.string().nullable()).exactOptional(),
    contextCount: unexpectedCount.exactOptional(),
  }),
  z.object({
    step: z.number(),
    /**
     * How a step ended without success. `refused`: for a reason that is not the item's, such as a wrong key. When the
     * run is resumed, all but the failed steps are sent again, except where it is unclear who created the object.
     */
    to: z.enum(["failed", "refused", "unknown", "notApplied"]),
    reason,
    /**
     * Set if earlier parts of the change were applied before this step failed, and another step in the same entry
     * decides the outcome. That step usually reverses these parts.
     */
    undone: z.literal(true).exactOptional(),
  }),
  /** The service refused the step, but another change of the run may remove the cause. */
  z.object({ step: z.number(), to: z.literal("deferred"), reason }),
  z.object({ step: z.number(), to: z.literal("pending") }),
  /** The step is not sent any more: other steps or settlements in the same entry replace it. */
  z.object({ step: z.number(), to: z.literal("replaced") }),
  /** It is unknown whether the step was applied. */
  z.object({ step: z.number(), to: z.literal("suspect") }),
]);

export type StepChange = Fixed<z.infer<typeof stepChange>>;

const settlement = z.object({
  object: z.number(),
  outcome: z.enum(["succeeded", "alreadyDone", "skipped", "failed", "notApplied", "unknown"]),
  reason: reason.exactOptional(),
  _id: z.string().exactOptional(),
});

/** The outcome of an object that no step decides, such as an object with an invalid name. */
export type Settlement = Fixed<z.infer<typeof settlement>>;

const amendedObject = reportedObject.pick({ change: true }).extend({ object: z.number() });

/** What the report says about an object, corrected because others changed the object after the plan was made. */
export type AmendedObject = Fixed<z.infer<typeof amendedObject>>;

export const rowItem = z.object({ targeting: z.string(), name: z.string(), contexts });
export type RowItem = Fixed<z.infer<typeof rowItem>>;

const rowsEntry = z.object({
  t: z.literal("rows"),
  index: z.number(),
  line: z.number().exactOptional(),
  items: z.array(rowItem),
});

/** Consecutive rows. Each is one object with one step. `index` and `line` are the position of the first row. */
export interface RowsEntry extends Omit<Fixed<z.infer<typeof rowsEntry>>, "items"> {
  /** The rows. When an entry is written, they already are JSON in UTF-8, separated by commas. */
  readonly items: readonly RowItem[] | Uint8Array;
}

const madeRows = z.object({
  from: z.number(),
  ids: z.array(z.string().nullable()),
});

/** The IDs of options created from rows. `from`: the step of the first row. The steps of the other rows follow it. */
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
  objects: z.array(
    z.object({
      name: z.string(),
      _id: z.string().exactOptional(),
      says: z.string(),
      /** How many Context IDs the object has or loses. For a targeting instead: how many `options` and `groups`. */
      contextIds: z.number().exactOptional(),
      options: z.number().exactOptional(),
      groups: z.number().exactOptional(),
      /** For a deleted group: how many of its sub-options remain. */
      freed: z.number().exactOptional(),
    }),
  ),
});

export type EffectPart = Fixed<z.infer<typeof effectPart>>;

export type EffectObject = EffectPart["objects"][number];

export const waits = z.object({
  digest: z.string(),
  effect: z.string(),
  /** The part of `effect` that the web page shows. Absent if the page shows the whole text. */
  note: z.string().exactOptional(),
  optionsThere: z.number().exactOptional(),
  parts: z.array(effectPart),
  /** Until when approval can be given, in milliseconds since 1970. */
  until: z.number(),
  /** What has changed since the plan was made. If set, approval can no longer be given. */
  stale: z.string().exactOptional(),
  differs: z.array(z.string()).exactOptional(),
  /** Where approval is given, if not on the web page: the client asks the person, or the agent gets a token. */
  elsewhere: z.enum(["client", "token"]).exactOptional(),
});

export const decided = z.object({
  who: z.string(),
  where: z.enum(["client", "view", "page", "token", "terminal"]),
  at,
});
export type Decided = Fixed<z.infer<typeof decided>>;

const runFacts = z.object({
  /** The tool under which the run is reported. Absent if it is the tool of the call. */
  tool: z.string().exactOptional(),
  /** The ID of the targeting, if the run changes only one. */
  within: z.string().exactOptional(),
  /** How many options the targeting `within` has, and its name. Only set if the change is one that needs approval. */
  optionsThere: z.number().exactOptional(),
  withinName: z.string().exactOptional(),
  /** For `delete_targeting`: how many options each targeting has, and how many of these are groups. */
  inside: z.array(z.object({ _id: z.string(), options: z.number(), groups: z.number() })).exactOptional(),
  asked: asked.exactOptional(),
  rows: rowCounts.exactOptional(),
  /** How the sheet is read. Only set if this was detected after the call had been answered. */
  look: inputFile.pick({ sheet: true, seen: true }).exactOptional(),
  /** The effect to approve, as text with counts. It is compared with the effect of a later plan. */
  effect: z.string().exactOptional(),
  unread: z.number().exactOptional(),
  /** For `apply_plan`: the first values that have changed in the service since the plan was made. */
  stale: z.array(staleField).exactOptional(),
  /** For a plan that is not started: the requests that its run would send. */
  foreseen: z.array(plannedRequest).exactOptional(),
  /** For a dry run that adds options: how many existing options would get more Context IDs. */
  extended: z.number().exactOptional(),
  /** For a dry run: a digest of the effect that its caller has seen. */
  shown: z.string().exactOptional(),
  waits: waits.exactOptional(),
  decided: decided.exactOptional(),
  /** Given Context IDs that differ from an existing one only in case, width or Unicode composition. */
  nearIds: nearIds.exactOptional(),
  joinedIds: joinedIds.exactOptional(),
  elsewhere: elsewhere.exactOptional(),
  /** Options that are created although their rows have an ID: the targeting has no option with this ID. */
  missingIds: elsewhere.exactOptional(),
  /** Names that did not match exactly, and the objects that were used for them. */
  takenFor: z.array(takenName).exactOptional(),
  /** Names of new options that equal the name of an existing option except for case and the like. */
  nearNames: z.array(takenName).exactOptional(),
});

export type RunFacts = Fixed<z.infer<typeof runFacts>>;

/**
 * `_id`: the newest option of a list; null if the list is empty. `listed`: the short hashes of all IDs, if the whole
 * list was read. `latest`: of a longer list, the options that are at most `CLOCKS_APART_MS` older than the newest one;
 * absent if some of these were not read.
 */
const newestOptions = z.object({
  _id: z.string().nullable(),
  listed: z.string().optional(),
  latest: texts.readonly().optional(),
});

export type NewestOptions = Readonly<z.infer<typeof newestOptions>>;

/** The number of characters in the short hash of an ID. Its 48 bits are enough to tell some thousand IDs apart. */
const MARK_LENGTH = 8;

/** Returns the short hashes of IDs as one text. A hash takes a third of the space of an ID. */
export function marksOf(ids: readonly string[]): string {
  return ids.map(markOf).join("");
}

export function isMarkedIn(marks: string, id: string): boolean {
  const mark = markOf(id);
  for (let at = 0; at < marks.length; at += MARK_LENGTH) if (marks.startsWith(mark, at)) return true;
  return false;
}

function markOf(id: string): string {
  return createHash("sha256").update(id).digest("base64url").slice(0, MARK_LENGTH);
}

const entry = z.discriminatedUnion("t", [
  z.object({ t: z.literal("objects"), objects: z.array(reportedObject) }),
  z.object({ t: z.literal("settled"), settlements: z.array(settlement) }),
  z.object({ t: z.literal("steps"), steps: z.array(step) }),
  rowsEntry,
  z.object({ t: z.literal("facts"), facts: runFacts }),
  /** The process stopped before it had written the whole plan. The run is planned again after this entry. */
  z.object({ t: z.literal("replan") }),
  z.object({ t: z.literal("planned"), requests: z.number(), at }),
  /** The newest options of a targeting or group before the run added any. They show what the run may have created. */
  z.object({ t: z.literal("newest"), targeting: z.string(), ...newestOptions.shape }),
  /**
   * A request is about to be sent. `machine`: the machine whose clock gave `at`. `ahead`: by how many milliseconds the
   * service's clock is ahead of that clock, if known.
   */
  z.object({
    t: z.literal("send"),
    ...{ steps: numbers, at, again: z.boolean(), machine: z.string().exactOptional() },
    ahead: z.object({ lowest: z.number(), highest: z.number() }).exactOptional(),
  }),
  z.object({
    t: z.literal("answer"),
    at,
    changes: z.array(stepChange),
    steps: z.array(step).exactOptional(),
    settlements: z.array(settlement).exactOptional(),
    amended: z.array(amendedObject).exactOptional(),
    made: madeRows.exactOptional(),
  }),
  /** The request that the last entry `send` announced was not sent. */
  z.object({ t: z.literal("withheld"), at }),
  /** These steps may have been sent while another process had the write lock, so their outcomes are unknown again. */
  z.object({ t: z.literal("late"), steps: numbers, at }),
  z.object({ t: z.literal("waited"), ms: z.number(), statusCode: z.number().exactOptional() }),
  stopEntry,
  z.object({ t: z.literal("resume"), at }),
]);

/** One entry of a journal, which is one line. Reading all entries in order gives the state of the run. */
export type JournalEntry = Exclude<Fixed<z.infer<typeof entry>>, { readonly t: "rows" }> | RowsEntry;

/** When a request was sent, by which machine's clock, and how far the service's clock was ahead of that clock. */
export type Sent = Pick<Extract<JournalEntry, { readonly t: "send" }>, "at" | "machine" | "ahead">;

export const journalEntry: z.ZodType<JournalEntry> = entry;

/** Returns an entry as a line of the journal, in pieces. */
export function journalLine(entry: JournalEntry): readonly (string | Uint8Array)[] {
  if (entry.t === "rows" && entry.items instanceof Uint8Array) {
    const { items, ...rest } = entry;
    return [`${JSON.stringify(rest).slice(0, -1)},"items":[`, items, "]}"];
  }
  const steps =
    "steps" in entry && entry.t !== "send" && entry.t !== "late" ? { steps: entry.steps?.map(storedStep) } : {};
  return [JSON.stringify({ ...entry, ...steps })];
}

function storedStep({ item, ...step }: Step) {
  return { ...step, json: item === undefined ? "" : JSON.stringify(item) };
}

const ids = z.array(z.string());

const formerTargeting = z.object({ kind: z.literal("targeting"), _id: z.string(), name: z.string() });

const formerOption = z.object({
  kind: z.literal("option"),
  _id: z.string(),
  targeting: z.string().exactOptional(),
  name: z.string().exactOptional(),
  type: z.enum(["atomic", "collection"]).exactOptional(),
  /** The ID of the option's group. Null for a top-level option. */
  parent: z.string().nullable().exactOptional(),
  exposeChildren: z.boolean().exactOptional(),
  /** The previous Context IDs among those that the run changes. For a deleted option, all that it had. */
  held: ids.exactOptional(),
  /** How many Context IDs the option had before the run. */
  contextCount: z.number().exactOptional(),
  subOptions: ids.exactOptional(),
});

export type PreviousOption = z.infer<typeof formerOption>;

/** The fields of an option or targeting that others have already set to the values that a step of the run sets. */
export type SameFields = Pick<PreviousOption, "name" | "parent" | "exposeChildren">;

export const previousValueLine = z.discriminatedUnion("kind", [formerTargeting, formerOption]);

export type PreviousValue = z.infer<typeof previousValueLine>;

/** The values of objects before a run changed them. An undo plan is made from them. */
export class PreviousValues {
  readonly #lines = new Map<string, PreviousValue>();

  get size(): number {
    return this.#lines.size;
  }

  option(more: Omit<PreviousOption, "kind">): void {
    const before = this.#lines.get(more._id);
    this.#lines.set(more._id, { ...(before?.kind === "option" && before), kind: "option", ...more });
  }

  record(option: OptionRecord): void {
    this.option({ ...comparedFields(option), ...defined({ targeting: option.targeting }) });
  }

  targeting(_id: string, name: string): void {
    this.#lines.set(_id, { kind: "targeting", _id, name });
  }

  *lines(): Generator<string> {
    for (const line of this.#lines.values()) yield `${JSON.stringify(line)}\n`;
  }
}

const EXISTS = ownReason("EXISTS");

/** Returns the outcome for an existing option that the run does not change. */
export function unchangedOption(object: number, _id: string, onExisting: OnExisting): Settlement {
  if (onExisting === "skip") return { object, outcome: "skipped", reason: EXISTS, _id };
  return { object, outcome: "alreadyDone", _id };
}
