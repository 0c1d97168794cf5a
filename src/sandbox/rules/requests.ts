import * as z from "zod";
import { isJsonObject } from "../../platform/json.ts";
import { LIMITS } from "../../spec/limits.ts";
import { contextIdProblem, isUlid, nameProblem, trimContextId } from "../../spec/names-and-contexts.ts";

// The schemas of requests (management-api 2.1, 4, 8; partly assumed). Messages are like those of class-validator.

const ONLY_LETTERS = "must contain only Korean letters, English letters, digits, spaces and ~ % & + -";

const NAME_MESSAGES = {
  tooShort: `must be longer than or equal to ${LIMITS.nameMinLength.value} characters`,
  tooLong: `must be shorter than or equal to ${LIMITS.nameMaxLength.value} characters`,
  outerSpace: "must not start or end with a space",
  characters: ONLY_LETTERS,
  decomposed: ONLY_LETTERS,
} as const;

const CONTEXT_RULES = {
  empty: "must not be empty",
  tooLong: `must be at most ${LIMITS.contextIdBytes.value} bytes`,
  halfCharacter: "must not contain half of a character (an unpaired surrogate)",
} as const;

const STRING = { error: "must be a string" };
const ARRAY = { error: "must be an array" };
const OBJECT = { error: "must be an object" };

const name = z.string(STRING).check((ctx) => {
  const problem = nameProblem(ctx.value);
  const [rule] = problem?.rules ?? [];
  if (rule !== undefined) ctx.issues.push({ code: "custom", input: ctx.value, message: NAME_MESSAGES[rule] });
});

const ulid = z.string({ error: "must be a valid ULID" }).refine(isUlid, { error: "must be a valid ULID" });

/** A Context ID. Parsing trims it. */
const contextId = z
  .string(STRING)
  .transform(trimContextId)
  .check((ctx) => {
    const problem = contextIdProblem(ctx.value);
    if (problem !== undefined)
      ctx.issues.push({ code: "custom", input: ctx.value, message: CONTEXT_RULES[problem.rule] });
  });

const flag = z.boolean({ error: "must be a boolean value" });
const contexts = z.array(contextId, ARRAY);

const child = z.strictObject({ name, contexts: contexts.optional() }, OBJECT);

const optionFields = {
  name,
  type: z
    .enum(["atomic", "collection"], { error: "must be one of the following values: atomic, collection" })
    .optional(),
  contexts: contexts.optional(),
  children: z.array(child, ARRAY).optional(),
  exposeChildren: flag.optional(),
};

const optionOfTargeting = z.strictObject(optionFields, OBJECT);
const optionToAdd = z.strictObject({ targeting: ulid, ...optionFields, parent: ulid.optional() }, OBJECT);

const targetingToCreate = z.strictObject({ name, options: z.array(optionOfTargeting, ARRAY).optional() }, OBJECT);

const contextChanges = z
  .strictObject({ add: contexts.optional(), remove: contexts.optional(), set: contexts.optional() }, OBJECT)
  .refine((changes) => changes.set === undefined || (changes.add === undefined && changes.remove === undefined), {
    error: "must not have set together with add or remove",
  });

const changeFields = {
  name: name.optional(),
  parent: ulid.nullable().optional(),
  exposeChildren: flag.optional(),
  contexts: contextChanges.optional(),
};

const optionChanges = z.strictObject(changeFields, OBJECT);
const optionUpdate = z.strictObject({ _id: ulid, ...changeFields }, OBJECT);
const targetingRename = z.strictObject({ _id: ulid, name }, OBJECT);

function listOf<T extends z.ZodType>(entry: T, limit: number) {
  return z
    .array(entry, ARRAY)
    .min(1, { error: "must contain at least 1 elements" })
    .max(limit, { error: `must contain no more than ${limit} elements` });
}

const { targetingItems, optionItems } = LIMITS;
const whole = { error: "the body must be an object" };

export const BODIES = {
  createTargetings: z.strictObject({ items: listOf(targetingToCreate, targetingItems.value) }, whole),
  renameTargetings: z.strictObject({ items: listOf(targetingRename, targetingItems.value) }, whole),
  deleteTargetings: z.strictObject({ ids: listOf(ulid, targetingItems.value) }, whole),
  addOptions: z.strictObject({ items: listOf(optionToAdd, optionItems.value) }, whole),
  updateOptions: z.strictObject({ items: listOf(optionUpdate, optionItems.value) }, whole),
  deleteOptions: z.strictObject({ ids: listOf(ulid, optionItems.value) }, whole),
  createTargeting: targetingToCreate,
  renameTargeting: z.strictObject({ name }, whole),
  addOption: optionToAdd,
  updateOption: optionChanges,
} as const;

export type Bodies = { readonly [K in keyof typeof BODIES]: z.output<(typeof BODIES)[K]> };

