import type { SplitCells } from "../../files/cells.ts";
import type { OptionType } from "../../spec/records.ts";

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
