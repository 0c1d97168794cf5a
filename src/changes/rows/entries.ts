import { createHash } from "node:crypto";
import * as z from "zod";
import { inputFile } from "../../files/input-file.ts";
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

/** A field that is filled in when the item is sent. The item of a delete is only its `_id`. */
export type Binding = Fixed<z.infer<typeof binding>>;

/** The value of a binding: an ID, or the object that has it. */
export type Bound = Omit<Binding, "field">;

export function bindingOf(step: { readonly bindings: readonly Binding[] } | undefined, field: Binding["field"]) {
  return step?.bindings.find((binding) => binding.field === field);
}

const weight = z.object({
  items: z.number(),
  /** The number of options to create, including sub-options. */
  options: z.number(),
  groupItems: z.number(),
  contextIds: z.number(),
  /** UTF-8 bytes in the body, including the comma. */
  bytes: z.number(),
});

export type Weight = Fixed<z.infer<typeof weight>>;

/** An option without its bound fields `targeting` and `parent`. */
export type OptionItem = Omit<OptionToCreate, "parent">;

/** The items of steps, without their bound fields. */
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
  /** The object of the item, then the objects created inside it, in order. */
  objects: numbers,
  bindings: z.array(binding),
  weight,
  /** The steps that must have ended, with any outcome, before this step is sent. */
  after: numbers.exactOptional(),
  /** If set, the step reverses an earlier one, and its objects fail for this reason. */
  undoes: reason.exactOptional(),
  /** If set, the step only prepares others: it sets a temporary name, or reverses one of several changes. */
  prepares: z.literal(true).exactOptional(),
  /** The name before a temporary one. */
  formerName: z.string().exactOptional(),
});

export type StepFields = Fixed<z.infer<typeof stepFields>>;

export type StepOf<Operation extends BulkOperation> = {
  readonly [Each in Operation]: StepFields & { readonly operation: Each; readonly item: StepItems[Each] };
}[Operation];

/** The smallest unit that is sent, resent and answered: one item of a request. */
export type Step = StepOf<BulkOperation>;

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

/** The schema of a step. The fields of its item keep the order in which they were created. */
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

/** Returns a step with its item, which a journal stores as JSON text in `json`. The text is empty for a delete. */
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
    /** The IDs of the objects inside, in order; null if an ID is unknown. */
    childIds: z.array(z.string().nullable()).exactOptional(),
    contextCount: unexpectedCount.exactOptional(),
  }),
  z.object({
    step: z.number(),
    /**
     * The step was not applied, or may not have been. `refused`: for a reason outside the item, such as a wrong key.
     * A resumed run sends it again.
     */
    to: z.enum(["failed", "refused", "unknown", "notApplied"]),
    reason,
    /** Another step in the same entry reverses what was applied, and decides the outcome of the objects. */
    undone: z.literal(true).exactOptional(),
  }),
  /** The step was refused, but another change of the run may remove the reason. */
  z.object({ step: z.number(), to: z.literal("deferred"), reason }),
  z.object({ step: z.number(), to: z.literal("pending") }),
  /** Other steps in the same entry replace the step. */
  z.object({ step: z.number(), to: z.literal("replaced") }),
  /** The step was sent, but it is unknown whether it was applied. */
  z.object({ step: z.number(), to: z.literal("suspect") }),
]);

export type StepChange = Fixed<z.infer<typeof stepChange>>;

const settlement = z.object({
  object: z.number(),
  outcome: z.enum(["succeeded", "alreadyDone", "skipped", "failed", "notApplied", "unknown"]),
  reason: reason.exactOptional(),
  _id: z.string().exactOptional(),
});

/** An outcome that was decided without a step, such as a failed check of a name. */
export type Settlement = Fixed<z.infer<typeof settlement>>;

export const rowItem = z.object({ targeting: z.string(), name: z.string(), contexts });
export type RowItem = Fixed<z.infer<typeof rowItem>>;

