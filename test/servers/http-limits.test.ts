import { mkdtempSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { type ClientRequest, request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { atEnd, perFile } from "../support/ends.ts";
import { post, startHttp } from "../support/http-server.ts";
import { startIssuer } from "../support/issuer.ts";
import { optionItems, startService } from "../support/service.ts";

// The documented limits. They are repeated here by hand, so that a wrong value in the code fails a test.
const LARGEST_BODY = 16 * 1_048_576;
const MAX_VALUES = 1_000_000;
const LARGEST_WITHOUT_LIST = 256 * 1024;
const MAX_UNFINISHED_OF_ONE = 32;
const MAX_SESSIONS = 1000;
const MAX_MESSAGES = 20;
/** How many sessions a test opens at once. */
const AT_ONCE = 16;

const TARGETING = "01JABCDEFGHJKMNPQRSTVWXYZ0";
const JSON_HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const NAMES = ["alice", "bob", "carol"] as const;
const bearer = (name: string) => ({ authorization: `Bearer token-of-${name}-0001` });
const as = (name: string) => ({ headers: bearer(name) });

/** Starts a server with tokens for alice, bob and carol. carol may only read. */
async function start(more: Readonly<Record<string, string>> = {}) {
  const service = await startService();
  const file = join(mkdtempSync(join(tmpdir(), "targeting-mcp-")), "access.json");
  const tokens = NAMES.map((name) => ({ name, token: `token-of-${name}-0001`, readOnly: name === "carol" }));
  await writeFile(file, JSON.stringify({ tokens }));
  const server = await startHttp({ ...service.live, TARGETING_MCP_ACCESS_FILE: file, ...more });
  return { service, ...server };
}

/** A server that tests share. */
const shared = perFile(() => start());

/** Sends a body unchanged, with the headers of a 2025-era client. */
function send(url: string, body: string, headers: Readonly<Record<string, string>> = {}) {
  return fetch(url, { method: "POST", headers: { ...JSON_HEADERS, ...headers }, body });
}

const call = (id: number, name: string, args: unknown) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name, arguments: args },
});
const read = (id: number) => call(id, "get_targeting", { targetingId: TARGETING });

/** Sends only the beginning of a body. `answered` resolves to the status if the server answers anyway. */
function beginBody(url: string, headers: Readonly<Record<string, string>>) {
  const sent: ClientRequest = httpRequest(url, {
    method: "POST",
    agent: false,
    headers: { ...JSON_HEADERS, ...headers, "content-length": 1000 },
  });
  atEnd(() => void sent.destroy());
  const answered = new Promise<number | undefined>((resolve, reject) => {
    sent.on("response", (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.on("error", reject);
  });
  answered.catch(() => undefined);
  const begun = new Promise<void>((resolve) => sent.write("{", () => resolve()));
  return { sent, begun, answered };
}

/** Sends the beginnings of twice as many bodies as alice may have unfinished. */
const begun = perFile(async () => {
  const { url } = await start();
  const bodies = Array.from({ length: 2 * MAX_UNFINISHED_OF_ONE }, () => beginBody(url, bearer("alice")));
  const answers: (number | undefined)[] = [];
  for (const { answered } of bodies) answered.then((status) => answers.push(status)).catch(() => undefined);
  await Promise.all(bodies.map(({ begun }) => begun));
  return { url, bodies, answers };
});
const large = { name: "track_events", arguments: { items: optionItems(50_000), dryRun: true } };

test("unfinished bodies of one caller hold up nobody else", async () => {
  const { url, answers } = await begun();
  // The server refuses half of the bodies at once, because alice already has as many unfinished ones as she may have.
  await expect.poll(() => answers).toEqual(Array.from({ length: MAX_UNFINISHED_OF_ONE }, () => 503));
  expect((await post(url, "tools/call", large, as("bob"))).status).toBe(200);
  // A body that arrives together with its headers never counts as unfinished.
  expect((await post(url, "tools/list", {}, as("alice"))).status).toBe(200);
});

describe("bodies", () => {
  test("a body of very many values is refused, whatever it is for", async () => {
    const { url } = await shared();
    const many = "{},".repeat(5_500_000).slice(0, -1);
    for (const tool of ["get_targeting", "bulk_add_options"]) {
      const body = JSON.stringify(call(1, tool, { x: "HERE" })).replace('"HERE"', `[${many}]`);
      expect(body.length).toBeLessThan(LARGEST_BODY);
      const refused = await send(url, body, bearer("carol"));
      expect(refused.status).toBe(413);
      expect(await refused.text()).toContain(`more than ${MAX_VALUES} values`);
    }
  });

  test("values are counted to the last one, those of a text as well", async () => {
    const { url } = await shared();
    const around =
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rename_targetings","arguments":{"x":[]}}}';
    // The array is in a message with 8 values: the message, its four members, two members of params, and the array
    // itself.
    const fill = (count: number) => around.replace("[]", `[${"0,".repeat(count).slice(0, -1)}]`);
    const fitting = await send(url, fill(MAX_VALUES - 8), bearer("alice"));
    expect(await fitting.text()).toContain("unknown argument");
    expect((await send(url, fill(MAX_VALUES - 7), bearer("alice"))).status).toBe(413);
    const inText = { items: `[${"{},".repeat(MAX_VALUES)}{}]` };
    const refused = await post(url, "tools/call", { name: "rename_targetings", arguments: inText }, as("alice"));
    expect(await refused.text()).toContain("the texts in the arguments hold more than 1000000 values");
  });

  test("an object of very many members is refused", async () => {
    const { url } = await shared();
    const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`m${n}`, 1]));
    const status = async (count: number) => {
      const params = { name: "bulk_add_options", arguments: { items: [members(count)] } };
      return (await post(url, "tools/call", params, as("alice"))).status;
    };
    expect(await status(10_000)).toBe(200);
    expect(await status(10_001)).toBe(413);
  });

  test("without a list a body is small, with one it is as large as it has to be", async () => {
    const { url } = await shared();
    const sized = (bytes: number) => ({ x: "a".repeat(bytes) });
    const status = async (name: string, bytes: number) => {
      const answer = await post(url, "tools/call", { name, arguments: sized(bytes) }, as("alice"));
      return answer.status;
    };
    expect(await status("get_targeting", LARGEST_WITHOUT_LIST - 1000)).toBe(200);
    for (const name of ["get_targeting", "list_options", "get_run", "resume_run", "no_such_tool"]) {
      expect(await status(name, LARGEST_WITHOUT_LIST), name).toBe(413);
    }
    for (const name of ["bulk_add_options", "delete_options", "track_events", "run_event_tests"]) {
      expect(await status(name, 12_000_000), name).toBe(200);
    }
    expect((await post(url, "tools/list", sized(LARGEST_WITHOUT_LIST), as("alice"))).status).toBe(413);
  });
});

