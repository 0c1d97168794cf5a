import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { generateEventTests } from "../../src/events/suites/generate.ts";
import { startSandbox } from "../../src/sandbox/index.ts";
import { CLIENTS, textOf } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { COMMAND, cleanEnvironment, startCommand } from "../support/server-process.ts";
import { startService } from "../support/service.ts";
import { startStub } from "../support/stub-server.ts";

/** One client for each combination of era and settings. The embedded sandbox still has the events of earlier tests. */
const connected = perFile((era: keyof typeof CLIENTS, more: Record<string, string>) =>
  CLIENTS[era]({ args: [COMMAND], env: cleanEnvironment(more) }),
);

const suite = z.object({ suiteId: z.string(), resourceUri: z.string(), cases: z.number() });

describe("with the embedded sandbox", () => {
  const connect = CLIENTS["2026 client, legacy"];

  test("events are listed, sent, looked at and tested", async () => {
    const client = await connect({ args: [COMMAND], env: cleanEnvironment() });
    expect(textOf(await client.callTool("list_event_types", { eventName: "Purchase" }))).toContain('"purchase"');

    const events = Array.from({ length: 500 }, (_, index) => ({ uid: `u-${index % 9}`, eventName: "app_open" }));
    const sent = await client.callTool("track_events", { events });
    expect(sent.structuredContent).toMatchObject({
      environment: "sandbox",
      status: "succeeded",
      counts: { items: 500 },
    });
    const seen = await client.callTool("inspect_events", { limit: 3, expect: [{ eventName: "app_open", count: 500 }] });
    expect(seen.structuredContent).toMatchObject({
      total: 500,
      events: [{ eventName: "app_open", verdict: "recorded" }, {}, {}],
      expectations: [{ met: true, found: 500 }],
    });
    expect(textOf(seen)).toContain("1 of 1 expectation met by 9 users together");
  });

  test("suites are resources, and run", async () => {
    const client = await connected("2026 client, legacy", {});
    const made = await client.callTool("generate_event_tests", { eventNames: ["sign_up"], format: "vitest" });
    const { suiteId, resourceUri, cases } = suite.parse(made.structuredContent);
    expect(await client.readResource(resourceUri)).toContain('from "vitest"');
    const run = await client.callTool("run_event_tests", { suiteId });
    expect(run.structuredContent).toMatchObject({ suiteId, target: "sandbox", cases, matched: cases, mismatches: [] });
    expect(await client.readResource(`${resourceUri}/junit`)).toContain(`tests="${cases}" failures="0"`);
    const listed = (await client.listResources()).map(({ uri }) => uri);
    expect(listed.filter((uri) => uri.includes("/suites/"))).toEqual([resourceUri, `${resourceUri}/junit`]);
    await expect(client.readResource("targeting://suites/none")).rejects.toThrow("There is no resource at");
  });

  test("in live mode tests run against a sandbox of their own, and against the endpoint only after a yes", async () => {
    const { url, received } = await startStub(() => ({ status: 200, json: { message: "ok" } }));
    const questions: string[] = [];
    const client = await connect({
      args: [COMMAND],
      env: cleanEnvironment({ EVENT_API_URL: url, EVENT_APP_KEY: "real-key" }),
      answer: (message) => {
        questions.push(message);
        return { action: "accept", content: { confirm: true } };
      },
    });
    expect((await client.listTools()).map(({ name }) => name)).not.toContain("inspect_events");
    const made = await client.callTool("generate_event_tests", { kinds: ["minimal"] });
    const { suiteId } = suite.parse(made.structuredContent);
    const inSandbox = await client.callTool("run_event_tests", { suiteId });
    expect(inSandbox.structuredContent).toMatchObject({ environment: "live", cases: 13, matched: 13 });
    expect({ questions, requests: received.length }).toEqual({ questions: [], requests: 0 });
    const real = await client.callTool("run_event_tests", { suiteId, target: "configured" });
    expect(real.structuredContent).toMatchObject({ target: "configured", matched: 0, unobservable: 13 });
    expect(questions).toEqual([expect.stringContaining("13 test events")]);
    expect(received).toHaveLength(13);
  });
});

test("in live mode the sandbox of TARGETING_MCP_SANDBOX_URL can be looked at", async () => {
  const sandbox = await startService();
  await fetch(`${sandbox.url}/event`, {
    method: "POST",
    headers: { authorization: "sandbox-app-key", "content-type": "application/json" },
    body: JSON.stringify({ uid: "app", eventName: "app_open" }),
  });
  const client = await CLIENTS["2026 client, modern"]({
    args: [COMMAND],
    env: cleanEnvironment({
      EVENT_API_URL: "http://127.0.0.1:9",
      EVENT_APP_KEY: "real-key",
      TARGETING_MCP_SANDBOX_URL: sandbox.url,
    }),
  });
  const seen = await client.callTool("inspect_events", {});
  expect(seen.structuredContent).toMatchObject({ environment: "live", total: 1, events: [{ uid: "app" }] });
});

