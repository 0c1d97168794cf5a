import type { ManagementApi } from "../../api/management.ts";
import type { ByteSource } from "../../platform/held-folder.ts";
import type { Done } from "../../runs/kind.ts";
import type { OptionType } from "../../spec/records.ts";
import type { BaseFile } from "../call.ts";
import type { StaleField } from "../rows/entries.ts";

/** Where an option will be: null for the top level, a group that is there, or one that is created (its item). */
export type DesiredPlace = null | { readonly _id: string } | { readonly item: number };

/** An option as it is now. */
interface OptionNow {
  readonly name: string;
  readonly type: OptionType;
  readonly parent: string | null;
  readonly exposeChildren?: boolean | undefined;
  readonly contexts: readonly string[];
  /** How many Context IDs it holds, where not all of them were read. */
  readonly contextCount?: number | undefined;
}

/** An option as it was when the change was planned. */
type SeenOption = Pick<OptionNow, "name" | "parent" | "type">;

/** An option to create. A group stands before the options that go into it. */
interface DesiredCreation extends Omit<OptionNow, "parent" | "contextCount"> {
  readonly kind: "create";
  readonly line: number;
  readonly parent: DesiredPlace;
}

/** An option to change; fields that stay are absent. */
export interface DesiredUpdate {
  readonly kind: "change";
  readonly line: number;
  readonly _id: string;
  readonly seen: SeenOption;
  readonly name?: string | undefined;
  readonly parent?: DesiredPlace | undefined;
  readonly exposeChildren?: boolean | undefined;
  readonly contexts?: { readonly add: readonly string[]; readonly remove: readonly string[] } | undefined;
}

/** An option to delete. */
interface DesiredDeletion {
  readonly kind: "delete";
  readonly _id: string;
  readonly seen: SeenOption;
}

export type DesiredItem = DesiredCreation | DesiredUpdate | DesiredDeletion;

/** The changes of a planned desired state of one targeting, and what is there now. */
export interface DesiredChanges {
  /** Without an `_id` it is created; `rename` is another name that it gets; with `delete` it goes with all options. */
  readonly targeting: {
    readonly _id?: string | undefined;
    readonly name: string;
    readonly rename?: string | undefined;
    readonly delete?: true | undefined;
  };
  readonly items: readonly DesiredItem[];
  /** Positions of items whose wish the service fulfils already. */
  readonly alreadyDone: ReadonlySet<number>;
  /** With any of these nothing is sent. */
  readonly stale: readonly StaleField[];
  /** All options of the targeting, by ID. */
  readonly there: ReadonlyMap<string, OptionNow>;
  /** Options of which it cannot be told whether the undone run made them: they are left alone, and reported. */
  readonly unclear?: readonly { readonly _id: string; readonly name: string }[] | undefined;
  /** The changes of other targetings that the same plan makes. */
  readonly further?: readonly DesiredChanges[] | undefined;
}

/**
 * What a run did that is undone: as far as its answers tell, and with what was found out about its requests that were
 * not answered. Throws the ApiError of a read.
 */
export type ResolveUndone = () => Promise<{ readonly known: Done; readonly done: Done }>;

/**
 * Reads a plan as it is kept, and looks again at all that it speaks of. Throws a FileError where it cannot be read, and
 * the ApiError of a read.
 */
export type LookAgain = (
  plan: ByteSource,
  reading: {
    readonly api: ManagementApi;
    readonly signal: AbortSignal;
    readonly resolve?: ResolveUndone | undefined;
  },
) => Promise<DesiredChanges>;

/** How the objects of an applied plan ended, by their position in the run. */
export interface AppliedObjects {
  /** Whether the object is as the plan wants it. */
  isDone(object: number): boolean;
  idOf(object: number): string | undefined;
}

/**
 * Puts what an applied plan wrote into the base of its file, as it is now. Throws a FileError where the base cannot be
 * read or written, and the ApiError of a read.
 */
export type RenewBase = (
  base: BaseFile,
  applied: { readonly plan: ByteSource; readonly objects: AppliedObjects },
  reading: { readonly api: ManagementApi; readonly signal: AbortSignal },
) => Promise<void>;
