import { expect, test } from "vitest";
import { parseStringifiedArguments, withoutAbsent, withUpperIds } from "../../src/mcp/read-arguments.ts";
import { catalogue } from "../../src/mcp/server-parts.ts";
import { everyTool } from "../../src/tools/registry.ts";

const TOOLS = await everyTool();

const tools = new Map(catalogue(TOOLS).map((listed) => [listed.tool.name, listed]));
const ID = "01JABCDEFGHJKMNPQRSTVWXYZ0";

function schemaOf(name: string) {
  const schema = tools.get(name)?.inputSchema();
  if (schema === undefined) throw new Error(`there is no tool ${name}`);
  return schema;
}

/** Returns how a tool reads the arguments of a host that sends every field. */
const read = (name: string, given: unknown) => {
  const schema = schemaOf(name);
  return parseStringifiedArguments(withUpperIds(withoutAbsent(given, schema)), schema);
};

test.each([
  [
    "list_options",
    { targetingId: ID, search: "", cursor: null, parent: null, contextIds: [], limit: null, saveTo: "" },
    { targetingId: ID },
  ],
  ["get_option", { optionId: ID, name: null, compareWith: "" }, { optionId: ID }],
  ["inspect_events", { uid: null, uids: [], expect: [], since: "" }, {}],
  ["list_event_types", { eventNames: [] }, {}],
  ["track_event", { uid: "u", eventName: "app_open", value: null, currency: "" }, { uid: "u", eventName: "app_open" }],
  ["delete_options", { ids: [], names: ["A"], targetingId: ID, confirmation: null }, { names: ["A"], targetingId: ID }],
  ["delete_options", { ids: [ID], names: [] }, { ids: [ID] }],
  ["bulk_add_options", { targetingId: ID, items: [], file: "a.csv" }, { targetingId: ID, file: "a.csv" }],
])("%s %j: what was not given is absent", (name, given, meant) => {
  expect(read(name, given)).toEqual(meant);
});

test.each([
  ["delete_options", { ids: [], targetingId: ID, onlyEmpty: true }],
  ["delete_options", { ids: [], names: [], targetingId: ID }],
  ["delete_options", { ids: [], names: null, targetingId: ID, onlyEmpty: true }],
  ["delete_targeting", { ids: [] }],
  ["bulk_add_options", { targetingId: ID, items: [] }],
  ["update_contexts", { items: [], targetingId: ID }],
])("%s %j: an empty list never widens an effect, and stays an error", (name, given) => {
  const meant = read(name, given);
  expect(meant).toMatchObject("items" in given ? { items: [] } : { ids: [] });
  expect(JSON.stringify(schemaOf(name).properties)).toContain('"minItems":1');
});

test("what is needed stays as it was given", () => {
  expect(read("track_event", { uid: "", eventName: null })).toEqual({ uid: "", eventName: null });
});

test.each([
  ["null alone detaches", { _id: ID, parent: null }, { _id: ID, parent: null }],
  ["with a new name, too", { _id: ID, name: "B", parent: null }, { _id: ID, name: "B", parent: null }],
  [
    "nothing but null says nothing",
    { _id: ID, currentName: null, name: null, parent: null, parentName: null, exposeChildren: null },
    { _id: ID },
  ],
  [
    "null for everything leaves the group as it is",
    { _id: ID, currentName: null, name: "B", parent: null, parentName: null, exposeChildren: null },
    { _id: ID, name: "B" },
  ],
  [
    "the text [] detaches for a host that sends null for everything",
    { _id: ID, currentName: null, name: null, parent: "[]", parentName: null, exposeChildren: null },
    { _id: ID, parent: null },
  ],
  ["and for any other", { _id: ID, parent: "[]" }, { _id: ID, parent: null }],
])("items of update_options: %s", (_case, item, meant) => {
  expect(read("update_options", { items: [item] })).toEqual({ items: [meant] });
});

test("empty lists of an item mean none", () => {
  const items = [{ _id: ID, set: [], add: null }];
  expect(read("update_contexts", { items })).toEqual({ items: [{ _id: ID, set: [] }] });
});

test("words and IDs in another case", () => {
  expect(read("list_options", { targetingId: ID.toLowerCase(), detail: "Detailed" })).toEqual({
    targetingId: ID,
    detail: "detailed",
  });
  const items = [{ name: "A", type: "COLLECTION", children: [{ name: ID.toLowerCase() }] }];
  expect(read("bulk_add_options", { targetingId: ID, items, onExisting: "ADDCONTEXTS" })).toEqual({
    targetingId: ID,
    items: [{ name: "A", type: "collection", children: [{ name: ID.toLowerCase() }] }],
    onExisting: "addContexts",
  });
  expect(read("update_contexts", { items: [{ _ids: [ID.toLowerCase()], add: [ID.toLowerCase()] }] })).toEqual({
    items: [{ _ids: [ID], add: [ID.toLowerCase()] }],
  });
});

test("no schema has an object of which nothing is said", () => {
  const bare: string[] = [];
  const look = (node: unknown, path: string): void => {
    if (typeof node !== "object" || node === null) return;
    if ("type" in node && node.type === "object" && !("properties" in node) && !("additionalProperties" in node)) {
      bare.push(path);
    }
    for (const [name, value] of Object.entries(node)) look(value, `${path}/${name}`);
  };
  for (const [name, { inputSchema, outputSchema }] of tools) {
    look(inputSchema(), `${name} input`);
    look(outputSchema(), `${name} output`);
  }
  expect(bare).toEqual([]);
});
