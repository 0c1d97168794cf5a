import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { expect, test } from "vitest";
import * as z from "zod";
import { OPENING, startCommand } from "../support/server-process.ts";

/** The most tokens (o200k) that the list of tools may cost a model, with and without output schemas. */
// Some hosts refuse an object schema without properties, so such schemas have `additionalProperties: true`. This costs
// about 450 tokens.
const MAX_TOKENS = 8500;
const MAX_TOKENS_WITHOUT_OUTPUT = 6500;

const schema = z.looseObject({ type: z.literal("object"), properties: z.record(z.string(), z.unknown()).optional() });
const listed = z.object({
  result: z.object({
    tools: z.array(
      z.strictObject({
        name: z.string().regex(/^[a-z_]{3,30}$/),
        title: z.string().min(5),
        description: z.string().min(20),
        annotations: z.strictObject({
          readOnlyHint: z.boolean(),
          destructiveHint: z.boolean(),
          idempotentHint: z.boolean(),
          openWorldHint: z.boolean(),
        }),
        inputSchema: schema.extend({ additionalProperties: z.literal(false) }),
        outputSchema: schema,
        execution: z.unknown().optional(),
      }),
    ),
  }),
});

/** The arguments of each tool, repeated here by hand from the documentation. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  get_targeting: ["targetingId", "targetingName"],
  list_options: ["targetingId", "targetingName", "parent", "search", "contextId", "limit", "cursor", "detail"],
  get_option: ["optionId", "limit", "cursor"],
  create_targetings: ["items", "dryRun"],
  rename_targetings: ["items", "dryRun"],
  delete_targeting: ["ids", "confirmation", "dryRun"],
  bulk_add_options: ["targetingId", "targetingName", "items", "onExisting", "dryRun"],
  update_options: ["items", "dryRun"],
  update_contexts: ["targetingId", "targetingName", "items", "confirmation", "dryRun"],
  delete_options: ["targetingId", "targetingName", "ids", "names", "confirmation", "dryRun"],
  plan_targeting: ["file", "desired", "targetingId", "targetingName", "base", "prune", "byName", "fresh"],
  apply_plan: ["runId", "confirmation", "dryRun"],
  undo_run: ["runId"],
  track_event: ["uid", "eventName", "platform", "items", "extra", "dryRun", "method", "tx_id", "price", "currency"],
};

async function toolsOf(environment: Readonly<Record<string, string>> = {}) {
  const command = startCommand([], environment);
  for (const message of OPENING) command.send(message);
  command.send({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  return listed.parse(await command.answer(1)).result.tools;
}

test("every tool has what the contract asks for, and no union at the top of a schema", async () => {
  const tools = await toolsOf();
  for (const { name, inputSchema, outputSchema } of tools) {
    for (const union of ["anyOf", "oneOf", "allOf"]) {
      expect(inputSchema, name).not.toHaveProperty(union);
      expect(outputSchema, name).not.toHaveProperty(union);
    }
  }
  for (const [name, needed] of Object.entries(ARGUMENTS)) {
    const tool = tools.find((one) => one.name === name);
    expect(Object.keys(tool?.inputSchema.properties ?? {}), name).toEqual(expect.arrayContaining([...needed]));
  }
});

test("annotations tell what reads, what adds and what may take away", async () => {
  const hints = Object.fromEntries((await toolsOf()).map(({ name, annotations }) => [name, annotations]));
  for (const name of ["get_targeting", "list_options", "get_option", "get_run"]) {
    expect(hints[name], name).toMatchObject({ readOnlyHint: true, destructiveHint: false, idempotentHint: true });
  }
  for (const name of ["create_targetings", "bulk_add_options", "track_event"]) {
    expect(hints[name], name).toMatchObject({ readOnlyHint: false, destructiveHint: false, idempotentHint: false });
  }
  for (const name of ["delete_targeting", "delete_options", "update_contexts"]) {
    expect(hints[name], name).toMatchObject({ readOnlyHint: false, destructiveHint: true, idempotentHint: true });
  }
  // If a swap is given by names, repeating the call swaps the names back, so the call is not idempotent.
  for (const name of ["update_options", "rename_targetings"]) {
    expect(hints[name], name).toMatchObject({ readOnlyHint: false, destructiveHint: true, idempotentHint: false });
  }
  expect(hints.cancel_run).toMatchObject({ readOnlyHint: false, destructiveHint: false, openWorldHint: false });
});

test("the list costs a model a bounded number of tokens", async () => {
  const tools = await toolsOf();
  const withoutOutput = tools.map(({ outputSchema, ...tool }) => tool);
  expect(countTokens(JSON.stringify(tools))).toBeLessThanOrEqual(MAX_TOKENS);
  expect(countTokens(JSON.stringify(withoutOutput))).toBeLessThanOrEqual(MAX_TOKENS_WITHOUT_OUTPUT);
});

test("a toolset lists its own tools and those of runs, and nothing where its API is missing", async () => {
  const TARGETINGS_ALONE = {
    TARGETING_API_URL: "http://127.0.0.1:9",
    TARGETING_API_KEY: "key",
    TARGETING_MCP_MODE: "live",
  };
  const namesOf = async (environment: Readonly<Record<string, string>>) =>
    (await toolsOf({ TARGETING_MCP_TOOLSETS: "events", ...environment })).map(({ name }) => name);
  expect(await namesOf({})).toEqual([
    ...["get_run", "resume_run", "cancel_run", "list_event_types", "track_event", "track_events"],
    ...["generate_event_tests", "run_event_tests", "inspect_events"],
  ]);
  expect(await namesOf(TARGETINGS_ALONE)).toEqual([]);
});
