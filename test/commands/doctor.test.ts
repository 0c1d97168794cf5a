import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { startLoginIssuer } from "../support/login-issuer.ts";
import { OPENING, runCommand, startCommand, toolCall } from "../support/server-process.ts";
import { startService } from "../support/service.ts";
import { closedPort, startStub } from "../support/stub-server.ts";

const diagnosis = z.strictObject({
  ok: z.boolean(),
  version: z.string(),
  environment: z.enum(["live", "sandbox"]).optional(),
  checks: z.array(
    z.strictObject({
      about: z.string(),
      state: z.enum(["ok", "note", "problem"]),
      found: z.string(),
      remedy: z.string().optional(),
    }),
  ),
  // Absent if the settings cannot be read. test/cluster/stores tests stores in a database.
  store: z.strictObject({ kind: z.literal("files"), ok: z.boolean(), problems: z.array(z.string()) }).optional(),
  settings: z.array(
    z.strictObject({ variable: z.string(), source: z.enum(["flag", "environment", "default"]), value: z.string() }),
  ),
  tools: z.array(z.string()),
  unfinishedRuns: z.array(z.strictObject({ runId: z.string(), tool: z.string(), status: z.string() })),
});

async function doctor(environment: Record<string, string> = {}, args: readonly string[] = []) {
  const { code, text } = await runCommand(["doctor", "--json", ...args], environment);
  const found = diagnosis.parse(JSON.parse(text));
  const problems = found.checks.filter(({ state }) => state === "problem");
  expect(code).toBe(found.ok ? 0 : 1);
  expect(found.ok).toBe(problems.length === 0);
  return { ...found, problems, text };
}

const folder = () => mkdtempSync(join(tmpdir(), "targeting-mcp-doctor-"));

test("without settings everything is well, in a sandbox", async () => {
  const { ok, environment, tools, checks } = await doctor();
  expect({ ok, environment }).toEqual({ ok: true, environment: "sandbox" });
  expect(tools).toContain("inspect_events");
  expect(checks).toContainEqual({ about: "Node", state: "ok", found: process.versions.node });
});

test("no user name, password or query of an address is shown", async () => {
  const variables = [
    ...["TARGETING_API_URL", "EVENT_API_URL", "TARGETING_MCP_SANDBOX_URL", "TARGETING_MCP_PUBLIC_URL"],
    ...["TARGETING_MCP_OAUTH_ISSUER", "TARGETING_MCP_OAUTH_JWKS_URL", "TARGETING_MCP_OAUTH_AUDIENCE"],
    ...["TARGETING_MCP_STORE", "TARGETING_MCP_APPROVAL_WEBHOOK", "HTTPS_PROXY", "HTTP_PROXY"],
  ];
  const given = "https://hidden:hidden/hidden@127.0.0.1:9/a?key=hidden#hidden";
  const environments = [
    ...variables.map((variable) => ({ [variable]: given })),
    Object.fromEntries(variables.map((variable) => [variable, given])),
    // An audience need not be an address.
    ...[variables.filter((variable) => !variable.endsWith("AUDIENCE"))].map((some) =>
      Object.fromEntries(some.map((variable) => [variable, "hidden:hidden@127.0.0.1:9"])),
    ),
  ];
  for (const environment of environments) {
    for (const args of [["--json"], []]) {
      const { text } = await runCommand(["doctor", ...args], environment);
      for (const variable of Object.keys(environment)) expect(text).toContain(variable);
      expect(text.match(/.{0,60}hidden.{0,20}/g)).toBeNull();
    }
  }
});

