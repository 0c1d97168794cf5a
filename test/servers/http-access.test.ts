import { mkdtempSync } from "node:fs";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, call, textOf } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { post, startHttp } from "../support/http-server.ts";
import { startIssuer } from "../support/issuer.ts";
import { runCommand } from "../support/server-process.ts";
import { optionItems, startService } from "../support/service.ts";
import { startStub } from "../support/stub-server.ts";

const connect = CLIENTS["2026 client, modern"];
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** Returns the callers of the writes in the audit, in the order of the writes. */
async function callersIn(stateDir: string): Promise<readonly string[]> {
  const audit = await readFile(join(stateDir, "audit.ndjson"), "utf8").catch(() => "");
  const lines = audit.split("\n").filter((line) => line !== "");
  return lines.map((line) => z.looseObject({ caller: z.string() }).parse(JSON.parse(line)).caller);
}

async function accessFile(content: unknown): Promise<string> {
  const file = join(mkdtempSync(join(tmpdir(), "targeting-mcp-")), "access.json");
  await writeFile(file, JSON.stringify(content));
  return file;
}

describe("tokens of the access file", () => {
  const ALICE = "token-of-alice-0001";
  const BOB = "token-of-bob-000001";
  const READER = "token-of-reader-001";

  const start = perFile(async () => {
    const service = await startService();
    const file = await accessFile({
      tokens: [
        { name: "alice", token: ALICE },
        { name: "bob", token: BOB },
        { name: "reader", token: READER, readOnly: true },
      ],
    });
    const asking = { TARGETING_MCP_ACCESS_FILE: file, TARGETING_MCP_CONFIRM: "ask" };
    const server = await startHttp({ ...service.live, ...asking }, ["--host", "0.0.0.0"]);
    return { service, server, url: server.url.replace("0.0.0.0", "127.0.0.1") };
  });

  test("an approval in the client names the caller that answered", async () => {
    const { service, url } = await start();
    const targetingId = await service.targeting("Answered by Alice");
    const answer = () => ({ action: "accept" as const, content: { confirm: true } });
    const alice = await connect({ url, headers: bearer(ALICE), answer });
    const deleted = await alice.callTool("delete_targeting", { ids: [targetingId] });
    expect(textOf(deleted)).toContain("Approved in the client by alice.");
  });

  test("nobody comes in without one", async () => {
    const { url } = await start();
    // A request without a token is not an error, so the answer contains no error code (RFC 6750, 3.1).
    for (const headers of [{}, { authorization: `Basic ${ALICE}` }, bearer("")]) {
      const refused = await post(url, "tools/list", {}, { headers });
      expect(refused.status).toBe(401);
      expect(refused.headers.get("www-authenticate")).toBe('Bearer scope="targeting:read"');
      expect(await refused.text()).toContain("Authorization: Bearer TOKEN");
    }
    const unknown = await post(url, "tools/list", {}, { headers: bearer("token-of-nobody-001") });
    expect(unknown.status).toBe(401);
    expect(unknown.headers.get("www-authenticate")).toMatch(
      /^Bearer error="invalid_token", error_description="[ -~]+"/,
    );
    expect((await post(url, "tools/list", {}, { headers: bearer(ALICE) })).status).toBe(200);
    expect((await fetch(url.replace("/mcp", "/healthz"))).status).toBe(200);
  });

  test("one caller sees nothing of another's, and cannot act on it", async () => {
    const { url, service } = await start();
    const alice = await connect({ url, headers: bearer(ALICE) });
    const bob = await connect({ url, headers: bearer(BOB) });
    const made = await call(alice, "create_targetings", { items: [{ name: "Spring" }] });
    for (const name of ["get_run", "resume_run", "cancel_run"]) {
      expect(textOf(await bob.callTool(name, { runId: made.runId }))).toContain("there is no run");
    }
    expect(JSON.stringify((await bob.callTool("get_run", {})).structuredContent)).not.toContain(made.runId);
    expect(JSON.stringify((await alice.callTool("get_run", {})).structuredContent)).toContain(made.runId);
    const uri = `targeting://runs/${made.runId}/results`;
    const read = (token: string) =>
      post(url, "resources/read", { uri }, { headers: bearer(token) }).then((got) => got.text());
    expect(await read(ALICE)).toContain("succeeded");
    expect(JSON.parse(await read(BOB))).toMatchObject({
      error: {
        code: -32602,
        message: `There is no resource at ${uri}. Check the ID; runs and suites of other callers are not visible.`,
        data: { uri },
      },
    });

    const [{ _id } = { _id: "" }] = made.results;
    const planned = await call(alice, "delete_targeting", { ids: [_id] });
    const deletions = await service.count("deleteTargetings");
    const stolen = await bob.callTool("delete_targeting", { confirmation: planned.confirmation.token });
    expect(textOf(stolen)).toContain("not a token that this server gave to this caller");
    expect(await service.count("deleteTargetings")).toBe(deletions);
    expect(await call(alice, "delete_targeting", { confirmation: planned.confirmation.token })).toMatchObject({
      status: "succeeded",
    });
  });

  test("a read-only token changes nothing", async () => {
    const { url, service } = await start();
    const reader = await connect({ url, headers: bearer(READER) });
    expect(await reader.toolNames()).not.toContain("create_targetings");
    expect(await reader.toolNames()).toContain("get_targeting");
    const created = await service.count("createTargetings");
    const refused = await reader.callTool("create_targetings", { items: [{ name: "Spring" }] });
    expect(refused.isError).toBe(true);
    expect(textOf(refused)).toContain("the caller's token is read-only");
    expect(await service.count("createTargetings")).toBe(created);
  });

  test("files are for those whose token names folders, whatever the settings allow", async () => {
    const service = await startService();
    const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-"));
    const file = join(folder, "options.ndjson");
    await writeFile(file, '{"name":"One"}\n{"name":"Two"}\n');
    const { url } = await startHttp({
      ...service.live,
      TARGETING_MCP_ALLOWED_DIRS: folder,
      TARGETING_MCP_ACCESS_FILE: await accessFile({
        tokens: [
          { name: "alice", token: ALICE },
          { name: "bob", token: BOB, folders: [folder] },
        ],
      }),
    });
    const bob = await connect({ url, headers: bearer(BOB) });
    const made = await call(bob, "create_targetings", { items: [{ name: "S1" }] });
    const targetingId = made.results[0]?._id;
    const alice = await connect({ url, headers: bearer(ALICE) });
    expect((await alice.callTool("bulk_add_options", { targetingId, file })).isError).toBe(true);
    const added = await bob.callTool("bulk_add_options", { targetingId, file });
    expect(added.structuredContent).toMatchObject({ status: "succeeded", counts: { items: 2 } });
  });

  test("a token opens its project, and no other", async () => {
    const { url: api, received } = await startStub(() => ({ status: 404, json: { errorCode: "TARGETING_NOT_FOUND" } }));
    const file = await accessFile({
      projects: { shop: { targetingApiKey: "key-of-the-shop" }, news: { targetingApiKey: "key-of-the-news" } },
      tokens: [
        { name: "alice", token: ALICE, project: "shop" },
        { name: "bob", token: BOB, project: "news" },
      ],
    });
    const { url } = await startHttp({
      TARGETING_API_URL: api,
      EVENT_API_URL: api,
      TARGETING_MCP_MODE: "live",
      TARGETING_MCP_ACCESS_FILE: file,
    });
    const args = { name: "get_targeting", arguments: { targetingId: "01JABCDEFGHJKMNPQRSTVWXYZ0" } };
    for (const token of [ALICE, BOB]) {
      const client = await connect({ url, headers: bearer(token) });
      expect(await client.toolNames()).not.toContain("track_event");
      await client.callTool(args.name, args.arguments);
    }
    expect(received.map(({ headers }) => headers["x-api-key"])).toEqual(["key-of-the-shop", "key-of-the-news"]);
  });

  test.each([
    ["{", "it is not JSON"],
    [JSON.stringify({ tokens: [{ name: "a", token: "short-secret" }] }), "at least 16 characters"],
    [JSON.stringify({ tokens: [{ name: "a", token: `${ALICE}-secret`, project: "x" }] }), "not in projects"],
    [JSON.stringify({ projects: { "": { targetingApiKey: "sandbox-key" } } }), 'the reserved name ""'],
    [JSON.stringify({ projects: { "*": { targetingApiKey: "sandbox-key" } } }), 'the reserved name "*"'],
    [JSON.stringify({ projects: { x: {} } }), "targetingApiKey, eventAppKey or both"],
    [JSON.stringify({ tokens: [] }), "contains no token that can call tools"],
  ])("a file that is not as it must be: %s", async (content, sentence) => {
    const file = join(mkdtempSync(join(tmpdir(), "targeting-mcp-")), "access.json");
    await writeFile(file, content);
    const ended = await runCommand(["http", "--port", "0"], { TARGETING_MCP_ACCESS_FILE: file });
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining(sentence) });
    expect(ended.stderr).not.toContain("secret");
  });
});

