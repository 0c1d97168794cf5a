import { expect, test } from "vitest";
import * as z from "zod";
import { catalogue, listedTools, type ToolAvailability } from "../../src/mcp/tool-list.ts";
import type { Effect, Toolset } from "../../src/tools/define-tool.ts";
import { everyTool, toolOf } from "../../src/tools/registry.ts";

const TOOLS = await everyTool();

function tool(name: string, toolset: Toolset, effect: Effect) {
  return toolOf({
    name,
    title: name,
    description: name,
    toolset,
    effect,
    idempotent: false,
    input: () => z.strictObject({}),
    output: () => z.looseObject({}),
    handler: async () => ({ structured: {}, text: "", isError: false }),
  });
}

const tools = [
  tool("read", "targeting", "reads"),
  tool("add", "targeting", "adds"),
  tool("change", "targeting", "changes"),
  tool("resume", "either", "changes"),
  tool("cancel", "either", "local"),
  tool("track", "events", "adds"),
  tool("test", "events", "local"),
];
const everything: ToolAvailability = {
  readOnly: false,
  toolsets: ["targeting", "events"],
  configured: ["targeting", "events"],
  hasSandbox: true,
};
const names = (offer: Partial<ToolAvailability>) =>
  listedTools(catalogue(tools), { ...everything, ...offer }).map((one) => one.tool.name);

test("everything is listed in its order", () => {
  expect(names({})).toEqual(["read", "add", "change", "resume", "cancel", "track", "test"]);
});

test("read-only hides what changes an API, whatever else is set", () => {
  expect(names({ readOnly: true })).toEqual(["read", "cancel", "test"]);
});

test("toolsets and missing APIs hide their tools, and what serves either only with both", () => {
  expect(names({ toolsets: ["events"] })).toEqual(["resume", "cancel", "track", "test"]);
  expect(names({ configured: ["targeting"] })).toEqual(["read", "add", "change", "resume", "cancel"]);
  expect(names({ toolsets: ["events"], configured: ["targeting"] })).toEqual([]);
});

test("annotations follow from the effect", () => {
  const annotations = Object.fromEntries(
    listedTools(catalogue(tools), everything).map((one) => [one.tool.name, one.annotations]),
  );
  expect(annotations.read).toMatchObject({ readOnlyHint: true, destructiveHint: false });
  expect(annotations.add).toMatchObject({ readOnlyHint: false, destructiveHint: false });
  expect(annotations.change).toMatchObject({ readOnlyHint: false, destructiveHint: true });
  expect(annotations.cancel).toMatchObject({ readOnlyHint: false, destructiveHint: false, openWorldHint: false });
});

test("every tool has a short name, a title, and schemas that are plain objects", () => {
  for (const { tool: one, inputSchema, outputSchema } of listedTools(catalogue(TOOLS), everything)) {
    expect(one.name).toMatch(/^[a-z_]{3,30}$/);
    expect(one.title.length).toBeGreaterThan(3);
    expect(inputSchema()).toMatchObject({ type: "object", additionalProperties: false });
    for (const schema of [inputSchema(), outputSchema()]) {
      expect(schema.type).toBe("object");
      for (const union of ["anyOf", "oneOf", "allOf"]) expect(schema).not.toHaveProperty(union);
    }
  }
});
