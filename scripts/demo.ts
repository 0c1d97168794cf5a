// Runs a complete agent session with the embedded sandbox over MCP stdio, and prints it for a person to read. Exits
// with 0 only if every number is as expected.
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import * as z from "zod";

const OPTIONS = 12_000;
const startedAt = Date.now();
const wrong: string[] = [];

/** Prints a step of the session. */
function say(title: string, ...lines: readonly string[]): void {
  console.log(`\n\u25b8 ${title}`);
  for (const line of lines) console.log(`  ${line}`);
}

/** Records a number that differs from the expected one, for the summary at the end. */
function check(what: string, actual: unknown, expected: unknown): void {
  if (JSON.stringify(actual) === JSON.stringify(expected)) return;
  wrong.push(`${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`);
}

const answer = z.looseObject({
  status: z.string().optional(),
  counts: z.record(z.string(), z.number()).default({}),
  requests: z.record(z.string(), z.number()).default({}),
  failures: z
    .array(z.looseObject({ count: z.number(), errorCode: z.string(), message: z.string(), remedy: z.string() }))
    .default([]),
  results: z.array(z.looseObject({ _id: z.string().optional(), name: z.string().optional() })).default([]),
  options: z.array(z.looseObject({ _id: z.string(), name: z.string(), contextCount: z.number() })).default([]),
  total: z.number().optional(),
  targetings: z.array(z.looseObject({ name: z.string() })).default([]),
  events: z.array(z.looseObject({ eventName: z.string().nullish() })).default([]),
  verdicts: z.array(z.looseObject({ predicted: z.string() })).default([]),
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return address.port;
}

const port = await freePort();
const stateDir = await mkdtemp(join(tmpdir(), "targeting-mcp-demo-"));
const questions: string[] = [];
const client = new Client(
  { name: "demo", version: "1.0.0" },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: "legacy" } },
);
client.setRequestHandler("elicitation/create", ({ params }) => {
  questions.push(params.message);
  return { action: "accept", content: { confirm: true } };
});
await client.connect(
  new StdioClientTransport({
    command: process.execPath,
    args: [fileURLToPath(new URL("../dist/main.js", import.meta.url)), "stdio"],
    env: {
      PATH: process.env.PATH ?? "",
      TARGETING_MCP_MODE: "sandbox",
      TARGETING_MCP_SANDBOX_SEED: "sample",
      TARGETING_MCP_SANDBOX_PORT: String(port),
      TARGETING_MCP_STATE_DIR: stateDir,
      TARGETING_MCP_LOG_LEVEL: "warn",
    },
    stderr: "inherit",
  }),
);

async function call(name: string, args: Record<string, unknown>): Promise<z.infer<typeof answer>> {
  const result = await client.callTool({ name, arguments: args });
  return answer.parse(result.structuredContent);
}

async function control(method: string, path: string, body?: unknown): Promise<unknown> {
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  const response = await fetch(`http://127.0.0.1:${port}/_sandbox${path}`, init);
  return response.json();
}

const counted = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([outcome, count]) => `${count.toLocaleString("en-US")} ${outcome}`)
    .join(", ");

console.log("An agent session with targeting-mcp, against the embedded sandbox, over MCP stdio");

const SHOWN = ["create_targetings", "bulk_add_options", "update_contexts", "track_event", "delete_options"];
const { tools } = await client.listTools();
const listed = SHOWN.filter((name) => tools.some((tool) => tool.name === name));
say("the list of tools", `${listed.join(", ")} and more`);
check("tools of this session", listed.length, SHOWN.length);

const known = await call("get_targeting", {});
say(
  "get_targeting: the targetings that the server knows, here those of the sample shop",
  known.targetings.map(({ name }) => name).join(", "),
);
check("targetings of the sample", known.targetings.length, 3);

const arrived = await call("inspect_events", { verdict: "ignored" });
const names = arrived.events.map(({ eventName }) => eventName).join(", ");
say("inspect_events: the shop's events that the service answered with ok, but dropped", names);
check("events dropped", names, "Purchase, purchase, product_view");

const created = await call("create_targetings", { items: [{ name: "Spring" }, { name: "Autumn" }] });
const [spring, autumn] = created.results.map(({ _id }) => _id ?? "");
say("create_targetings: Spring and Autumn", `${created.status}: ${counted(created.counts)}`);
check("targetings created", created.counts.succeeded, 2);