const rowsEntry = z.object({
  t: z.literal("rows"),
  index: z.number(),
  line: z.number().exactOptional(),
  items: z.array(rowItem),
});

/** Consecutive objects, each added by one step. `index` and `line` are those of the first. */
export interface RowsEntry extends Omit<Fixed<z.infer<typeof rowsEntry>>, "items"> {
  /** The items. When the entry is written: their JSON in UTF-8, separated by commas. */
  readonly items: readonly RowItem[] | Uint8Array;
}

const madeRows = z.object({
  from: z.number(),
  /** The IDs in the answer. Null if the answer contained no ID for an object. */
  ids: z.array(z.string().nullable()),
});

/** Created rows. `from` is the first of the consecutive steps. */
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
  /** The objects that lose data. `says` describes what happens to each. */
  objects: z.array(
    z.object({
      name: z.string(),
      _id: z.string().exactOptional(),
      says: z.string(),
      /** Context IDs in the object; for a targeting, `options` are its options. */
      contextIds: z.number().exactOptional(),
      options: z.number().exactOptional(),
      /** For a deleted group: how many sub-options are not deleted with it. */
      freed: z.number().exactOptional(),
    }),
  ),
});

export type EffectPart = Fixed<z.infer<typeof effectPart>>;

export type EffectObject = EffectPart["objects"][number];

/** What has to be approved before the run may start. */
export const waits = z.object({
  digest: z.string(),
  /** The effect as a text for the model. */
  effect: z.string(),
  /** The sentences of `effect` that the web page shows, if not all. */
  note: z.string().exactOptional(),
  optionsThere: z.number().exactOptional(),
  parts: z.array(effectPart),
  /** Until when the run waits for approval, in milliseconds since 1970. */
  until: z.number(),
  /** What has changed since the plan was made. If set, the effect can no longer be approved. */
  stale: z.string().exactOptional(),
  differs: z.array(z.string()).exactOptional(),
  /** The channel for the approval, if it is not the web page: the client asks the person, or the agent has a token. */
  elsewhere: z.enum(["client", "token"]).exactOptional(),
});

export const decided = z.object({
  who: z.string(),
  where: z.enum(["client", "view", "page", "token", "terminal"]),
  at,
});
export type Decided = Fixed<z.infer<typeof decided>>;

const runFacts = z.object({
  /** The tool under which the run is reported, if it differs from the tool of the call. */
  tool: z.string().exactOptional(),
  /** The targeting of all changed options, if there is only one. */
  within: z.string().exactOptional(),
  /** The number of options and the name of the targeting `within`, if a person must approve what is removed. */
  optionsThere: z.number().exactOptional(),
  withinName: z.string().exactOptional(),
  asked: asked.exactOptional(),
  rows: rowCounts.exactOptional(),
  /** How a sheet is read, if that was unknown when the call was answered. */
  look: inputFile.pick({ sheet: true, seen: true }).exactOptional(),
  /** The effect to approve, with counts. A later plan is compared with it. */
  effect: z.string().exactOptional(),
  /** The number of options that got Context IDs without being read first. */
  unread: z.number().exactOptional(),
  /** For an applied plan: the first values that have changed since it was made. */
  stale: z.array(staleField).exactOptional(),
  /** For a plan that was not started: the requests that it needs. */
  foreseen: z.array(plannedRequest).exactOptional(),
  /** For a dry run: the digest of what the caller was shown. */
  shown: z.string().exactOptional(),
  waits: waits.exactOptional(),
  decided: decided.exactOptional(),
  /** Context IDs that differ from another one only in case, width or Unicode composition. */
  nearIds: nearIds.exactOptional(),
  joinedIds: joinedIds.exactOptional(),
  elsewhere: elsewhere.exactOptional(),
  /** Names that did not match exactly, and the objects used instead. */
  takenFor: z.array(takenName).exactOptional(),
});

export type RunFacts = Fixed<z.infer<typeof runFacts>>;

