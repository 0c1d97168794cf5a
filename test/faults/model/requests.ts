import * as z from "zod";
import { isContextId, isName, REQUEST } from "./facts.ts";

/** The bulk operations (management-api 4). */
export type BulkOperation = BulkRequest["operation"];

// The bodies of requests, as in management-api and wire-assumptions. Unknown fields are a validation error.

const id = z.string().regex(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/, "no ULID");
const name = z.string().refine(isName, "no name");
const contexts = z.array(z.string().refine(isContextId, "no Context ID"));
const child = z.strictObject({ name, contexts: contexts.optional() });
const option = z.strictObject({
  name,
  type: z.enum(["atomic", "collection"]).optional(),
  contexts: contexts.optional(),
  children: z.array(child).optional(),
  exposeChildren: z.boolean().optional(),
});
const newTargeting = z.strictObject({ name, options: z.array(option).optional() });
const addedOption = option.extend({ targeting: id, parent: id.optional() });
const rename = z.strictObject({ _id: id, name });
const update = z.strictObject({
  _id: id,
  name: name.optional(),
  parent: id.nullable().optional(),
  exposeChildren: z.boolean().optional(),
  contexts: z
    .strictObject({ add: contexts.optional(), remove: contexts.optional(), set: contexts.optional() })
    .refine(({ add, remove, set }) => set === undefined || (add === undefined && remove === undefined), "set not alone")
    .optional(),
});

export type NewOption = z.infer<typeof option>;
export type NewTargeting = z.infer<typeof newTargeting>;
export type AddedOption = z.infer<typeof addedOption>;
export type Rename = z.infer<typeof rename>;
export type Update = z.infer<typeof update>;

/** A bulk request after it was parsed. */
export type BulkRequest =
  | { readonly operation: "createTargetings"; readonly items: readonly NewTargeting[] }
  | { readonly operation: "addOptions"; readonly items: readonly AddedOption[] }
  | { readonly operation: "renameTargetings"; readonly items: readonly Rename[] }
  | { readonly operation: "updateOptions"; readonly items: readonly Update[] }
  | { readonly operation: "deleteTargetings" | "deleteOptions"; readonly items: readonly string[] };

/** A request that breaks a rule which the engine knows. The engine must never send such a request. */
export class ImproperRequest extends Error {}

/**
 * Reads the JSON list of a request's items. Throws an ImproperRequest if the request exceeds a limit of management-api
 * 8.1, has an unknown field, an invalid name or an invalid ID, or names one option twice.
 */
export function readRequest(operation: BulkOperation, list: string): BulkRequest {
  const request = parsed(operation, list);
  within(Buffer.byteLength(`{"items":${list}}`, "utf8"), REQUEST.bodyBytes, "bytes");
  within(request.items.length, isAboutTargetings(operation) ? REQUEST.targetingItems : REQUEST.optionItems, "items");
  if (request.items.length === 0) throw new ImproperRequest("a request without items");
  checkNames(namesGiven(request));
  switch (request.operation) {
    case "createTargetings": {
      const options = request.items.flatMap((item) => item.options ?? []);
      checkNew(options, REQUEST.targetingCreateOptions);
      break;
    }
    case "addOptions":
      checkNew(request.items, REQUEST.optionAddOptions);
      within(request.items.filter(isGroupItem).length, REQUEST.groupItems, "group items");
      break;
    case "updateOptions":
      checkUpdates(request.items);
      break;
    default:
  }
  return request;
}

/**
 * Returns the names that a request gives, each with the targeting or project in which it must be unique (management-api
 * 8.3).
 */
function namesGiven(request: BulkRequest): readonly string[] {
  switch (request.operation) {
    case "createTargetings":
      return request.items.flatMap((item) => [
        item.name,
        ...namesIn(item.options ?? []).map((name) => `${item.name} / ${name}`),
      ]);
    case "renameTargetings":
      return request.items.map((item) => item.name);
    case "addOptions":
      return request.items.flatMap((item) => namesIn([item]).map((name) => `${item.targeting} / ${name}`));
    default:
      return [];
  }
}

function checkNames(names: readonly string[]): void {
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name)) throw new ImproperRequest(`one request gives the name ${name} twice`);
    seen.add(name);
  }
}

function isAboutTargetings(operation: BulkOperation): boolean {
  return operation === "createTargetings" || operation === "renameTargetings" || operation === "deleteTargetings";
}

function isGroupItem(item: AddedOption): boolean {
  return item.type === "collection" || item.children !== undefined || item.parent !== undefined;
}

function checkNew(options: readonly NewOption[], mostOptions: number): void {
  const all = options.flatMap((each) => [each, ...(each.children ?? [])]);
  within(all.length, mostOptions, "options");
  within(
    all.reduce((sum, each) => sum + (each.contexts?.length ?? 0), 0),
    REQUEST.contextIds,
    "Context IDs",
  );
}

function checkUpdates(items: readonly Update[]): void {
  const ids = new Set(items.map((item) => item._id));
  if (ids.size < items.length) throw new ImproperRequest("an option is named twice in one update request");
  within(items.filter((item) => item.parent !== undefined).length, REQUEST.groupItems, "items with parent");
  const count = ({ contexts: { add = [], remove = [], set = [] } = {} }: Update): number =>
    add.length + remove.length + set.length;
  within(
    items.reduce((sum, item) => sum + count(item), 0),
    REQUEST.contextIds,
    "Context IDs",
  );
}

function within(count: number, most: number, what: string): void {
  if (count > most) throw new ImproperRequest(`${count} ${what} in one request: ${most} are allowed`);
}

function parsed(operation: BulkOperation, list: string): BulkRequest {
  const each = <Schema extends z.ZodType>(schema: Schema): z.infer<Schema>[] =>
    z
      .array(z.unknown())
      .parse(JSON.parse(list))
      .map((entry) => {
        const read = schema.safeParse(entry);
        if (read.success) return read.data;
        throw new ImproperRequest(
          `${operation} ${JSON.stringify(entry).slice(0, 300)}: ${z.prettifyError(read.error)}`,
        );
      });
  switch (operation) {
    case "createTargetings":
      return { operation, items: each(newTargeting) };
    case "addOptions":
      return { operation, items: each(addedOption) };
    case "renameTargetings":
      return { operation, items: each(rename) };
    case "updateOptions":
      return { operation, items: each(update) };
    case "deleteTargetings":
    case "deleteOptions":
      return { operation, items: each(id) };
  }
}

/** Returns the names and IDs that each item uses. If the answer is lost, it is unknown what happened to these. */
export function touchedBy(request: BulkRequest): readonly (readonly string[])[] {
  switch (request.operation) {
    case "createTargetings":
      return request.items.map((item) => [item.name, ...namesIn(item.options ?? [])]);
    case "addOptions":
      return request.items.map((item) => namesIn([item]));
    case "renameTargetings":
    case "updateOptions":
      return request.items.map((item) => [item._id]);
    case "deleteTargetings":
    case "deleteOptions":
      return request.items.map((id) => [id]);
  }
}

function namesIn(options: readonly NewOption[]): readonly string[] {
  return options.flatMap((each) => [each.name, ...(each.children ?? []).map((inside) => inside.name)]);
}
