import type { SplitCells } from "../../files/cells.ts";
import type { SheetLook } from "../../files/looked-at.ts";
import type {
  Asked,
  NearIds,
  Outcome,
  Reason,
  ReportedObject,
  RowCounts,
  StopCause,
  TakenName,
} from "../../runs/outcome.ts";
import type { CreateTargetingItem, OptionChanges, OptionToCreate, OptionType } from "../../spec/records.ts";
import type { BulkOperation } from "../../spec/routes.ts";

/**
 * A field of a request item that is filled in when the request is made: a known ID, or the ID of an object of this run,
 * which must have been made before. A delete binds the field `_id`, and its item is that ID alone.
 */
export interface Binding {
  readonly field: "targeting" | "parent" | "_id";
  readonly id?: string;
  readonly object?: number;
}

/** The share of one request item in the limits of management-api 8.1. */
export interface Weight {
  readonly items: number;
  /** Options with sub-options, for requests that create options. */
  readonly options: number;
  readonly groupItems: number;
  readonly contextIds: number;
  /** UTF-8 bytes in the body, the comma included. */
  readonly bytes: number;
}

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

/** The fields of steps of every operation. */
export interface StepFields {
  /** The position in the run's steps. */
  readonly id: number;
  /**
   * Positions in the run's objects: first the one that the item is about, then those that it makes inside, in order.
   */
  readonly objects: readonly number[];
  readonly bindings: readonly Binding[];
  readonly weight: Weight;
  /** Steps that must be settled before this one leaves, however they ended. */
  readonly after?: readonly number[];
  /** This step takes back what was done for its objects, which then fail for this reason. */
  readonly undoes?: Reason;
  /** This step only prepares others (a temporary name): its success settles nothing. */
  readonly prepares?: true;
  /** The name that the thing had before this step gave it a temporary one. */
  readonly formerName?: string;
}

/** A step of one operation, or of one out of several. */
export type StepOf<Operation extends BulkOperation> = {
  readonly [Each in Operation]: StepFields & { readonly operation: Each; readonly item: StepItems[Each] };
}[Operation];

/** One item of one request: the smallest thing that is sent, resent and answered. */
export type Step = StepOf<BulkOperation>;

/** How many Context IDs an option holds by the service's answer, which is not what was expected. */
export interface UnexpectedCount {
  readonly expected: number;
  readonly found: number;
}

/** A change of where one step stands, as the journal keeps it. */
export type StepChange =
  | {
      readonly step: number;
      readonly to: "done" | "alreadyDone";
      /** The ID of the object that the item is about. */
      readonly _id?: string;
      /** The IDs of the objects that it made inside, in order, as far as known. */
      readonly childIds?: readonly (string | null)[];
      /** How many Context IDs its option holds now, where that is not what was expected. */
      readonly contextCount?: UnexpectedCount;
    }
  | {
      readonly step: number;
      /**
       * `refused` means failed for a reason outside of the item (a wrong key), so that a resumed run tries
       * again.
       */
      readonly to: "failed" | "refused" | "unknown" | "notApplied";
      readonly reason: Reason;
      /** Another step of the same entry takes back what was done before; it settles the objects. */
      readonly undone?: true;
    }
  /** The service refused it, and another change of this run may make it work: it waits for that one. */
  | { readonly step: number; readonly to: "deferred"; readonly reason: Reason }
  /** A deferred step is tried again. */
  | { readonly step: number; readonly to: "pending" }
  /** Other steps of the same entry do its work instead. */
  | { readonly step: number; readonly to: "replaced" }
  /** The step was sent, and may or may not have been applied. */
  | { readonly step: number; readonly to: "suspect" };

/** An object whose outcome needs no request. */
export interface Settlement {
  readonly object: number;
  readonly outcome: Outcome;
  readonly reason?: Reason;
  readonly _id?: string;
}

/** An option without sub-options, as it is sent. */
export interface RowItem {
  readonly targeting: string;
  readonly name: string;
  readonly contexts?: readonly string[];
}

/**
 * Objects that follow each other, each with the one step that adds it to a targeting: most of a large
 * file. `index` and `line` are those of the first.
 */
export interface RowsEntry {
  readonly t: "rows";
  readonly index: number;
  readonly line?: number;
  /** Where an entry is written: their JSON in UTF-8, separated by commas, which is copied as it is. */
  readonly items: readonly RowItem[] | Uint8Array;
}

/** Rows that were added: the first of steps that follow each other, and the ID of what each of them made. */
export interface MadeRows {
  readonly from: number;
  /** Null where the answer named none. */
  readonly ids: readonly (string | null)[];
}

/** Something that is no longer as it was when a plan was made, so that it matters. */
export interface StaleField {
  readonly _id?: string | undefined;
  readonly name: string;
  readonly field: string;
  readonly planned?: string | number | boolean | null | undefined;
  readonly service?: string | number | boolean | null | undefined;
}