/**
 * The newest option in a list; null if the list is empty. `listed`: the joined short hashes of all IDs, if the whole
 * list was read. `latest`, for a longer list: the newest options, at most `CLOCKS_APART_MS` apart; absent if not all of
 * these were read.
 */
const newestOptions = z.object({
  _id: z.string().nullable(),
  listed: z.string().optional(),
  latest: texts.readonly().optional(),
});

export type NewestOptions = Readonly<z.infer<typeof newestOptions>>;

/** The length of the short hash of an ID in characters. Its 48 bits distinguish some thousand IDs. */
const MARK_LENGTH = 8;

/** Returns short hashes of IDs, joined. A hash needs a third of the space of its ID. */
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
  /** The process stopped while the plan was recorded. Planning starts again. */
  z.object({ t: z.literal("replan") }),
  z.object({ t: z.literal("planned"), requests: z.number(), at }),
  /** The newest options of a targeting or group, read before anything was sent. */
  z.object({ t: z.literal("newest"), targeting: z.string(), ...newestOptions.shape }),
  z.object({ t: z.literal("send"), steps: numbers, at, again: z.boolean() }),
  z.object({
    t: z.literal("answer"),
    at,
    changes: z.array(stepChange),
    steps: z.array(step).exactOptional(),
    settlements: z.array(settlement).exactOptional(),
    made: madeRows.exactOptional(),
  }),
  /** The last `send` entry was written, but its request was not sent. */
  z.object({ t: z.literal("withheld"), at }),
  /** The steps may have been sent while another process was writing, so their outcomes are in doubt again. */
  z.object({ t: z.literal("late"), steps: numbers, at }),
  z.object({ t: z.literal("waited"), ms: z.number(), statusCode: z.number().exactOptional() }),
  stopEntry,
  z.object({ t: z.literal("resume"), at }),
]);

/** One line of a journal. Applying all lines in order gives the state of the run. */
export type JournalEntry = Exclude<Fixed<z.infer<typeof entry>>, { readonly t: "rows" }> | RowsEntry;

export const journalEntry: z.ZodType<JournalEntry> = entry;

/** Returns an entry as pieces of one line. */
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
  /** The group of the option. Null for a top-level option. */
  parent: z.string().nullable().exactOptional(),
  exposeChildren: z.boolean().exactOptional(),
  /** The previous Context IDs that the run changes; for a deleted option, all. */
  held: ids.exactOptional(),
  /** The size of an option whose Context IDs the run changes. */
  contextCount: z.number().exactOptional(),
  subOptions: ids.exactOptional(),
});

export type PreviousTargeting = z.infer<typeof formerTargeting>;

export type PreviousOption = z.infer<typeof formerOption>;

export const previousValueLine = z.discriminatedUnion("kind", [formerTargeting, formerOption]);

/** The values before a run, from which an undo plan is made. */
export class PreviousValues {
  readonly #lines = new Map<string, PreviousOption | PreviousTargeting>();

  get size(): number {
    return this.#lines.size;
  }

  option(more: Omit<PreviousOption, "kind">): void {
    const before = this.#lines.get(more._id);
    this.#lines.set(more._id, { ...(before?.kind === "option" && before), kind: "option", ...more });
  }

  record(option: OptionRecord): void {
    const { targeting } = option;
    this.option({ ...comparedFields(option), ...(targeting !== undefined && { targeting }) });
  }

  targeting(_id: string, name: string): void {
    this.#lines.set(_id, { kind: "targeting", _id, name });
  }

  *lines(): Generator<string> {
    for (const line of this.#lines.values()) yield `${JSON.stringify(line)}\n`;
  }
}

const EXISTS = ownReason("EXISTS");

/** Returns the outcome of an existing option that stays as it is. */
export function unchangedOption(object: number, _id: string, onExisting: OnExisting): Settlement {
  if (onExisting === "skip") return { object, outcome: "skipped", reason: EXISTS, _id };
  return { object, outcome: "alreadyDone", _id };
}