test("a body of another kind is not waited for", async () => {
  for (const sessions of ["off", "on"]) {
    const { url } = await start({ TARGETING_MCP_SESSIONS: sessions });
    const { answered } = beginBody(url, { ...bearer("alice"), "content-type": "text/plain" });
    expect(await answered).toBe(415);
  }
});

describe("requests under way", () => {
  test("one caller has at most half of them", async () => {
    const { url, service } = await start({ TARGETING_MCP_MAX_CONCURRENCY: "4" });
    const release = await service.hold("getTargeting", { times: 2 });
    const reading = (name: string) =>
      post(url, "tools/call", { name: "get_targeting", arguments: { targetingId: TARGETING } }, as(name));
    const first = [reading("alice"), reading("alice")];
    await expect.poll(() => service.count("getTargeting")).toBe(2);
    const refused = await post(url, "tools/list", {}, as("alice"));
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toBe("1");
    expect((await post(url, "tools/list", {}, as("bob"))).status).toBe(200);
    await release();
    expect((await Promise.all(first)).map(({ status }) => status)).toEqual([200, 200]);
    expect((await post(url, "tools/list", {}, as("alice"))).status).toBe(200);
  });

  test("a batch counts as its length, and has at most 20 messages", async () => {
    const { url, service } = await start({ TARGETING_MCP_MAX_CONCURRENCY: "8" });
    const release = await service.hold("getTargeting", { times: 1 });
    const batch = (count: number) => JSON.stringify(Array.from({ length: count }, (_, id) => read(id)));
    const three = send(url, batch(3), bearer("alice"));
    await expect.poll(() => service.count("getTargeting")).toBe(3);
    expect((await send(url, batch(2), bearer("alice"))).status).toBe(503);
    expect((await send(url, batch(5), bearer("alice"))).status).toBe(400);
    expect((await send(url, batch(MAX_MESSAGES + 1), bearer("alice"))).status).toBe(400);
    expect((await send(url, JSON.stringify(read(1)), bearer("alice"))).status).toBe(200);
    await release();
    expect((await three).status).toBe(200);
    await three.then((answer) => answer.text());
    expect((await send(url, "[]", bearer("alice"))).status).toBe(400);
  });

  test("a batch of the largest length is answered", async () => {
    const { url } = await shared();
    const messages = Array.from({ length: MAX_MESSAGES }, (_, id) => ({ jsonrpc: "2.0", id, method: "ping" }));
    const answer = await (await send(url, JSON.stringify(messages), bearer("alice"))).text();
    expect(answer.match(/"result":/g)).toHaveLength(MAX_MESSAGES);
  });
});

