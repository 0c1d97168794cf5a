import { expect, test } from "vitest";
import * as z from "zod";
import { writeCall } from "../../src/changes/change-kinds.ts";
import { rowsOf } from "../support/rows.ts";

const stored = z.strictObject({ tool: z.string(), input: z.record(z.string(), z.unknown()) });
/** Calls of runs that were stored before the tools' arguments had a common definition. */
const STORED = rowsOf("stored-calls.ndjson", import.meta.dirname, stored);

test.for(STORED.map((call, index) => ({ call, index })))(
  "stored call $index of $call.tool is read whole",
  ({ call }) => {
    expect(writeCall.parse(call)).toEqual(call);
  },
);

test("all tools that write have stored calls here", () => {
  const tools = ["apply_plan", "bulk_add_options", "create_targetings", "delete_options", "delete_targeting"];
  const more = ["rename_targetings", "update_contexts", "update_options"];
  expect([...new Set(STORED.map(({ tool }) => tool))].sort()).toEqual([...tools, ...more]);
});
