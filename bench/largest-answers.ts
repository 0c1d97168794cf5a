// Makes every tool of the built command give the largest answer that it can, over stdio with a sandbox. Counts the
// tokens that a host may show to a model (o200k): data and text together.
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import * as z from "zod";
import { startSandbox } from "../src/sandbox/index.ts";
import { TYPICAL_CALLS } from "../test/tools/typical-calls.ts";

/** The size of a tool's largest answer. */
export interface LargestAnswer {
  readonly tool: string;
  readonly reads: boolean;
  readonly tokens: number;
}

/** The maximum tokens of an answer: of a tool that only reads, and of any other tool. */
export const MAX_ANSWER_TOKENS = { reads: 3500, others: 2500 } as const;

const answer = z.object({
  content: z.array(z.looseObject({ text: z.string().optional() })),
  structuredContent: z.looseObject({}).optional(),
});
const ids = z.object({ results: z.array(z.looseObject({ _id: z.string().optional() })) });
const page = z.object({ options: z.array(z.looseObject({ _id: z.string() })) });
const suite = z.looseObject({ suiteId: z.string() });
const started = z.looseObject({ runId: z.string().optional() });

const COMMAND = join(import.meta.dirname, "..", "dist", "main.js");
/** A letter that takes three tokens, which is the most that any letter allowed in names takes. */
const DEAR = "\uAD82";
const MANY = 200;

const range = <Item>(count: number, make: (at: number) => Item): Item[] =>
  Array.from({ length: count }, (_, at) => make(at));
const dearName = (at: number) => `${DEAR.repeat(31)}${String(at).padStart(5, "0")}`;
const dearContextId = (at: number) => `${DEAR.repeat(80)}${String(at).padStart(5, "0")}`;
const noSuchId = (at: number) => `01ARZ3NDEKTSV4RRFFQ69${String(at).padStart(5, "0")}`;

/** Names that break every rule, so that failures have many reasons. */
const wrongNames = range(
  MANY,
  (at) => ["", "a", `${dearName(at)}_`, `\u202E${"\u0007".repeat(60)}${at}`][at % 4] ?? "",
);

/** Context IDs that look like hashes and random letters: they cost more tokens than words. */
const randomContextIds = range(600, (at) => {
  const hash = createHash("sha512").update(`${at}`).digest("base64");
  return at % 2 === 0
    ? `${hash}${hash}`
    : hash
        .replaceAll(/[^A-Za-z]/g, "")
        .toLowerCase()
        .repeat(2);
});

type Call = (name: string, args: Readonly<Record<string, unknown>>) => Promise<unknown>;

/** Calls every tool with arguments that make its answer large. `call` returns the data of the answer. */
async function callEverything(call: Call): Promise<void> {
  await changeTargetings(call);
  const targetingId = ids.parse(await call("create_targetings", { items: [{ name: "Large" }] })).results[0]?._id;
  await changeOptions(call, targetingId);
  await planMuch(call);
  await deleteMuch(call, targetingId);
  await handleEvents(call);
  await lookAtRuns(call);
}

async function planMuch(call: Call): Promise<void> {
  const targeting = { name: "Planned" };
  const plan = async (options: readonly object[]): Promise<string | undefined> =>
    started.parse(await call("plan_targeting", { desired: { version: 1, targeting, options } })).runId;
  const optionName = (at: number) => `${DEAR.repeat(28)}p${at}`;
  const runs = [
    await plan(range(MANY, (at) => ({ name: optionName(at), contexts: [dearContextId(at)] }))),
    await plan(range(MANY, (at) => ({ name: optionName(at), contexts: [dearContextId(at + 1)] }))),
  ];
  for (const runId of runs) {
    await call("get_run", { runId });
    await call("apply_plan", { runId, dryRun: true });
    const asked = z
      .looseObject({ confirmation: z.looseObject({ token: z.string() }).optional() })
      .parse(await call("apply_plan", { runId }));
    if (asked.confirmation !== undefined) await call("apply_plan", { confirmation: asked.confirmation.token });
    await call("undo_run", { runId });
  }
  const again = await plan(range(MANY, (at) => ({ name: optionName(at), contexts: [dearContextId(at)] })));
  await call("update_contexts", {
    targetingName: "Planned",
    items: range(MANY, (at) => ({ name: optionName(at), add: ["other"] })),
  });
  // All options have changed since this plan was made.
  await call("apply_plan", { runId: again });
  await plan(range(MANY, (at) => ({ name: wrongNames[at] ?? "", contexts: [7] })));
}