/** Facts about a run as a whole, for its report. */
export interface RunFacts {
  /** The tool that the run is told under, where that is not the one of its call. */
  readonly tool?: string;
  /** The one targeting in which all options are that it changes. */
  readonly within?: string;
  /** How many options that targeting has, where a person has to approve what is taken away from it. */
  readonly optionsThere?: number;
  readonly asked?: Asked;
  readonly rows?: RowCounts;
  /** Of a sheet of which this was not known when the call answered: how its rows are read. */
  readonly look?: SheetLook;
  /** How many options got Context IDs without being read before, so that it is not known what they held. */
  readonly unread?: number;
  /** Of a plan that is applied: what has changed since it was planned, the first of it. */
  readonly stale?: readonly StaleField[];
  /** Of a plan that waits: the requests that it takes, as far as what was there is known. */
  readonly foreseen?: readonly PlannedRequest[];
  /** Of a dry run: the digest of all that was shown. */
  readonly shown?: string;
  /** Names that did not match exactly. */
  readonly takenFor?: readonly TakenName[];
  /** Context IDs that differ from one that their option holds only in case, width or composition. */
  readonly nearIds?: NearIds;
  /** The effect that a person was asked to confirm, as a sentence of counts: a later effect is compared with it. */
  readonly effect?: string;
  /** What a person is to decide on the page, where the run waits for that. */
  readonly waits?: WaitsForPerson;
  /** Who agreed, and where. */
  readonly decided?: Decided;
}

/** What a planned request would carry: items, Context IDs and bytes. */
export interface PlannedRequest {
  readonly operation: BulkOperation;
  readonly items: number;
  readonly contextIds: number;
  readonly bytes: number;
}

/** What a run waits for: a person's decision about exactly this effect. Times are milliseconds since 1970. */
interface WaitsForPerson {
  readonly digest: string;
  /** The effect as the model is told it. */
  readonly effect: string;
  /** What happens, by kind and by name. */
  readonly parts: readonly EffectPart[];
  readonly until: number;
  /** What has changed since: it cannot be agreed to any more. */
  readonly stale?: string;
  /** Where it is approved instead of on the page: the client still asks, or the agent holds a token. */
  readonly elsewhere?: "client" | "token";
}

/** What a run does to the objects of one kind. */
export interface EffectPart {
  readonly title: string;
  readonly count: number;
  readonly objects: readonly EffectObject[];
}

/** An object of a kind, and what becomes of it. */
export interface EffectObject {
  readonly name: string;
  readonly _id?: string;
  readonly says: string;
}

/** A decision about a run: by whom, where and when. */
export interface Decided {
  readonly who: string;
  readonly where: "client" | "view" | "page" | "token" | "terminal";
  readonly at: number;
}

/** One line of a run's journal. Applying all lines in order gives the run's state. */
export type JournalEntry =
  | { readonly t: "objects"; readonly objects: readonly ReportedObject[] }
  | { readonly t: "settled"; readonly settlements: readonly Settlement[] }
  | { readonly t: "steps"; readonly steps: readonly Step[] }
  | RowsEntry
  /** A crash cut the plan off before anything was sent: planning starts again. */
  | { readonly t: "replan" }
  | { readonly t: "facts"; readonly facts: RunFacts }
  | { readonly t: "planned"; readonly requests: number; readonly at: number }
  /** The newest top-level option of a targeting before anything was sent; null where it had none. */
  | { readonly t: "newest"; readonly targeting: string; readonly _id: string | null }
  | { readonly t: "send"; readonly steps: readonly number[]; readonly at: number; readonly again: boolean }
  | {
      readonly t: "answer";
      readonly at: number;
      readonly changes: readonly StepChange[];
      readonly steps?: readonly Step[];
      readonly settlements?: readonly Settlement[];
      readonly made?: MadeRows;
    }
  /** The request that was announced last did not leave. */
  | { readonly t: "withheld"; readonly at: number }
  /** A request with these steps may have left while another process was writing: they are in doubt again. */
  | { readonly t: "late"; readonly steps: readonly number[]; readonly at: number }
  | { readonly t: "waited"; readonly ms: number }
  | { readonly t: "stop"; readonly cause: StopCause; readonly at: number; readonly reason?: Reason }
  | { readonly t: "resume"; readonly at: number };

/** What happens to an option whose name the targeting already has. */
export type OnExisting = "fail" | "skip" | "addContexts";

/** A sub-option as a caller gives it. */
export interface ChildInput {
  readonly name: string;
  readonly contexts?: readonly string[] | undefined;
}

/** An option to create as a caller gives it. */
export interface OptionInput extends ChildInput {
  readonly type?: OptionType | undefined;
  readonly children?: readonly ChildInput[] | undefined;
  readonly exposeChildren?: boolean | undefined;
}

/** An item of `bulk_add_options`. */
export interface AddOptionInput extends OptionInput {
  /** Of a row of a file: the option that it is about, where the targeting has it. */
  readonly _id?: string | undefined;
  readonly parent?: string | undefined;
  readonly parentName?: string | undefined;
}

/** An item of `update_contexts`. */
export interface UpdateContextsItem {
  readonly _id?: string | undefined;
  readonly _ids?: readonly string[] | undefined;
  readonly name?: string | undefined;
  readonly names?: readonly string[] | undefined;
  readonly add?: readonly string[] | undefined;
  readonly remove?: readonly string[] | undefined;
  readonly set?: readonly string[] | undefined;
  readonly addFrom?: readonly string[] | undefined;
  readonly removeFrom?: readonly string[] | undefined;
  /** Of a row with an `_id`: the name that it gives the option, which has to agree. */
  readonly calledName?: string | undefined;
  /** Of a row: the cells of Context IDs that were taken apart. */
  readonly split?: SplitCells | undefined;
}