describe("against a service", () => {
  test("a good key has both scopes, every route answers, and nothing is changed", async () => {
    const { live, control, count } = await startService();
    const before = await control("GET", "/state");
    const { ok, environment, checks, tools } = await doctor(live);
    expect({ ok, environment }).toEqual({ ok: true, environment: "live" });
    const management = checks.filter(({ about }) => about === "management API").map(({ found }) => found);
    expect(management).toEqual([
      "reachable",
      "the key is accepted",
      "the key has the scope context-targeting:read",
      "the key has the scope context-targeting:write",
    ]);
    expect(checks.filter(({ about }) => about.startsWith("management API, "))).toHaveLength(9);
    expect(tools).not.toContain("inspect_events");
    expect(await count("addOptions")).toBe(1);
    expect(await control("GET", "/state")).toEqual(before);
  });

  test("a service that answers slowly is reached, however short the wait of a call is", async () => {
    const { live, slow } = await startService();
    await slow("getTargeting", 1500);
    const { problems } = await doctor({ ...live, TARGETING_MCP_WAIT_MS: "1" });
    expect(problems).toEqual([]);
  });

  test("a key that may only read is told apart from one that may write", async () => {
    const { live } = await startService();
    const { problems } = await doctor({ ...live, TARGETING_API_KEY: "sandbox-read-key" });
    expect(problems).toEqual([
      {
        about: "management API",
        state: "problem",
        found: "the key lacks the scope context-targeting:write (403)",
        remedy: expect.stringContaining("TARGETING_MCP_READ_ONLY=on"),
      },
    ]);
  });

  test("read-only sends no write, and needs no key that may write", async () => {
    const { live, count } = await startService();
    const { ok, tools } = await doctor({ ...live, TARGETING_API_KEY: "sandbox-read-key" }, ["--read-only"]);
    expect(ok).toBe(true);
    expect(tools).not.toContain("bulk_add_options");
    expect(await count("addOptions")).toBe(0);
    expect(await count("trackEvent")).toBe(0);
  });

  test("wrong keys are named by their variables, and shown nowhere", async () => {
    const { live } = await startService();
    const { problems, text, settings } = await doctor({
      ...live,
      TARGETING_API_KEY: "a-wrong-key",
      EVENT_APP_KEY: "another-wrong-key",
    });
    expect(problems.map(({ found }) => found)).toEqual([
      "reachable, but the key is not accepted (401)",
      "reachable, but the key is not accepted (401)",
    ]);
    expect(problems.map(({ remedy }) => remedy)).toEqual([
      expect.stringContaining("TARGETING_API_KEY"),
      expect.stringContaining("EVENT_APP_KEY"),
    ]);
    expect(text).not.toContain("wrong-key");
    expect(settings).toContainEqual({ variable: "TARGETING_API_KEY", source: "environment", value: "set" });
  });

  test("an assumed path that is wrong here is named, with the setting that overrides it", async () => {
    const { live } = await startService();
    const routes = join(folder(), "routes.json");
    writeFileSync(routes, JSON.stringify({ listOptions: "GET /elsewhere/{targetingId}" }));
    const { problems } = await doctor(live, ["--routes", routes]);
    expect(problems).toEqual([
      {
        about: "management API, listOptions",
        state: "problem",
        found: expect.stringContaining("GET /elsewhere/"),
        remedy: expect.stringContaining("TARGETING_MCP_ROUTES"),
      },
    ]);
  });
});

describe("what else may be wrong with an API", () => {
  const keys = { TARGETING_API_KEY: "some-key" };

  test("nothing listens", async () => {
    const { problems } = await doctor({ ...keys, TARGETING_API_URL: await closedPort() });
    expect(problems).toMatchObject([{ found: expect.stringContaining("not reached") }]);
  });

  test("no sandbox runs where one should", async () => {
    const { problems } = await doctor({ TARGETING_MCP_SANDBOX_URL: await closedPort() });
    expect(problems.map(({ about }) => about)).toEqual(["management API", "event API"]);
    for (const { remedy } of problems) {
      expect(remedy).toContain("TARGETING_MCP_SANDBOX_URL");
      expect(remedy).not.toMatch(/TARGETING_API_URL|EVENT_API_URL|PROXY/);
    }
  });

  test("nothing of it is there", async () => {
    const { url } = await startStub(() => ({ status: 404, json: { statusCode: 404, message: "Cannot GET" } }));
    const { problems } = await doctor({ ...keys, TARGETING_API_URL: url });
    expect(problems).toMatchObject([{ remedy: expect.stringContaining("TARGETING_API_URL") }]);
  });

  test("it answers web pages", async () => {
    const { url } = await startStub(() => ({ status: 200, text: "<html>" }));
    const { ok, checks } = await doctor({ ...keys, TARGETING_API_URL: url });
    expect(ok).toBe(false);
    expect(checks).toContainEqual({
      about: "management API",
      state: "note",
      found: "not known whether TARGETING_API_KEY is accepted: no response showed it",
    });
  });

  test("its project is gone", async () => {
    const { url } = await startStub(() => ({ status: 404, json: { statusCode: 404, errorCode: "PROJECT_NOT_FOUND" } }));
    const { problems } = await doctor({ ...keys, TARGETING_API_URL: url });
    expect(problems).toMatchObject([{ found: "the project of the key no longer exists" }]);
  });
});