describe("access tokens of an authorization server", () => {
  const AUDIENCE = "https://mcp.example.com/mcp";

  const start = perFile(async () => {
    const issuer = await startIssuer();
    const service = await startService();
    const { url, stateDir } = await startHttp({
      ...service.live,
      TARGETING_MCP_OAUTH_ISSUER: issuer.url,
      TARGETING_MCP_PUBLIC_URL: AUDIENCE,
    });
    const list = async (token: string) => post(url, "tools/list", {}, { headers: bearer(token) });
    return { issuer, service, url, stateDir, list };
  });

  test("only valid ones, meant for this server", async () => {
    const { issuer, list } = await start();
    const good = { aud: AUDIENCE, scope: "targeting:write" };
    expect((await list(await issuer.token(good))).status).toBe(200);
    expect((await list(await issuer.token({ ...good, aud: [AUDIENCE, "https://other.example"] }))).status).toBe(200);
    const token = await issuer.token(good);
    const [head = "", , mark = ""] = token.split(".");
    const forged = Buffer.from(JSON.stringify({ ...good, iss: issuer.url, sub: "root", exp: issuer.now() + 300 }));
    const bad: readonly (readonly [string, string])[] = [
      ["of another audience", await issuer.token({ ...good, aud: "https://other.example/mcp" })],
      ["without an audience", await issuer.token({ scope: "targeting:write" })],
      ["of another issuer", await issuer.token({ ...good, iss: "https://other.example" })],
      ["expired", await issuer.token({ ...good, exp: issuer.now() - 60 })],
      ["without an end", await issuer.token({ ...good, exp: undefined })],
      ["not valid yet", await issuer.token({ ...good, nbf: issuer.now() + 300 })],
      ["signed by a stranger", await issuer.token(good, "stranger")],
      ["with altered claims", `${head}.${forged.toString("base64url")}.${mark}`],
      ["unsigned", `${Buffer.from('{"alg":"none"}').toString("base64url")}.${token.split(".")[1]}.`],
      ["no JWT", "something-else"],
    ];
    for (const [what, one] of bad) {
      const refused = await list(one);
      expect(refused.status, what).toBe(401);
      expect(refused.headers.get("www-authenticate")).toContain('error="invalid_token"');
    }
  });

  test("scopes decide what may be done, and the answer says which one is missing", async () => {
    const { issuer, list, url, service } = await start();
    const none = await list(await issuer.token({ aud: AUDIENCE, scope: "email" }));
    expect(none.status).toBe(403);
    expect(none.headers.get("www-authenticate")).toMatch(/error="insufficient_scope".*scope="targeting:read"/);

    const reading = bearer(await issuer.token({ aud: AUDIENCE, scp: ["targeting:read"] }));
    const listed = await post(url, "tools/list", {}, { headers: reading });
    expect(await listed.text()).not.toContain("create_targetings");
    const args = { name: "create_targetings", arguments: { items: [{ name: "Spring" }] } };
    const before = await service.count("createTargetings");
    const write = await post(url, "tools/call", args, { headers: reading });
    expect(write.status).toBe(403);
    expect(write.headers.get("www-authenticate")).toContain('scope="targeting:write"');
    expect(await service.count("createTargetings")).toBe(before);
    const writing = bearer(await issuer.token({ aud: AUDIENCE, scope: "targeting:write" }));
    expect(await (await post(url, "tools/call", args, { headers: writing })).text()).toContain("succeeded");
  });

  test("a client finds the authorization server from the refusal", async () => {
    const { issuer, url } = await start();
    const refused = await post(url, "tools/list", {});
    expect(refused.status).toBe(401);
    const place = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
    expect(refused.headers.get("www-authenticate")).toContain(`resource_metadata="${place}"`);
    const metadata = await fetch(new URL("/.well-known/oauth-protected-resource/mcp", url));
    expect(await metadata.json()).toMatchObject({
      resource: AUDIENCE,
      authorization_servers: [issuer.url],
      scopes_supported: ["targeting:read", "targeting:write"],
    });
  });

  test("an issuer that cannot be reached is not the caller's fault, and the log says why; a wrong token is", async () => {
    const { url: nowhere, received } = await startStub(() => ({ status: 500, json: {} }));
    const server = await startHttp({ TARGETING_MCP_OAUTH_ISSUER: nowhere, TARGETING_MCP_PUBLIC_URL: AUDIENCE });
    const { url } = server;
    const issuer = await startIssuer();
    const list = async (token: string) => post(url, "tools/list", {}, { headers: bearer(token) });
    const good = { iss: nowhere, aud: AUDIENCE };
    for (const wrong of [
      "something-else",
      await issuer.token({ ...good, iss: issuer.url }),
      await issuer.token({ ...good, aud: "https://other.example" }),
      await issuer.token({ ...good, exp: issuer.now() - 60 }),
    ]) {
      expect((await list(wrong)).status, wrong).toBe(401);
    }
    expect(received).toEqual([]);
    const refused = await list(await issuer.token(good));
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toBe("5");
    expect(server.stderr()).toMatch(/the keys of the authorization server cannot be read.*status 500/);
  });

  test("a project claim that names no project lets nobody in, as on the page", async () => {
    const { issuer, service } = await start();
    const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-claims-"));
    const file = join(folder, "access.json");
    await writeFile(file, JSON.stringify({ projects: { shop: { targetingApiKey: "sandbox-key" } } }), { mode: 0o600 });
    const { url } = await startHttp({
      ...service.live,
      TARGETING_MCP_OAUTH_ISSUER: issuer.url,
      TARGETING_MCP_PUBLIC_URL: AUDIENCE,
      TARGETING_MCP_OAUTH_PROJECT_CLAIM: "project",
      TARGETING_MCP_ACCESS_FILE: file,
    });
    const status = async (project: unknown) => {
      const token = await issuer.token({ aud: AUDIENCE, scope: "targeting:write", project });
      return (await post(url, "tools/list", {}, { headers: bearer(token) })).status;
    };
    expect(await status("shop")).toBe(200);
    for (const project of ["", "*", " shop", "shop\n", "toString"]) expect(await status(project), project).toBe(403);
    for (const project of [undefined, null, 0, ["shop"], {}]) expect(await status(project), String(project)).toBe(401);
  });

  test("of another kind are refused", async () => {
    const { issuer, list } = await start();
    const good = { aud: AUDIENCE, scope: "targeting:write" };
    for (const typ of ["at+jwt", "JWT"]) {
      expect((await list(await issuer.token(good, "issuer", "one", { typ }))).status, typ).toBe(200);
    }
    for (const typ of ["logout+jwt", "secevent+jwt", "dpop+jwt"]) {
      expect((await list(await issuer.token(good, "issuer", "one", { typ }))).status, typ).toBe(401);
    }
  });

  test.each([
    ["TARGETING_MCP_OAUTH_ISSUER", "http://issuer.example"],
    ["TARGETING_MCP_OAUTH_ISSUER", "https://issuer.example/a b"],
    ["TARGETING_MCP_OAUTH_JWKS_URL", "http://issuer.example/keys"],
    ["TARGETING_MCP_OAUTH_JWKS_URL", "http://127.0.0.1.issuer.example/keys"],
  ])("%s in clear text on another machine is refused: %s", async (variable, value) => {
    const environment = { TARGETING_MCP_OAUTH_ISSUER: "https://issuer.example", [variable]: value };
    const { code, stderr } = await runCommand(["http"], environment);
    expect(code).toBe(2);
    expect(stderr).toContain(`${variable} (--`);
    expect(stderr).toContain("must be an https:// address");
  });

  test("a user and a program of one name are two, and see nothing of each other", async () => {
    const { issuer, url, stateDir } = await start();
    const good = { aud: AUDIENCE, scope: "targeting:write" };
    const before = await callersIn(stateDir);
    const [user, program] = await Promise.all([
      issuer.token({ ...good, sub: "alice" }),
      issuer.token({ ...good, sub: undefined, client_id: "alice" }),
    ]);
    const [one, other] = [
      await connect({ url, headers: bearer(user) }),
      await connect({ url, headers: bearer(program) }),
    ];
    const made = await call(one, "create_targetings", { items: [{ name: "S1" }] });
    expect(textOf(await other.callTool("get_run", { runId: made.runId }))).toContain("there is no run");
    await other.callTool("create_targetings", { items: [{ name: "S2" }] });
    await expect
      .poll(async () => (await callersIn(stateDir)).slice(before.length))
      .toEqual([`oauth:${issuer.url} alice`, `client:${issuer.url} alice`]);
  });
});

