import * as z from "zod";

/** A regular option or an option group (management-api 2.1). */
export type OptionType = "atomic" | "collection";

/** A targeting (management-api 2; fields are assumed). Unknown fields are allowed. */
export const targetingRecord = z.looseObject({
  _id: z.string(),
  name: z.string(),
  optionCount: z.number().optional(),
  createdAt: z.string().optional(),
  updatedAt: z.string().optional(),
});
export type TargetingRecord = z.infer<typeof targetingRecord>;

/** An option (management-api 2.1; `targeting` and `parent` are assumed). */
export const optionRecord = z.looseObject({
  _id: z.string(),
  name: z.string(),
  type: z.enum(["atomic", "collection"]).optional(),
  contextCount: z.number().optional(),
  createdAt: z.string().optional(),
  updatedAt: z.string().optional(),
  targeting: z.string().optional(),
  parent: z.string().nullish(),
  exposeChildren: z.boolean().optional(),
  children: z.array(z.string()).optional(),
  childCount: z.number().optional(),
});
export type OptionRecord = z.infer<typeof optionRecord>;

/** Returns the fields to compare besides Context IDs, with defaults. Only groups have `exposeChildren`. */
export function comparedFields({ _id, name, type, childCount, parent = null, exposeChildren = false }: OptionRecord) {
  const kind = type ?? (childCount === undefined ? "atomic" : "collection");
  return { _id, name, type: kind, parent, ...(kind === "collection" && { exposeChildren }) };
}

/** A page of a list of options. `total` is how many options the whole list has, if the service says so (assumed). */
export interface OptionPage {
  readonly items: readonly OptionRecord[];
  readonly total?: number;
  /** When the service answered (header `Date`), in milliseconds since 1970. Absent if the answer has no such header. */
  readonly serverTime?: number;
}

/** The answer of Get an Option, with one page of Context IDs (assumed). */
export interface OptionWithContexts {
  readonly option: OptionRecord;
  readonly contexts: readonly string[];
  readonly serverTime?: number;
}

/** An option in the request that creates it (management-api 2.1, 4; fields are assumed). */
export interface OptionToCreate {
  readonly name: string;
  readonly type?: OptionType;
  readonly contexts?: readonly string[];
  readonly parent?: string;
  readonly children?: readonly Pick<OptionToCreate, "name" | "contexts">[];
  readonly exposeChildren?: boolean;
}

export interface CreateTargetingItem {
  readonly name: string;
  readonly options?: readonly OptionToCreate[];
}

/** Changes of Context IDs (management-api 2.1). `set` replaces all, so it cannot be combined with the others. */
export interface ContextChanges {
  readonly add?: readonly string[];
  readonly remove?: readonly string[];
  readonly set?: readonly string[];
}

/** Changes of an option (management-api 4). Absent fields do not change. `parent: null` moves it to the top level. */
export interface OptionChanges {
  readonly name?: string;
  readonly parent?: string | null;
  readonly exposeChildren?: boolean;
  readonly contexts?: ContextChanges;
}

export const itemError = z.looseObject({
  statusCode: z.number().optional(),
  errorCode: z.string().optional(),
  detail: z.record(z.string(), z.unknown()).optional(),
  message: z.unknown().optional(),
});
export type ItemError = z.infer<typeof itemError>;

/** One entry of `results` in the answer to a bulk request (management-api 2.3). */
const bulkResult = z.looseObject({
  index: z.int(),
  success: z.boolean(),
  data: z.record(z.string(), z.unknown()).nullish(),
  error: itemError.nullish(),
});
export type BulkResult = z.infer<typeof bulkResult>;
