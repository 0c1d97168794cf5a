import type * as z from "zod";
import { LIMITS } from "../../spec/limits.ts";
import { BODIES } from "./request-schemas.ts";

/** A request part that passed validation, or every problem found in it (management-api 2.2). */
export type Validated<T> = { readonly value: T } | { readonly problems: readonly string[] };

/** Checks a value against a schema. Each problem is one sentence that starts with the path of the field. */
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

/** A write that has a body. */
export type BodyOperation = keyof typeof BODIES;

/**
 * The limits that count over a whole request (management-api 8.1): Context IDs, options, option-group items, and the
 * same `_id` twice in an option update. Counts what is there, even in a body that is wrong in other ways, so that the
 * answer lists every problem. Gives the problems.
 */
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

/** How many Context IDs an item sends, those of its options and sub-options included. */
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
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
  return Object.getOwnPropertyDescriptor(value, key)?.value;
}