describe("settings and folders", () => {
  test("a setting that cannot be used", async () => {
    const { problems, environment } = await doctor({ TARGETING_API_URL: "https://api.example.com" });
    expect(problems).toMatchObject([
      { about: "settings", found: expect.stringContaining("TARGETING_API_KEY is missing") },
    ]);
    expect(environment).toBeUndefined();
  });

  test("an address without a key is well where callers over HTTP bring theirs, and their tools are listed", async () => {
    const { ok, checks, tools } = await doctor({
      TARGETING_API_URL: "https://api.example.com",
      TARGETING_MCP_OWN_KEYS: "on",
    });
    expect(ok).toBe(true);
    const ofApis = checks.filter(({ about }) => about.endsWith(" API"));
    expect(ofApis).toMatchObject([
      { about: "management API", state: "ok", found: expect.stringContaining("TARGETING_MCP_OWN_KEYS") },
      { about: "event API", state: "note", found: expect.stringContaining("not configured") },
    ]);
    expect(tools).toContain("bulk_add_options");
    expect(tools).not.toContain("track_event");
  });

  test("keys of the projects of the access file are keys, and are shown nowhere", async () => {
    const file = join(folder(), "access.json");
    const projects = { shop: { eventAppKey: "key-of-the-shop" } };
    const token = { name: "a", token: "token-of-somebody", project: "shop" };
    writeFileSync(file, JSON.stringify({ projects, tokens: [token] }), { mode: 0o600 });
    const { ok, tools, text } = await doctor({
      TARGETING_MCP_MODE: "live",
      EVENT_API_URL: "https://events.example.com",
      TARGETING_MCP_ACCESS_FILE: file,
    });
    expect(ok).toBe(true);
    expect(tools).toContain("track_event");
    expect(text).not.toMatch(/key-of-the-shop|token-of-somebody/);
  });

  test.each([
    ["TARGETING_MCP_PUBLIC_URL is missing", { TARGETING_MCP_OAUTH_ISSUER: "https://login.example.com" }],
    ["TARGETING_MCP_OAUTH_ISSUER is missing", { TARGETING_MCP_OAUTH_PROJECT_CLAIM: "project" }],
    [
      "TARGETING_MCP_ACCESS_FILE contains no projects",
      {
        TARGETING_MCP_OAUTH_ISSUER: "https://login.example.com",
        TARGETING_MCP_PUBLIC_URL: "https://mcp.example.com/mcp",
        TARGETING_MCP_OAUTH_PROJECT_CLAIM: "project",
      },
    ],
  ])("what http would refuse: %s", async (sentence, environment) => {
    const { problems } = await doctor(environment);
    expect(problems).toMatchObject([{ about: "settings", found: expect.stringContaining(sentence) }]);
    const http = await runCommand(["http", "--host", "0.0.0.0", "--port", "0"], environment);
    expect(http).toMatchObject({ code: 2, stderr: expect.stringContaining(sentence) });
  });

  test("what http reads of the authorization server, and why it cannot be read", async () => {
    const issuer = await startLoginIssuer({ clientId: "page-client" });
    const at = (url: string, more: Readonly<Record<string, string>> = {}) =>
      doctor({
        TARGETING_MCP_OAUTH_ISSUER: url,
        TARGETING_MCP_OAUTH_AUDIENCE: "here",
        TARGETING_MCP_OAUTH_CLIENT_ID: "page-client",
        ...more,
      });
    const about = "authorization server";
    expect((await at(issuer.url)).checks).toEqual(
      expect.arrayContaining([
        { about, state: "ok", found: "1 of 1 published keys can be used" },
        { about, state: "ok", found: "people can log in there" },
      ]),
    );
    const { url: ill } = await startStub(({ url }) =>
      url === "/keys" ? { status: 200, json: { keys: [{ kty: "RSA" }] } } : { status: 503, json: {} },
    );
    const { problems } = await at(ill, { TARGETING_MCP_OAUTH_JWKS_URL: `${ill}/keys` });
    expect(problems).toMatchObject([
      { about, found: "its keys cannot be read: none of the 1 published keys can be used" },
      { about, found: expect.stringMatching(/^people cannot log in at the authorization server: .*status 503/) },
    ]);
    expect(problems[0]?.remedy).toContain("TARGETING_MCP_OAUTH_JWKS_URL");
    const nowhere = await at(await closedPort());
    expect(nowhere.problems[0]?.found).toMatch(/^its keys cannot be read: .*connection/i);
  });

  test("where a value came from", async () => {
    const { settings } = await doctor({ TARGETING_MCP_CONFIRM: "strict" }, ["--wait-ms", "7"]);
    expect(settings).toContainEqual({ variable: "TARGETING_MCP_CONFIRM", source: "environment", value: "strict" });
    expect(settings).toContainEqual({ variable: "TARGETING_MCP_WAIT_MS", source: "flag", value: "7" });
    expect(settings).toContainEqual({ variable: "EVENT_APP_KEY", source: "default", value: "not set" });
  });

  test("a misspelt variable costs nothing, and is named", async () => {
    const { ok, checks } = await doctor({ TARGETING_MCP_READONLY: "on" });
    expect(ok).toBe(true);
    expect(checks).toContainEqual(expect.objectContaining({ found: "TARGETING_MCP_READONLY is not a setting" }));
  });

  test("a state folder that is a file, and an allowed folder that is not there", async () => {
    const file = join(folder(), "file");
    writeFileSync(file, "");
    const { problems } = await doctor({ TARGETING_MCP_STATE_DIR: file, TARGETING_MCP_ALLOWED_DIRS: `${file}-missing` });
    expect(problems.map(({ about }) => about)).toEqual(["state folder", "allowed folders"]);
  });

  test("looking leaves nothing behind", async () => {
    const state = join(folder(), "state");
    expect((await doctor({ TARGETING_MCP_STATE_DIR: join(state, "deep") })).ok).toBe(true);
    mkdirSync(state);
    expect((await doctor({ TARGETING_MCP_STATE_DIR: state })).ok).toBe(true);
    expect(readdirSync(state)).toEqual([]);
  });
});