async function changeTargetings(call: Call): Promise<void> {
  const named = range(MANY, (at) => ({ name: dearName(at) }));
  const made = ids.parse(await call("create_targetings", { items: named }));
  await call("create_targetings", { items: [...named, ...wrongNames.map((name) => ({ name }))] });
  const own = made.results.flatMap(({ _id }) => _id ?? []);
  const renames = [
    ...own.map((_id, at) => ({ _id, name: dearName(at + 1) })),
    ...own.map((_id) => ({ _id, name: "" })),
  ];
  await call("rename_targetings", { items: renames });
  await call("rename_targetings", { items: range(MANY, (at) => ({ _id: noSuchId(at), name: dearName(at) })) });
  await call("rename_targetings", {
    items: wrongNames.map((name, at) => ({ _id: name, name: wrongNames[at + 1] ?? "" })),
  });
  await call("get_targeting", {});
  await call("get_targeting", { targetingName: DEAR });
  await call("get_targeting", { targetingId: own[0] });
}

async function changeOptions(call: Call, targetingId: string | undefined): Promise<void> {
  const items = range(MANY, (at) => ({ name: dearName(at), contexts: range(20, (one) => dearContextId(at + one)) }));
  await call("bulk_add_options", {
    targetingId,
    items: [
      { name: "Much", contexts: range(1200, dearContextId) },
      { name: "Random", contexts: randomContextIds },
    ],
  });
  const group = {
    type: "collection",
    name: "Group",
    children: range(100, (at) => ({ name: `${DEAR.repeat(29)}c${at}` })),
  };
  await call("bulk_add_options", { targetingId, items: [group], dryRun: true });
  await call("bulk_add_options", { targetingId, items: [...items, group] });
  await call("bulk_add_options", { targetingId, items: [...items, ...wrongNames.map((name) => ({ name }))] });
  await call("bulk_add_options", {
    targetingId,
    items: range(20_000, (at) => ({ name: `option ${at}` })),
    dryRun: true,
  });
  for (const detail of ["concise", "detailed"]) await call("list_options", { targetingId, limit: 1000, detail });
  const { options } = page.parse(
    await call("list_options", { targetingId, search: DEAR, limit: 1000, detail: "detailed" }),
  );
  await call("list_options", { targetingId, contextId: dearContextId(19), limit: 1000, detail: "detailed" });
  for (const search of ["Much", "Random"]) {
    const found = page.parse(await call("list_options", { targetingId, search }));
    await call("get_option", { optionId: found.options[0]?._id, limit: 10_000 });
  }
  const own = options.map(({ _id }) => _id);
  await call("update_options", { items: own.map((_id) => ({ _id, name: dearName(0) })) });
  await call("update_options", {
    items: own.map((_id, at) => ({ _id, parent: own[at + 1] ?? null, exposeChildren: true })),
  });
  await call("update_options", { items: wrongNames.map((name, at) => ({ _id: noSuchId(at), name })) });
  await call("update_contexts", { targetingId, items: wrongNames.map((name) => ({ name, add: [`\u0007${name}`] })) });
  await call("update_contexts", { items: own.map((_id) => ({ _id, set: [] })) });
  await call("update_contexts", {
    targetingId,
    items: range(MANY, (at) => ({ name: dearName(at), set: [dearContextId(0)] })),
  });
  await call("update_contexts", { items: range(MANY, (at) => ({ _id: noSuchId(at), add: [dearContextId(at)] })) });
}

async function deleteMuch(call: Call, targetingId: string | undefined): Promise<void> {
  const names = [...range(MANY, dearName), ...wrongNames];
  await call("delete_options", { targetingId, names });
  await call("delete_options", { targetingId, names, ids: ["\u202E".repeat(1000), ""], dryRun: true });
  await call("delete_options", { ids: range(MANY, noSuchId) });
  await call("delete_targeting", { ids: [targetingId, ...range(MANY, noSuchId)] });
  await call("delete_targeting", { ids: wrongNames });
}

