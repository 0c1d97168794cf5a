import type { Service } from "./service.ts";

/** A call, and the expected state of the service after it, however often its process is killed. */
export interface Scenario {
  readonly name: string;
  /**
   * Creates in the service what the call needs. Returns the call. `file` writes a file that the call can use. `tool`
   * calls a tool in a process that is not killed.
   */
  prepare(service: Service, file: (name: string, text: string) => Promise<string>, tool: CallTool): Promise<Prepared>;
  readonly items: number;
  readonly after: readonly string[];
}

/** Calls a tool and returns the ID of its run. */
export type CallTool = (name: string, args: Readonly<Record<string, unknown>>) => Promise<string>;

/** A call of a tool. */
export interface Prepared {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
}

const ids = (count: number, from = 0): string[] => Array.from({ length: count }, (_, at) => `article-${from + at}`);

/** For each kind of write, a call that needs several requests. */
export const SCENARIOS: readonly Scenario[] = [
  {
    name: "options with a long list, a group, and a sub-option of a group that was there",
    async prepare(service) {
      const targetingId = await service.targeting("Spring");
      await service.options(targetingId, [{ name: "Old", type: "collection", contexts: ["old"] }]);
      const items = [
        { name: "Long", contexts: ids(12_000) },
        { name: "Group", contexts: ["own"], children: [{ name: "First", contexts: ["a", "b"] }, { name: "Second" }] },
        { name: "Inside", parentName: "Old", contexts: ["c"] },
        { name: "Plain" },
      ];
      return { tool: "bulk_add_options", args: { targetingId, items } };
    },
    items: 6,
    after: [
      ...["Spring", "Spring / Group (group): own", "Spring / Group / First: a b", "Spring / Group / Second: "],
      ...["Spring / Long: 12000 IDs", "Spring / Old (group): old", "Spring / Old / Inside: c", "Spring / Plain: "],
    ],
  },
  {
    name: "options that exchange their names, one of which moves",
    async prepare(service) {
      const targetingId = await service.targeting("Spring");
      const [group, red, blue, green] = await service.options(targetingId, [
        { name: "Group", type: "collection", contexts: ["own"] },
        { name: "Red", contexts: ["r"] },
        { name: "Blue", contexts: ["b"] },
        { name: "Green", contexts: ["g"] },
      ]);
      const items = [
        { _id: red, name: "Blue" },
        { _id: blue, name: "Red", parent: group },
        { _id: green, name: "Yellow" },
      ];
      return { tool: "update_options", args: { items } };
    },
    items: 3,
    after: [
      "Spring",
      "Spring / Blue: r",
      "Spring / Group (group): own",
      "Spring / Group / Red: b",
      "Spring / Yellow: g",
    ],
  },
  {
    name: "targetings that pass their names round",
    async prepare(service) {
      const spring = await service.targeting("Spring");
      const summer = await service.targeting("Summer");
      const autumn = await service.targeting("Autumn");
      const items = [
        { _id: spring, name: "Summer" },
        { _id: summer, name: "Autumn" },
        { _id: autumn, name: "Spring" },
      ];
      for (const [targeting, name] of [
        [spring, "Was Spring"],
        [summer, "Was Summer"],
        [autumn, "Was Autumn"],
      ] as const) {
        await service.options(targeting, [{ name }]);
      }
      return { tool: "rename_targetings", args: { items } };
    },
    items: 3,
    after: ["Autumn", "Autumn / Was Summer: ", "Spring", "Spring / Was Autumn: ", "Summer", "Summer / Was Spring: "],
  },
  {
    name: "Context IDs that are added, taken away and set, one list longer than a request",
    async prepare(service) {
      const targetingId = await service.targeting("Spring");
      const [red, blue, green] = await service.options(targetingId, [
        { name: "Red", contexts: ["a", "b"] },
        { name: "Blue", contexts: ids(5000) },
        { name: "Green", contexts: ["x", "y"] },
      ]);
      const items = [
        { _id: red, add: ["c"], remove: ["a"] },
        { _id: blue, set: ids(11_000, 4000) },
        { _id: green, set: ["z"] },
      ];
      return { tool: "update_contexts", args: { items } };
    },
    items: 3,
    after: ["Spring", "Spring / Blue: 11000 IDs", "Spring / Green: z", "Spring / Red: b c"],
  },
  {
    name: "options that are deleted, a group with its sub-option among them",
    async prepare(service) {
      const targetingId = await service.targeting("Spring");
      const [group, red] = await service.options(targetingId, [
        { name: "Group", type: "collection", contexts: ["own"] },
        { name: "Red" },
        { name: "Kept", contexts: ["k"] },
      ]);
      const [inside] = await service.options(targetingId, [{ name: "Inside", parent: group }]);
      return { tool: "delete_options", args: { ids: [group, red, inside] } };
    },
    items: 3,
    after: ["Spring", "Spring / Kept: k"],
  },
  {
    name: "targetings with options, one of them with a long list",
    async prepare(service) {
      await service.targeting("Spring");
      const items = [
        { name: "Summer", options: [{ name: "Red" }, { name: "Group", children: [{ name: "In", contexts: ["i"] }] }] },
        { name: "Autumn", options: [{ name: "Long", contexts: ids(11_000) }] },
        { name: "Winter" },
      ];
      return { tool: "create_targetings", args: { items } };
    },
    items: 7,
    after: [
      ...["Autumn", "Autumn / Long: 11000 IDs", "Spring", "Summer", "Summer / Group (group): "],
      ...["Summer / Group / In: i", "Summer / Red: ", "Winter"],
    ],
  },
  {
    name: "options from a file",
    async prepare(service, file) {
      const targetingId = await service.targeting("Spring");
      await service.options(targetingId, [{ name: "Old", type: "collection", contexts: ["old"] }]);
      const long = ids(10_001).map((id) => `Long,${id},`);
      const rows = ["name,contextId,parentName", "Red,r,", "Inside,i,Old", ...long, "Red,s,"];
      return { tool: "bulk_add_options", args: { targetingId, file: await file("options.csv", rows.join("\n")) } };
    },
    items: 3,
    after: [
      "Spring",
      "Spring / Long: 10001 IDs",
      "Spring / Old (group): old",
      "Spring / Old / Inside: i",
      "Spring / Red: r s",
    ],
  },
  {
    name: "targetings that are deleted",
    async prepare(service) {
      const spring = await service.targeting("Spring");
      const summer = await service.targeting("Summer");
      await service.targeting("Autumn");
      await service.options(spring, [{ name: "Red" }]);
      return { tool: "delete_targeting", args: { ids: [spring, summer] } };
    },
    items: 2,
    after: ["Autumn"],
  },
  {
    name: "a plan in which names and Context IDs change hands, and a group is filled",
    async prepare(service, _, tool) {
      const targetingId = await service.targeting("Spring");
      const [red, blue, north, south] = await service.options(targetingId, [
        { name: "Red", contexts: ["r"] },
        { name: "Blue", contexts: ["b"] },
        { name: "North", type: "collection", contexts: ["n"] },
        { name: "South", type: "collection", contexts: ["s"] },
      ]);
      const options = [
        { _id: red, name: "Blue", contexts: ["r", "x"] },
        { _id: north, name: "North", contexts: ["s"] },
        { _id: south, name: "South", contexts: ["n"] },
        {
          name: "East",
          children: [
            { _id: blue, name: "Red" },
            { name: "New", contexts: ["new"] },
          ],
        },
      ];
      const desired = { version: 1, targeting: { _id: targetingId }, options };
      const runId = await tool("plan_targeting", { desired });
      return { tool: "apply_plan", args: { runId } };
    },
    items: 6,
    after: [
      ...["Spring", "Spring / Blue: r x", "Spring / East (group): ", "Spring / East / New: new"],
      ...["Spring / East / Red: b", "Spring / North (group): s", "Spring / South (group): n"],
    ],
  },
  {
    name: "the undo of an import, into groups and options that were there, too",
    async prepare(service, _, tool) {
      const targetingId = await service.targeting("Spring");
      await service.options(targetingId, [
        { name: "Old", contexts: ["o"] },
        { name: "Group", type: "collection", contexts: ["g"] },
      ]);
      const items = [
        { name: "Old", contexts: ["o", "more"] },
        { name: "Plain", contexts: ["p"] },
        { name: "Inside", parentName: "Group" },
        { name: "Bare", children: [{ name: "First" }, { name: "Second", contexts: ["s"] }] },
      ];
      const made = await tool("bulk_add_options", { targetingId, items, onExisting: "addContexts" });
      const runId = await tool("undo_run", { runId: made });
      return { tool: "apply_plan", args: { runId } };
    },
    items: 6,
    after: ["Spring", "Spring / Group (group): g", "Spring / Old: o"],
  },
  {
    name: "the undo of a deletion, whose sub-options go back into their group",
    async prepare(service, _, tool) {
      const targetingId = await service.targeting("Spring");
      const [red, group] = await service.options(targetingId, [
        { name: "Red", contexts: ids(9000) },
        { name: "Group", type: "collection", children: [{ name: "First", contexts: ["f"] }, { name: "Second" }] },
      ]);
      const deleted = await tool("delete_options", { ids: [red, group] });
      const runId = await tool("undo_run", { runId: deleted });
      return { tool: "apply_plan", args: { runId } };
    },
    items: 4,
    after: [
      "Spring",
      "Spring / Group (group): ",
      "Spring / Group / First: f",
      "Spring / Group / Second: ",
      "Spring / Red: 9000 IDs",
    ],
  },
];
