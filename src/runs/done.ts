/**
 * What a run did to things of the service, as plain data: what it changed, as far as it is known to have been applied,
 * and what was there before. The way back is planned from it.
 */
export interface Done {
  readonly targetings: readonly DoneTargeting[];
  readonly options: readonly DoneOption[];
  /** Objects of which it cannot be told whether the run changed them. */
  readonly unknown: readonly DoubtedObject[];
  /** Objects whose requests were announced and not answered: whether the run changed them can still be found out. */
  readonly unresolved: readonly DoubtedObject[];
}

/** An object that a run may have changed. `targeting` is absent where it is not known. */
export interface DoubtedObject {
  readonly _id?: string;
  readonly name?: string;
  readonly targeting?: string;
}

/** What a run did to one targeting. */
export type DoneTargeting =
  | { readonly did: "created"; readonly _id: string; readonly name: string }
  | { readonly did: "changed"; readonly _id: string; readonly name: Went<string> }
  /** `name` is absent where it was not kept. */
  | { readonly did: "deleted"; readonly _id: string; readonly name?: string | undefined };

/** A field that a run wrote: its value before, where that is known, and the one that the run left. */
export interface Went<Value> {
  readonly from?: Value | undefined;
  readonly to: Value;
}

/** An option as it was at one moment. */
export interface OptionState {
  readonly name: string;
  readonly type: "atomic" | "collection";
  /** Null at the top level. */
  readonly parent: string | null;
  readonly exposeChildren?: boolean | undefined;
  readonly contexts: readonly string[];
}

/** What a run did to one option; `targeting` is absent where it is not known. */
export type DoneOption =
  /** As the run left it. */
  | { readonly did: "created"; readonly _id: string; readonly targeting: string; readonly left: OptionState }
  | ChangedOption
  /** `before` is absent where it was not kept. */
  | {
      readonly did: "deleted";
      readonly _id: string;
      readonly targeting?: string | undefined;
      readonly before?: OptionState | undefined;
    };

/** An option that was there before a run and is there after it. */
export interface ChangedOption {
  readonly did: "changed";
  readonly _id: string;
  readonly targeting?: string | undefined;
  readonly name?: Went<string> | undefined;
  readonly parent?: Went<string | null> | undefined;
  readonly exposeChildren?: Went<boolean> | undefined;
  /** Context IDs that the run really added and removed, and how many of which it is not known whether they were there. */
  readonly contexts?:
    | { readonly added: readonly string[]; readonly removed: readonly string[]; readonly unsure: number }
    | undefined;
}