function queryNumber(min: number, max: number) {
  const message =
    max === Number.MAX_SAFE_INTEGER
      ? `must be an integer number not less than ${min}`
      : `must be an integer number from ${min} to ${max}`;
  return z
    .string({ error: message })
    .regex(/^\d{1,15}$/, { error: message })
    .transform(Number)
    .refine((value) => value >= min && value <= max, { error: message });
}

export const QUERIES = {
  listOptions: z.strictObject({
    limit: queryNumber(1, LIMITS.listLimit.value).default(LIMITS.listLimit.value),
    offset: queryNumber(0, Number.MAX_SAFE_INTEGER).default(0),
    parent: ulid.optional(),
  }),
  getOption: z.strictObject({
    limit: queryNumber(1, LIMITS.getLimit.value).default(LIMITS.getLimit.value),
    offset: queryNumber(0, LIMITS.getOffset.value).default(0),
  }),
  getTargeting: z.strictObject({}),
} as const;

export type NewOption = z.output<typeof optionOfTargeting>;
export type OptionToAdd = z.output<typeof optionToAdd>;
export type TargetingToCreate = z.output<typeof targetingToCreate>;
export type TargetingRename = z.output<typeof targetingRename>;
export type OptionUpdate = z.output<typeof optionUpdate>;
export type ContextChanges = z.output<typeof contextChanges>;
export type ListQuery = z.output<typeof QUERIES.listOptions>;
export type GetQuery = z.output<typeof QUERIES.getOption>;

/** The parsed value of a valid body or query, or all problems of an invalid one (management-api 2.2). */
type Validated<T> = { readonly value: T } | { readonly problems: readonly string[] };

/** Validates a body or a query. Each problem is a sentence that begins with the path of the field, if there is one. */
export function validate<T>(schema: z.ZodType<T>, value: unknown): Validated<T> {
  const result = schema.safeParse(value);
  return result.success ? { value: result.data } : { problems: result.error.issues.flatMap(sentences) };
}

function sentences(issue: z.core.$ZodIssue): readonly string[] {
  const path = issue.path.map(String).join(".");
  const prefix = path === "" ? "" : `${path}.`;
  if (issue.code === "unrecognized_keys") return issue.keys.map((key) => `${prefix}property ${key} should not exist`);
  return [path === "" ? issue.message : `${path} ${issue.message}`];
}

export type BodyOperation = keyof typeof BODIES;

/** Returns problems with the whole request (management-api 8.1). Invalid entries count as well. */
export function requestProblems(operation: BodyOperation, body: unknown): readonly string[] {
  const items = "items" in BODIES[operation].shape ? listAt(body, "items") : [body];
  const problems: string[] = [];
  const count = (what: string, found: number, limit: number): void => {
    if (found > limit) problems.push(`items must contain no more than ${limit} ${what} in total`);
  };
  count("Context IDs", sum(items, contextsSent), LIMITS.requestContextIds.value);
  if (operation === "createTargetings" || operation === "createTargeting") {
    const options = items.flatMap((item) => listAt(item, "options"));
    count("options, sub-options included,", sum(options, optionsSent), LIMITS.targetingCreateOptions.value);
  }
  if (operation === "addOptions" || operation === "addOption") {
    count("options, sub-options included,", sum(items, optionsSent), LIMITS.optionAddOptions.value);
    count("items that create an option group or have parent", items.filter(isGroupAdd).length, LIMITS.groupItems.value);
  }
  if (operation === "updateOptions") {
    count("items with parent", items.filter((item) => has(item, "parent")).length, LIMITS.groupItems.value);
    problems.push(...repeatedIds(items));
  }
  return problems;
}

function repeatedIds(items: readonly unknown[]): readonly string[] {
  const seen = new Set<unknown>();
  return items.flatMap((item, index) => {
    const id = fieldOf(item, "_id");
    if (typeof id !== "string") return [];
    if (seen.has(id)) return [`items.${index}._id must be unique within the request`];
    seen.add(id);
    return [];
  });
}

function isGroupAdd(item: unknown): boolean {
  return fieldOf(item, "type") === "collection" || has(item, "children") || has(item, "parent");
}

function optionsSent(option: unknown): number {
  return 1 + listAt(option, "children").length;
}

function contextsSent(item: unknown): number {
  const contexts = fieldOf(item, "contexts");
  const own = Array.isArray(contexts)
    ? contexts.length
    : sum(["add", "remove", "set"], (part) => listAt(contexts, part).length);
  return own + sum([...listAt(item, "children"), ...listAt(item, "options")], contextsSent);
}

function sum<T>(list: readonly T[], weight: (entry: T) => number): number {
  return list.reduce((total, entry) => total + weight(entry), 0);
}

function listAt(value: unknown, key: string): readonly unknown[] {
  const list = fieldOf(value, key);
  return Array.isArray(list) ? list : [];
}

function has(value: unknown, key: string): boolean {
  return fieldOf(value, key) !== undefined;
}

function fieldOf(value: unknown, key: string): unknown {
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}