test("read-only keeps the tests against a sandbox, and nothing that sends", async () => {
  const client = await CLIENTS["2025 client"]({
    args: [COMMAND],
    env: cleanEnvironment({
      EVENT_API_URL: "http://127.0.0.1:9",
      EVENT_APP_KEY: "real-key",
      TARGETING_MCP_READ_ONLY: "true",
      TARGETING_MCP_CONFIRM: "off",
    }),
  });
  const names = (await client.listTools()).map(({ name }) => name);
  expect(names).toContain("run_event_tests");
  expect(names).not.toContain("track_event");
  expect(names).not.toContain("track_events");
  const refused = await client.callTool("run_event_tests", {
    suite: generateEventTests({ eventNames: ["app_open"] }),
    target: "configured",
  });
  expect(textOf(refused)).toContain("only reads");
});

test("the sandbox command says why requests and events failed, and at its end what the traffic has touched", async () => {
  const data = join(mkdtempSync(join(tmpdir(), "targeting-mcp-")), "state.json");
  const command = startCommand(["sandbox", "--port", "0", "--data", data]);
  await expect.poll(() => command.lines.join("\n")).toContain("/_sandbox/events");
  for (const key of ["sandbox-key", "sandbox-read-key", "sandbox-app-key"]) {
    expect(command.lines.join("\n")).toContain(key);
  }
  const [url] = command.lines[0]?.match(/http:\/\/127\.0\.0\.1:\d+/) ?? [];
  await fetch(`${url}/event`, {
    method: "POST",
    headers: { authorization: "sandbox-app-key", "content-type": "application/json" },
    body: JSON.stringify({ uid: "u", eventName: "sign_up", method: "mail" }),
  });
  for (const [method, path] of [
    ["POST", "/events"],
    ["GET", "/context-targetings/all"],
    ["GET", "/event"],
    ["POST", "/context-targeting/bulk/create"],
  ] as const) {
    await fetch(`${url}${path}`, { method });
  }
  for (const lost of [{ eventName: "purchase", items: [{}, { name: "b" }] }, { eventName: "" }]) {
    await fetch(`${url}/event`, {
      method: "POST",
      headers: { authorization: "sandbox-app-key", "content-type": "application/json" },
      body: JSON.stringify({ uid: "u", ...lost }),
    });
  }
  command.child.kill("SIGTERM");
  expect((await command.exited).code).toBe(0);
  expect(readFileSync(data, "utf8")).toContain('"version":1');
  const printed = command.lines.join("\n");
  expect(printed).toMatch(/^\S+ 404 POST \/events: did you mean \/event\?$/m);
  expect(printed).toMatch(/^\S+ 404 GET \/context-targetings\/all: did you mean \/context-targeting\/all\?$/m);
  expect(printed).toMatch(/^\S+ 405 GET \/event: Cannot GET \/event$/m);
  expect(printed).toMatch(/^\S+ 401 POST \/context-targeting\/bulk\/create: /m);
  expect(printed).toMatch(
    / ignored {2}purchase {2}uid u {2}items\[0\]\.item_id: .*\n {9}items\[1\]\.item_id: .*\n {9}.*"tx_id"/,
  );
  const summary = command.lines.slice(command.lines.findIndex((line) => line.startsWith("Coverage: ")));
  expect(command.lines).toContain("events: 1 recorded, 1 ignored, 1 rejected");
  expect(summary.filter((line) => line.length > 80)).toEqual([]);
  expect(summary.join(" ").replace(/ +/g, " ")).toMatch(
    /^Coverage: 2 of 13 events seen: 1 always recorded.* of 44 parameters; unsupported event names: 1 never seen: app_open, /,
  );
});

/**
 * Parameters in addition to `uid`, as agents may write them: a title, the input, the part that must be sent (undefined:
 * nothing is sent), and the verdict.
 */
const AS_GIVEN: readonly (readonly [string, object, object | undefined, string])[] = [
  ...[
    ["items as text", { eventName: "purchase", tx_id: "t", items: '[{"item_id":"a"}]' }],
    ["an item as text", { eventName: "purchase", tx_id: "t", items: ['{"item_id":"a"}'] }],
  ].map(([title, given]) => {
    const read = { eventName: "purchase", tx_id: "t", items: [{ item_id: "a" }] };
    return [String(title), Object(given), read, "recorded"] as const;
  }),
  ...[
    ["a price as text", { eventName: "view_item", item_id: "a", price: "12.50" }, "uncertain"],
    ["a price in words", { eventName: "view_item", item_id: "a", price: "₩12" }, "uncertain"],
    ["a number as item_id", { eventName: "view_item", item_id: 7 }, "uncertain"],
    ["items that are no JSON", { eventName: "purchase", tx_id: "t", items: "a, b" }, "uncertain"],
    ["the price of an item as text", { eventName: "purchase", tx_id: "t", items: [{ item_id: "a", price: "1" }] }],
    ["a text that looks like an array", { eventName: "sign_up", method: "[1]" }, "recorded"],
  ].map(([title, given, verdict = "uncertain"]) => {
    return [String(title), Object(given), Object(given), String(verdict)] as const;
  }),
  // An optional parameter that is null is not sent. In an event of a list, the field would stay.
  [
    "an optional parameter null",
    { eventName: "view_item", item_id: "a", brand: null },
    { eventName: "view_item", item_id: "a" },
    "recorded",
  ],
  ["a required parameter null", { eventName: "sign_up", method: null }, undefined, "ignored"],
  ["an item that is none", { eventName: "purchase", tx_id: "t", items: ["a"] }, undefined, "ignored"],
];

