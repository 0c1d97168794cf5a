import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { CallTool, Prepared } from "./scenarios.ts";
import type { Service } from "./service.ts";

/** A call that makes a plan, the number of objects in the plan, and the expected state after the plan is applied. */
export interface PlanScenario {
  readonly name: string;
  /**
   * Creates what the call needs, in the service and the folder. Returns the call. `tool` calls a tool and returns the
   * ID of its run.
   */
  readonly prepare: (service: Service, tool: CallTool, folder: string) => Promise<Prepared>;
  /** The number of objects in the plan. */
  readonly items: number;
  readonly after: readonly string[];
  /** Whether planning takes longer than a call may, so that it continues after the call has answered. */
  readonly isSlow: boolean;
}

/** Deletes an option and a group, whose sub-options become top-level options. Returns the call that undoes this. */
async function deletion(service: Service, tool: CallTool): Promise<Prepared> {
  const targetingId = await service.targeting("Spring");
  const [red, group] = await service.options(targetingId, [
    { name: "Red", contexts: ["r", "s"] },
    { name: "Group", type: "collection", children: [{ name: "First", contexts: ["f"] }, { name: "Second" }] },
  ]);
  const runId = await tool("delete_options", { ids: [red, group] });
  return { tool: "undo_run", args: { runId } };
}

const AFTER_DELETION = [
  "Spring",
  "Spring / Group (group): ",
  "Spring / Group / First: f",
  "Spring / Group / Second: ",
  "Spring / Red: r s",
];

/**
 * Saves a targeting to a file with its base. In the file, one option is renamed, one gets a Context ID, one is new, and
 * one is missing.
 */
async function editedFile(service: Service, tool: CallTool, folder: string): Promise<Prepared> {
  const targetingId = await service.targeting("Spring");
  const [red, blue] = await service.options(targetingId, [
    { name: "Red", contexts: ["r"] },
    { name: "Blue", contexts: ["b"] },
    { name: "Gone", contexts: ["g"] },
  ]);
  const saveTo = join(folder, "spring.ndjson");
  await tool("list_options", { targetingId, saveTo });
  const rows = [
    { version: 1, targeting: { _id: targetingId, name: "Spring" } },
    { _id: red, name: "Crimson", contexts: ["r"] },
    { _id: blue, name: "Blue", contexts: ["b", "more"] },
    { name: "New", contexts: ["n"] },
  ];
  await writeFile(saveTo, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return { tool: "plan_targeting", args: { file: saveTo, prune: true } };
}

const AFTER_EDIT = ["Spring", "Spring / Blue: b more", "Spring / Crimson: r", "Spring / New: n"];

/**
 * Calls that make plans, each in two versions: planning ends within the call, or continues after the call has answered.
 */
export const PLAN_SCENARIOS: readonly PlanScenario[] = [false, true].flatMap((isSlow) => [
  {
    name: isSlow ? "a plan of a file that takes longer than its call may" : "a plan of a file",
    prepare: editedFile,
    ...{ items: 4, after: AFTER_EDIT, isSlow },
  },
  {
    name: isSlow ? "a way back whose plan takes longer than its call may" : "a way back",
    prepare: deletion,
    ...{ items: 4, after: AFTER_DELETION, isSlow },
  },
]);