describe("keys that callers bring", () => {
  test("are forwarded, needed, and appear nowhere", async () => {
    const { url: api, received } = await startStub(({ headers }) => ({
      status: 400,
      json: { message: [`no: ${JSON.stringify(headers)}`], error: "Bad Request", statusCode: 400 },
    }));
    const server = await startHttp({
      TARGETING_API_URL: api,
      EVENT_API_URL: api,
      TARGETING_MCP_MODE: "live",
      TARGETING_MCP_OWN_KEYS: "on",
      TARGETING_MCP_LOG_LEVEL: "debug",
    });
    const keys = { "x-targeting-api-key": "canary-of-targeting", "x-event-app-key": "canary-of-events" };
    expect((await post(server.url, "tools/list", {})).status).toBe(401);
    const client = await connect({ url: server.url, headers: keys });
    const answers = [
      await client.callTool("get_targeting", { targetingId: "01JABCDEFGHJKMNPQRSTVWXYZ0" }),
      await client.callTool("create_targetings", { items: [{ name: "Spring" }] }),
      await client.callTool("track_event", { uid: "u", eventName: "app_open" }),
      await client.callTool("create_targetings", { items: [{ name: "canary-of-targeting" }, { name: "Spring" }] }),
      await client.callTool("track_event", { uid: "canary-of-events", eventName: "app_open" }),
      await client.callTool("track_event", { uid: "u", eventName: "canary-of-events" }),
      await client.callTool("get_run", { runId: "canary-of-targeting" }),
      await client.callTool("get_targeting", { targetingName: "canary-of-targeting" }),
      await client.callTool("get_targeting", { "canary-of-events": 1 }),
    ];
    expect(received.map(({ headers }) => headers["x-api-key"] ?? headers.authorization)).toEqual(
      expect.arrayContaining(["canary-of-targeting", "canary-of-events"]),
    );
    server.child.kill("SIGTERM");
    await server.exited;
    const written = await Promise.all(
      (await readdir(server.stateDir, { recursive: true })).map(async (name) => {
        const file = join(server.stateDir, name);
        return name + ((await stat(file)).isFile() ? await readFile(file, "utf8") : "");
      }),
    );
    expect(written.length).toBeGreaterThan(1);
    for (const text of [JSON.stringify(answers), server.stderr(), server.lines.join(), written.join()]) {
      expect(text).not.toMatch(/canary-of-(targeting|events)/);
    }
  });

  test("two callers with different keys are two", async () => {
    const service = await startService({ keys: { managementKeys: [{ key: "key-one" }, { key: "key-two" }] } });
    const { url, stateDir } = await startHttp({
      TARGETING_API_URL: service.url,
      TARGETING_MCP_MODE: "live",
      TARGETING_MCP_OWN_KEYS: "on",
    });
    const one = await connect({ url, headers: { "x-targeting-api-key": "key-one" } });
    const two = await connect({ url, headers: { "x-targeting-api-key": "key-two" } });
    const made = await call(one, "create_targetings", { items: optionItems(2) });
    expect(textOf(await two.callTool("get_run", { runId: made.runId }))).toContain("there is no run");
    expect(textOf(await one.callTool("get_run", { runId: made.runId }))).toContain(made.runId);
    await expect.poll(() => callersIn(stateDir)).toEqual([expect.stringMatching(/^key:[0-9a-f]{32}$/)]);
  });

  test("with a token, they are another project of the same caller", async () => {
    const service = await startService({ keys: { managementKeys: [{ key: "key-one" }, { key: "key-two" }] } });
    const token = "token-of-alice-0001";
    const { url, stateDir } = await startHttp({
      TARGETING_API_URL: service.url,
      TARGETING_API_KEY: "key-one",
      TARGETING_MCP_MODE: "live",
      TARGETING_MCP_OWN_KEYS: "on",
      TARGETING_MCP_ACCESS_FILE: await accessFile({ tokens: [{ name: "alice", token }] }),
    });
    const one = await connect({ url, headers: bearer(token) });
    const two = await connect({ url, headers: { ...bearer(token), "x-targeting-api-key": "key-two" } });
    const made = await call(one, "create_targetings", { items: optionItems(2) });
    expect(textOf(await two.callTool("get_run", { runId: made.runId }))).toContain("there is no run");
    await two.callTool("create_targetings", { items: [{ name: "Spring" }] });
    await expect.poll(() => callersIn(stateDir)).toEqual(["token:alice", "token:alice"]);
  });

  test("are refused where they are not asked for, or are of no use", async () => {
    const { url } = await startHttp();
    const headers = { "x-targeting-api-key": "some-key" };
    expect((await post(url, "tools/list", {}, { headers })).status).toBe(403);
    const { url: api } = await startStub(() => ({ status: 500 }));
    const bound = await startHttp({
      TARGETING_API_URL: api,
      TARGETING_MCP_MODE: "live",
      TARGETING_MCP_OWN_KEYS: "on",
    });
    const refused = await post(bound.url, "tools/list", {}, { headers: { "x-event-app-key": "some-key" } });
    expect(refused.status).toBe(403);
    expect(await refused.text()).toContain("no address");
  });
});