/** A client in live mode, and the requests that its service has received in the test. */
const shared = perFile(async () => {
  const { url, received } = await startStub(() => ({ status: 200, json: { message: "ok" } }));
  const env = cleanEnvironment({ EVENT_API_URL: url, EVENT_APP_KEY: "real-key" });
  return { client: await CLIENTS["2026 client, modern"]({ args: [COMMAND], env }), received };
});
async function live() {
  const { client, received } = await shared();
  received.length = 0;
  return { client, received };
}

test("both tools send and judge what was given, and read only items that came as text", async () => {
  const { client, received } = await live();
  const verdictOf = z.object({ verdicts: z.tuple([z.looseObject({ predicted: z.string() })]) });
  for (const [title, given, sent, predicted] of AS_GIVEN) {
    const event = { uid: "u", ...given };
    // A dryRun that is a text makes the server convert all arguments to the types in the schema. The event must not be
    // converted.
    for (const more of [{}, { dryRun: "false" }]) {
      for (const [tool, input] of [
        ["track_event", event],
        ["track_events", { events: [{ ...event, platform: Object.keys(more).join() }] }],
      ] as const) {
        received.length = 0;
        const { structuredContent } = await client.callTool(tool, { ...input, ...more });
        expect(verdictOf.parse(structuredContent).verdicts[0].predicted, `${tool}: ${title}`).toBe(predicted);
        const bodies = received.map(({ body }) => JSON.parse(body));
        expect(bodies, `${tool}: ${title}`).toMatchObject(sent === undefined ? [] : [{ uid: "u", ...sent }]);
      }
    }
  }
});

test("a parameter may have the name of a prototype: it is judged and sent like any other", async () => {
  const { client, received } = await live();
  for (const name of ["__proto__", "constructor", "other"]) {
    const extra = JSON.parse(`{${JSON.stringify(name)}:"${"x".repeat(1025)}"}`);
    const app = { uid: "u", eventName: "app_open" };
    const one = await client.callTool("track_event", { ...app, extra });
    expect(one.structuredContent, name).toMatchObject({ failures: [{ errorCode: "EVENT_REJECTED" }] });
    const many = await client.callTool("track_events", { events: [{ ...app, ...extra }] });
    expect(many.structuredContent, name).toMatchObject({ failures: [{ errorCode: "EVENT_REJECTED" }] });
    expect(received).toEqual([]);
    const short = JSON.parse(`{${JSON.stringify(name)}:"x"}`);
    await client.callTool("track_event", { ...app, extra: short });
    await client.callTool("track_events", { events: [{ ...app, ...short }] });
    const bodies = received.splice(0).map(({ body }) => body);
    expect(bodies, name).toEqual(Array(2).fill(JSON.stringify({ ...app, ...short })));
  }
});

test.each([
  ["its own, in sandbox mode", async () => ({})],
  ["its own, in live mode", async () => ({ EVENT_API_URL: "http://127.0.0.1:9", EVENT_APP_KEY: "real-key" })],
  [
    "one that runs, in live mode",
    async () => ({
      ...{ EVENT_API_URL: "http://127.0.0.1:9", EVENT_APP_KEY: "real-key" },
      TARGETING_MCP_SANDBOX_URL: await runningSandbox(),
    }),
  ],
])("generated page tests expect events at a sandbox that listens: %s", async (_, environment) => {
  const env = cleanEnvironment(await environment());
  const client = await CLIENTS["2025 client"]({ args: [COMMAND], env });
  const given = { eventNames: ["click"], format: "playwright" };
  const { structuredContent } = await client.callTool("generate_event_tests", given);
  const { resourceUri, target } = z
    .looseObject({ resourceUri: z.string(), target: z.string() })
    .parse(structuredContent);
  expect(await client.readResource(resourceUri)).toContain(`process.env.EVENT_API_URL ?? "${target}"`);
  const answer = await fetch(`${target}/event`, {
    method: "POST",
    headers: { authorization: "sandbox-app-key", "content-type": "application/json" },
    body: JSON.stringify({ uid: "u", eventName: "app_open" }),
  });
  expect(answer.status).toBe(200);
});

async function runningSandbox(): Promise<string> {
  const sandbox = await startSandbox();
  onTestFinished(() => sandbox.close());
  return sandbox.url;
}