const INITIALIZE = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-03-26", capabilities: {}, clientInfo: { name: "t", version: "1" } },
});

/** Opens a session. Returns the headers for requests in it. */
async function openSession(url: string, headers: Readonly<Record<string, string>>) {
  const opened = await send(url, INITIALIZE, headers);
  await opened.text();
  return { ...headers, "mcp-session-id": opened.headers.get("mcp-session-id") ?? `none: ${opened.status}` };
}

describe("sessions", () => {
  const PING = JSON.stringify({ jsonrpc: "2.0", id: 2, method: "ping" });
  const ping = async (url: string, session: Readonly<Record<string, string>>) => {
    const answer = await send(url, PING, session);
    await answer.text();
    return answer.status;
  };

  test("one caller has at most half, and the oldest idle one goes first", async () => {
    const { url, service } = await start({ TARGETING_MCP_SESSIONS: "on" });
    const openMany = async (name: string, count: number) => {
      const opened: Readonly<Record<string, string>>[] = [];
      while (opened.length < count) {
        const some = Array.from({ length: Math.min(AT_ONCE, count - opened.length) }, () =>
          openSession(url, bearer(name)),
        );
        opened.push(...(await Promise.all(some)));
      }
      return opened;
    };
    const [busy = {}, idle = {}, used = {}] = [
      ...(await openMany("alice", 1)),
      ...(await openMany("alice", 1)),
      ...(await openMany("alice", 1)),
    ];
    await openMany("alice", MAX_SESSIONS / 2 - 3);
    const release = await service.hold("getTargeting");
    const working = send(url, JSON.stringify(read(3)), busy);
    await expect.poll(() => service.count("getTargeting")).toBe(1);
    expect(await ping(url, used)).toBe(200);
    const [next = {}] = await openMany("alice", 1);
    expect(await ping(url, idle)).toBe(404);
    expect(await Promise.all([used, next].map((session) => ping(url, session)))).toEqual([200, 200]);
    const [ofBob = {}] = await openMany("bob", MAX_SESSIONS / 2);
    expect(await ping(url, used)).toBe(200);
    // The server has as many sessions as it may have. For a new one, it closes the session that was unused for longest,
    // but never one with an unfinished request.
    const [ofCarol = {}] = await openMany("carol", 1);
    expect(await Promise.all([used, next, ofBob, ofCarol].map((session) => ping(url, session)))).toEqual([
      200, 200, 200, 200,
    ]);
    await release();
    expect((await working).status).toBe(200);
  });

  test("what a token may do is its own, whoever opened the session, in a batch as well", async () => {
    const issuer = await startIssuer();
    const service = await startService();
    const { url } = await startHttp({
      ...service.live,
      TARGETING_MCP_OAUTH_ISSUER: issuer.url,
      TARGETING_MCP_OAUTH_AUDIENCE: "here",
      TARGETING_MCP_SESSIONS: "on",
    });
    const token = async (scope: string) => withToken(await issuer.token({ aud: "here", scope }));
    const [reading, writing] = await Promise.all([token("targeting:read"), token("targeting:write")]);
    const session = await openSession(url, writing);
    const write = call(2, "create_targetings", { items: [{ name: "Spring" }] });
    const inIt = { ...session, ...reading };
    for (const body of [write, [write], [read(3), write]]) {
      const refused = await send(url, JSON.stringify(body), inIt);
      expect(refused.status).toBe(403);
      expect(refused.headers.get("www-authenticate")).toContain('scope="targeting:write"');
    }
    expect(await ping(url, inIt)).toBe(404);
    const list = JSON.stringify({ jsonrpc: "2.0", id: 4, method: "tools/list" });
    const ofReader = await openSession(url, reading);
    expect(await (await send(url, list, ofReader)).text()).not.toContain("create_targetings");
    expect(await ping(url, { ...ofReader, ...writing })).toBe(404);
    expect(await service.count("createTargetings")).toBe(0);
    expect(await (await send(url, JSON.stringify([write]), session)).text()).toContain("succeeded");
  });
});

function withToken(token: string) {
  return { authorization: `Bearer ${token}` };
}

// This test is the last one, because by now most of the 15 seconds have passed.
test("unfinished bodies end after 15 seconds", async () => {
  const { url, bodies } = await begun();
  const statuses = await Promise.all(bodies.map(({ answered }) => answered));
  expect(statuses.filter((status) => status === 408)).toHaveLength(MAX_UNFINISHED_OF_ONE);
  expect((await post(url, "tools/call", large, as("alice"))).status).toBe(200);
});