await control("POST", "/faults", {
  faults: [
    { kind: "busy", on: "addOptions", nth: 2, retryAfterMs: 300 },
    { kind: "reset", on: "addOptions", nth: 4, applied: true },
  ],
});
const items: { name: string; contexts?: string[] }[] = Array.from({ length: OPTIONS }, (_, number) => ({
  name: `Article ${number + 1}`,
  ...(number < 500 && { contexts: [`article-${number + 1}`] }),
}));
items.push({ name: "Article 7" }, { name: "spring_sale" });
const added = await call("bulk_add_options", { targetingName: "Spring", items });
say(
  `bulk_add_options: ${items.length.toLocaleString("en-US")} options, a duplicate and an invalid name among them`,
  "simulated faults: a 409 (another write is in progress), and an answer that is lost after the write was applied",
  `${added.status}: ${counted(added.counts)}`,
  `${added.requests.planned} requests planned, ${added.requests.sent} sent, ${added.requests.resent} of them repetitions, ${added.requests.waitedMs} ms of waiting`,
  ...added.failures.map(
    ({ count, errorCode, message, remedy }) => `${count} \u00d7 ${errorCode}: ${message}. ${remedy}`,
  ),
);
check("options added", added.counts.succeeded, OPTIONS);
check("options refused", added.counts.failed, 2);
check("requests planned", added.requests.planned, 3);
check("requests sent again", added.requests.resent, 2);
await control("DELETE", "/faults");

const first = await call("list_options", { targetingId: spring, limit: 1 });
check("options in the targeting", first.total, OPTIONS);
const option = first.options[0]?._id ?? "";
const ids = Array.from({ length: 23_000 }, (_, number) => `news-${number + 1}`);
const updated = await call("update_contexts", { items: [{ _id: option, add: ids, remove: ["article-1"] }] });
say(
  "update_contexts: 23,000 Context IDs added to one option, one removed",
  `${updated.status}: ${counted(updated.counts)} in ${updated.requests.sent} requests`,
);
const after = await call("get_option", { optionId: option, limit: 1 });
check("Context IDs of the option", after.total, 23_000);

const found = await call("list_options", { targetingId: spring, search: "1199" });
say(
  `list_options: ${first.total?.toLocaleString("en-US")} options; search "1199" finds ${found.options.length}`,
  found.options
    .slice(0, 3)
    .map(({ name }) => name)
    .join(", "),
);
check("options found", found.options.length, 12);

const purchase = { tx_id: "order-1", currency: "KRW", items: [{ item_id: "sku-1", price: 100, quantity: 2 }] };
const sent = await call("track_event", { uid: "user-1", eventName: "purchase", ...purchase });
say("track_event: a purchase", `${sent.status}, predicted ${sent.verdicts[0]?.predicted}`);
check("event sent", sent.counts.succeeded, 1);

const refused = await call("track_event", { uid: "user-1", eventName: "Purchase", ...purchase });
say(
  "track_event: the same with eventName Purchase, which the service would answer with ok, but drop",
  ...refused.failures.map(({ message, remedy }) => `${message}. ${remedy}`),
);
check("event refused", refused.counts.failed, 1);

const deleted = await call("delete_targeting", { ids: [autumn] });
say(
  "delete_targeting: Autumn. The person is asked first:",
  ...questions.flatMap((question) => question.split("\n")).map((line) => `  ${line}`),
  `The person says yes. ${deleted.status}: ${counted(deleted.counts)}`,
);
check("questions asked", questions.length, 1);
check("targetings deleted", deleted.counts.succeeded, 1);

const journal = z.object({ requests: z.array(z.looseObject({ operation: z.string().nullish() })) });
const { requests } = journal.parse(await control("GET", "/requests"));
const byOperation = new Map<string, number>();
for (const { operation } of requests) {
  const name = operation ?? "unknown";
  byOperation.set(name, (byOperation.get(name) ?? 0) + 1);
}
check("events that reached the service", byOperation.get("trackEvent"), 1);
await client.close();
await rm(stateDir, { recursive: true, force: true });

say(
  `${requests.length} requests were sent`,
  [...byOperation].map(([operation, count]) => `${operation} ${count}`).join(", "),
);
console.log(`\n${((Date.now() - startedAt) / 1000).toFixed(1)} seconds`);
for (const line of wrong) console.error(`WRONG: ${line}`);
if (wrong.length === 0) console.log("All figures are as expected.");
process.exitCode = wrong.length === 0 ? 0 : 1;
