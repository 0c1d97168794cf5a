import { expect, test } from "vitest";
import { writeCall } from "../../src/changes/change-kinds.ts";

const TARGETING = "01M89MBRTB7MEAYBR2AAP1ZHS3";
const OPTION = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const FILE = {
  ...{ format: "csv", encoding: "utf-8", digest: DIGEST },
  given: { columns: { name: "옵션명" }, separator: ";", fillDown: ["parentName"], maxBytes: 1000 },
  sheet: { delimiter: ",", columns: { name: "옵션명" }, separator: ";", fillDown: ["parentName"] },
  seen: { ignored: 1, ignoredHeadings: ["Notes"], read: [{ column: "name", heading: "옵션명" }], targeting: "Shop" },
  targeting: [TARGETING, "Shop"],
};
const LIST = { format: "ndjson", encoding: "utf-8", digest: DIGEST };

/** Calls as runs hold them that were stored before the tools' arguments had one definition. */
const STORED: readonly { readonly tool: string; readonly input: Readonly<Record<string, unknown>> }[] = [
  {
    tool: "create_targetings",
    input: {
      items: [
        { name: "Shop" },
        {
          name: "Brands",
          options: [
            { name: "One", contexts: ["a", "b"], type: "atomic" },
            { name: "Two", type: "collection", children: [{ name: "Three", contexts: ["c"] }], exposeChildren: true },
          ],
        },
      ],
    },
  },
  {
    tool: "rename_targetings",
    input: {
      items: [
        { _id: TARGETING, name: "Other" },
        { currentName: "Seen", _id: TARGETING, name: "New" },
        { currentName: "Twice", ids: [TARGETING, OPTION], name: "New 2" },
        { currentName: "Never seen", near: ["Shop"], name: "New 3" },
      ],
    },
  },
  { tool: "delete_targeting", input: { ids: [TARGETING] } },
  {
    tool: "delete_targeting",
    input: {
      ids: [],
      names: [
        { currentName: "Seen", _id: TARGETING },
        { currentName: "Twice", ids: [TARGETING, OPTION] },
        { currentName: "Never seen", near: [] },
      ],
    },
  },
  {
    tool: "bulk_add_options",
    input: {
      targetingId: TARGETING,
      items: [
        { name: "One", contexts: ["a"], type: "collection", children: [{ name: "Two" }], exposeChildren: true },
        { name: "Three", parent: OPTION },
        { name: "Four", parentName: "Group" },
      ],
      onExisting: "addContexts",
    },
  },
  { tool: "bulk_add_options", input: { targetingId: TARGETING, items: [], file: FILE, onExisting: "skip" } },
  { tool: "bulk_add_options", input: { targetingId: TARGETING, items: [], file: LIST } },
  { tool: "update_options", input: { items: [{ _id: OPTION, parent: null, exposeChildren: false }] } },
  {
    tool: "update_options",
    input: {
      targetingId: TARGETING,
      items: [
        { currentName: "One", name: "Two" },
        { _id: OPTION, parent: OPTION },
        { _id: OPTION, parentName: "Group" },
      ],
    },
  },
  {
    tool: "update_contexts",
    input: {
      targetingId: TARGETING,
      items: [
        { _id: OPTION, add: ["a"], remove: ["b"] },
        { _ids: [OPTION], set: [] },
        { name: "One", addFrom: [OPTION] },
        { names: ["Two", "Three"], removeFrom: [OPTION] },
      ],
    },
  },
  { tool: "update_contexts", input: { items: [], file: FILE } },
  { tool: "delete_options", input: { ids: [OPTION] } },
  { tool: "delete_options", input: { ids: [OPTION], names: ["One"], targetingId: TARGETING, onlyEmpty: true } },
  { tool: "apply_plan", input: { plannedBy: "plan_targeting", digest: DIGEST } },
  {
    tool: "apply_plan",
    input: {
      ...{ plannedBy: "plan_targeting", base: { root: "/lists", steps: ["shop", "shop.base.json"] }, sheet: FILE },
      ...{ targetingId: TARGETING, furtherIds: [OPTION], digest: DIGEST },
    },
  },
  {
    tool: "apply_plan",
    input: { plannedBy: "undo_run", undoes: "01M89MBRZVQYVPWASYTDG21341", targetingId: TARGETING, digest: DIGEST },
  },
];

test.for(STORED.map((call, index) => ({ call, index })))(
  "stored call $index of $call.tool is read whole",
  ({ call }) => {
    expect(writeCall.parse(JSON.parse(JSON.stringify(call)))).toEqual(call);
  },
);

test("all tools that write have stored calls here", () => {
  const tools = ["apply_plan", "bulk_add_options", "create_targetings", "delete_options", "delete_targeting"];
  const more = ["rename_targetings", "update_contexts", "update_options"];
  expect([...new Set(STORED.map(({ tool }) => tool))].sort()).toEqual([...tools, ...more]);
});