async function handleEvents(call: Call): Promise<void> {
  await call("list_event_types", {});
  await call("list_event_types", { eventName: "purchase" });
  const long = DEAR.repeat(1024);
  const item = { item_id: long, item_name: long, price: "much", brand: 5, quantity: -1 };
  const wrong = {
    uid: long,
    platform: 5,
    currency: 7,
    tx_id: 9,
    items: range(101, () => item),
    extra: { [long]: long },
  };
  await call("track_event", { eventName: "purchase", ...wrong });
  await call("track_event", { uid: long, eventName: "view_item", item_id: long, item_name: long });
  const eventNames = ["purchase", "Purchase", "view_item", "sign_up", long, "", "app_open", "add_to_cart"];
  const events = range(MANY, (at) => ({
    ...wrong,
    items: [item, item],
    uid: `${long}${at}`,
    eventName: eventNames[at % eventNames.length],
  }));
  await call("track_events", { events });
  await call("track_events", {
    events: range(MANY, (at) => ({ uid: dearName(at), eventName: "view_item", item_id: long })),
  });
  for (const format of ["json", "vitest", "playwright", "curl"]) await call("generate_event_tests", { format });
  const { suiteId } = suite.parse(await call("generate_event_tests", { uid: long.slice(0, 200) }));
  await call("run_event_tests", { suiteId });
  await call("inspect_events", { limit: 1000 });
  const where = { item_id: long, item_name: long };
  const expect = range(MANY, () => ({ eventName: long, where, count: 3, verdict: "recorded" }));
  await call("inspect_events", { limit: 1000, expect, inOrder: true, withinMs: 1 });
}

async function lookAtRuns(call: Call): Promise<void> {
  await call("get_run", { limit: 1000 });
  const { runs } = z.object({ runs: z.array(started) }).parse(await call("get_run", { limit: 1000 }));
  for (const { runId } of runs) {
    for (const outcome of ["succeeded", "failed", "pending"]) await call("get_run", { runId, outcome, limit: 1000 });
    await call("resume_run", { runId });
    await call("cancel_run", { runId });
  }
}

/** Returns the largest answer of every tool, in the order of the list of tools. */
export async function largestAnswers(): Promise<readonly LargestAnswer[]> {
  const sandbox = await startSandbox();
  const stateDir = await mkdtemp(join(tmpdir(), "targeting-mcp-answers-"));
  const client = new Client({ name: "largest-answers", version: "1.0.0" }, { versionNegotiation: { mode: "legacy" } });
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [COMMAND],
      env: {
        PATH: process.env.PATH ?? "",
        TARGETING_MCP_SANDBOX_URL: sandbox.url,
        TARGETING_MCP_STATE_DIR: stateDir,
        TARGETING_MCP_LOG_LEVEL: "error",
      },
      stderr: "inherit",
    }),
  );
  const most = new Map<string, number>();
  const answers = new Map<string, unknown>();
  try {
    const call: Call = async (name, args) => {
      const { content, structuredContent } = answer.parse(await client.callTool({ name, arguments: { ...args } }));
      const text = content.map((part) => part.text ?? "").join("\n");
      const tokens = countTokens(JSON.stringify(structuredContent ?? {})) + countTokens(text);
      most.set(name, Math.max(most.get(name) ?? 0, tokens));
      answers.set(name, structuredContent);
      return structuredContent;
    };
    await callEverything(call);
    // Tools without a large answer so far are measured with their typical call.
    for (const { tool, args } of TYPICAL_CALLS) {
      if (!most.has(tool))
        await call(
          tool,
          args((other) => answers.get(other)),
        );
    }
    const { tools } = await client.listTools();
    return tools.map(({ name, annotations }) => {
      return { tool: name, reads: annotations?.readOnlyHint === true, tokens: most.get(name) ?? 0 };
    });
  } finally {
    await client.close();
    await sandbox.close();
    await rm(stateDir, { recursive: true });
  }
}