test.each([
  ["create_targetings", "createTargetings", { items: [{ name: "Cut short" }] }],
  ["track_events", "trackEvent", { events: [{ uid: "u", eventName: "app_open" }] }],
] as const)("a run of %s that was cut short is listed", async (tool, operation, args) => {
  const { live, hold, control } = await startService();
  const environment = { ...live, TARGETING_MCP_STATE_DIR: folder(), TARGETING_MCP_WAIT_MS: "1" };
  const release = await hold(operation);
  const server = startCommand([], environment);
  for (const message of OPENING) server.send(message);
  server.send(toolCall(1, tool, args));
  await server.answer(1);
  // The run is stored before its request is sent.
  await expect.poll(() => control("GET", "/faults")).toMatchObject({ faults: [{ struck: 1 }] });
  server.child.kill("SIGKILL");
  await server.exited;
  await release();
  const { ok, unfinishedRuns } = await doctor(environment);
  expect(ok).toBe(true);
  expect(unfinishedRuns).toEqual([{ runId: expect.any(String), tool, status: "interrupted" }]);
});

test("people get a table", async () => {
  const { code, text } = await runCommand(["doctor"], { TARGETING_MCP_MODE: "live" });
  expect(code).toBe(1);
  expect(text).toMatch(/^ {2}FIX {2}settings {2}live mode .* needs TARGETING_API_URL/m);
  expect(text).toMatch(/^ {2}TARGETING_MCP_MODE +environment {2}live$/m);
  expect(text).toContain("Some problems must be fixed");
});
