import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, type ToolResult, textOf } from "../support/clients.ts";
import { atEnd, perFile } from "../support/ends.ts";
import { startHttp } from "../support/http-server.ts";
import { clientOf, loggedIn, postLogin, startApproved, TOKENS, writeAccess } from "../support/page-http.ts";
import { browserOfTest, personAt, sessionOf } from "../support/page-person.ts";
import { startStub } from "../support/stub-server.ts";
import { connected } from "../support/view-hosts.ts";
import { checkedReport } from "../support/writing.ts";

const AGENT = { name: "agent" } as const;
const BOSS = { name: "boss", approves: true } as const;
const CHIEF = { name: "chief", approves: true, project: "*" } as const;
const BOTH = { name: "both", approves: true, tools: true } as const;

interface Calls {
  callTool(name: string, args: Record<string, unknown>): Promise<ToolResult>;
}

type DropFirst<List extends readonly unknown[]> = List extends readonly [unknown, ...infer Rest] ? Rest : never;

const ofRun = z.looseObject({ runId: z.string() });
const targetings = z.looseObject({ results: z.array(z.looseObject({ _id: z.string().optional() })) });

const shared = perFile(() => startApproved([AGENT, BOSS]));

/** Returns the shared server, with this access file. */
async function startShared(...access: DropFirst<Parameters<typeof writeAccess>>) {
  const server = await shared();
  writeAccess(server.accessFile, ...access);
  return server;
}

let made = 0;

/** Creates a targeting, and returns a call that deletes it. */
async function deletion(client: Calls) {
  made += 1;
  let report = checkedReport(await client.callTool("create_targetings", { items: [{ name: `Sports fans ${made}` }] }));
  while (report.status === "running") report = checkedReport(await client.callTool("get_run", { runId: report.runId }));
  const targetingId = report.results[0]?._id ?? "";
  return { targetingId, ask: () => client.callTool("delete_targeting", { ids: [targetingId] }) };
}

async function decisions(stateDir: string, runId: string): Promise<readonly Record<string, unknown>[]> {
  const lines = (await readFile(join(stateDir, "audit.ndjson"), "utf8")).trim().split("\n");
  return lines
    .map((line): Record<string, unknown> => JSON.parse(line))
    .filter((line) => "decision" in line && line.runId === runId);
}

describe("an approver over HTTP", () => {
  test.for(Object.keys(CLIENTS) as (keyof typeof CLIENTS)[])("approves what a %s asks for", async (connect) => {
    const server = await startShared([AGENT, BOSS]);
    const { ask } = await deletion(await clientOf(server.url, "agent", connect));
    const answer = ask();
    const boss = await loggedIn(server.origin, "boss");
    const run = await boss.waiting();
    expect(run).toMatchObject({ tool: "delete_targeting", caller: "token:agent", actions: ["approve", "decline"] });
    expect(run.waiting?.parts[0]).toMatchObject({ title: "Targetings deleted", count: 1 });
    expect((await boss.press(run.runId, "approve")).status).toBe(200);
    const report = checkedReport(await answer);
    expect(report).toMatchObject({
      status: "succeeded",
      approval: { decision: "approved", channel: "page", by: "boss" },
      runId: run.runId,
    });
    await expect.poll(() => boss.runs().find(({ runId }) => runId === run.runId)?.status).toBe("succeeded");
    expect((await boss.press(run.runId, "approve")).status).toBe(409);
    const text = expect.any(String);
    expect(await decisions(server.stateDir, run.runId)).toEqual([
      {
        at: text,
        runId: run.runId,
        decision: "approved",
        where: "page",
        who: "boss",
        caller: "token:agent",
        project: text,
      },
    ]);
  });

  test("decides once about a call that is made several times", async () => {
    const server = await startApproved([AGENT, BOSS], { env: { TARGETING_MCP_WAIT_MS: "1000" } });
    const [agent, later] = [await clientOf(server.url, "agent"), await clientOf(server.url, "agent", "2025 client")];
    const ids = [await server.sandbox.targeting("Deleted once")];
    // On a busy machine, a call may answer before its run is planned.
    const ask = async (client: Calls) =>
      ofRun.parse((await client.callTool("delete_targeting", { ids })).structuredContent).runId;
    const first = await ask(agent);
    const boss = await loggedIn(server.origin, "boss");
    const { runId } = await boss.waiting();
    expect([first, await ask(agent), await ask(later)]).toEqual([runId, runId, runId]);
    const waiting = () => boss.runs().filter((run) => run.waiting !== undefined);
    expect(waiting().map((run) => run.runId)).toEqual([runId]);
    expect((await boss.press(runId, "approve")).status).toBe(200);
    const look = async () => checkedReport(await later.callTool("get_run", { runId, waitMs: 900 }));
    await expect.poll(look).toMatchObject({ status: "succeeded", approval: { decision: "approved", channel: "page" } });
  });

  test("declines, and of two people one decides", async () => {
    const server = await startShared([AGENT, BOSS, CHIEF]);
    const { ask } = await deletion(await clientOf(server.url, "agent"));
    const answer = ask();
    const people = await Promise.all([loggedIn(server.origin, "boss"), loggedIn(server.origin, "chief")]);
    const [run] = await Promise.all(people.map((person) => person.waiting()));
    const pressed = await Promise.all(people.map((person) => person.press(run?.runId ?? "", "decline")));
    expect(pressed.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(checkedReport(await answer)).toMatchObject({
      status: "cancelled",
      approval: { decision: "declined", channel: "page" },
    });
    expect((await decisions(server.stateDir, run?.runId ?? "")).map(({ decision }) => decision)).toEqual(["declined"]);
  });

  test("is waited for by get_run, and a plan that went stale cannot be approved", async () => {
    const server = await startApproved([AGENT, BOSS], { env: { TARGETING_MCP_WAIT_MS: "1000" } });
    const client = await clientOf(server.url, "agent");
    const { ask, targetingId } = await deletion(client);
    // The first deletion loads the code, which takes time.
    await client.callTool("delete_targeting", { ids: [targetingId], dryRun: true });
    const look = (runId: string | undefined, waitMs: number) => client.callTool("get_run", { runId, waitMs });
    const answered = checkedReport(await ask());
    // On a busy machine, the call may answer before the run is planned.
    await expect.poll(async () => checkedReport(await look(answered.runId, 1)).status).toBe("needs_confirmation");
    const report = answered.status === "running" ? checkedReport(await look(answered.runId, 1)) : answered;
    expect(report).toMatchObject({ status: "needs_confirmation" });
    expect(report.confirmation?.token).toBeUndefined();
    expect(report.nextSteps.join()).toContain(`the page at ${server.origin}/`);
    const boss = await loggedIn(server.origin, "boss");
    const { runId } = await boss.waiting();
    await client.callTool("bulk_add_options", { targetingId, items: [{ name: "New", contexts: ["n"] }] });
    expect((await boss.press(runId, "approve")).status).toBe(409);
    const later = await look(runId, 1);
    expect(textOf(later)).toContain("changed since it was planned");
    const again = checkedReport(await ask());
    const waits = () => boss.runs().some((run) => run.runId === again.runId && run.waiting !== undefined);
    await expect.poll(waits).toBe(true);
    const rest = () => look(again.runId, 900);
    const waiting = rest();
    expect((await boss.press(again.runId ?? "", "approve")).status).toBe(200);
    await waiting;
    await expect
      .poll(async () => checkedReport(await rest()))
      .toMatchObject({ status: "succeeded", approval: { decision: "approved", channel: "page" } });
  });

  test("decides about their project alone, and * about all, also of callers' own keys", async () => {
    const projects = { shop: { targetingApiKey: "sandbox-key" }, other: { targetingApiKey: "sandbox-read-key" } };
    const server = await startApproved([{ ...AGENT, project: "shop" }, { ...BOSS, project: "other" }, { ...CHIEF }], {
      more: { projects },
      env: { TARGETING_API_KEY: "", EVENT_APP_KEY: "", TARGETING_MCP_OWN_KEYS: "on" },
    });
    const { ask } = await deletion(await clientOf(server.url, "agent"));
    const answer = ask();
    const [boss, chief] = [await loggedIn(server.origin, "boss"), await loggedIn(server.origin, "chief")];
    const run = await chief.waiting();
    expect(run).toMatchObject({ project: "shop", caller: "token:agent" });
    expect(boss.runs()).toEqual([]);
    expect((await boss.press(run.runId, "approve")).status).toBe(404);
    expect((await chief.press(run.runId, "cancel")).status).toBe(404);
    expect((await chief.press(run.runId, "approve")).status).toBe(200);
    expect(checkedReport(await answer).approval).toMatchObject({ decision: "approved", channel: "page" });
  });

  test("approves what a caller with keys of their own asks for, where it approves for all", async () => {
    const server = await startApproved([CHIEF], {
      env: { TARGETING_API_KEY: "", EVENT_APP_KEY: "", TARGETING_MCP_OWN_KEYS: "on" },
    });
    const client = await CLIENTS["2026 client, modern"]({
      url: server.url,
      headers: { "x-targeting-api-key": "sandbox-key" },
    });
    const { ask } = await deletion(client);
    const answer = ask();
    const chief = await loggedIn(server.origin, "chief");
    const run = await chief.waiting();
    expect(run.disabled).toBeUndefined();
    expect((await chief.press(run.runId, "approve")).status).toBe(200);
    expect(checkedReport(await answer).approval).toMatchObject({ decision: "approved", channel: "page" });
  });

  test("does both with tools: true, and not what they asked for themselves where another one is required", async () => {
    const server = await startApproved([BOTH, BOSS], { more: { requireOtherApprover: true } });
    const client = await clientOf(server.url, "both");
    const { ask } = await deletion(client);
    const answer = ask();
    const both = await loggedIn(server.origin, "both");
    const { runId, disabled } = await both.waiting();
    expect(disabled?.approve).toContain("another person");
    expect((await both.press(runId, "approve")).status).toBe(403);
    const boss = await loggedIn(server.origin, "boss");
    expect((await boss.press(runId, "approve")).status).toBe(200);
    expect(checkedReport(await answer).approval).toMatchObject({ decision: "approved", channel: "page" });
    // Without the other approver, nobody could approve.
    writeAccess(server.accessFile, [BOTH], { requireOtherApprover: true });
    expect(textOf(await (await deletion(client)).ask())).toContain("Nobody can approve");
  });
});

describe("where another approver is required", () => {
  const trusting = perFile(() =>
    startApproved([BOTH, BOSS], {
      more: { requireOtherApprover: true },
      env: { TARGETING_MCP_CONFIRM: "ask", TARGETING_MCP_TRUST_VIEWS: "on", TARGETING_MCP_SESSIONS: "on" },
    }),
  );

  test.for(["auto", "legacy"] as const)(
    "a client that asks its own person and shows views decides nothing (%s)",
    async (era) => {
      const server = await trusting();
      writeAccess(server.accessFile, [BOTH, BOSS], { requireOtherApprover: true });
      const questions: string[] = [];
      const requestInit = { headers: { authorization: `Bearer ${TOKENS.both}` } };
      const host = await connected(new StreamableHTTPClientTransport(new URL(server.url), { requestInit }), era, {
        answer: (question) => {
          questions.push(question);
          return { action: "accept", content: { confirm: true } };
        },
      });
      const made = await host.call("create_targetings", { items: [{ name: `Sports fans ${era}` }] });
      const ids = [targetings.parse(made.structuredContent).results[0]?._id ?? ""];
      const answer = host.call("delete_targeting", { ids });
      const boss = await loggedIn(server.origin, "boss");
      const { runId } = await boss.waiting();
      const secret = "A".repeat(43);
      const decision = await host.call("decide_run", { runId, decision: "approve", secret });
      expect(decision.isError).toBe(true);
      expect((await boss.press(runId, "approve")).status).toBe(200);
      const report = await answer;
      expect(report.structuredContent).toMatchObject({
        status: "succeeded",
        approval: { decision: "approved", channel: "page" },
      });
      expect(report._meta?.["targeting-mcp/decision"]).toBeUndefined();
      // If nobody else could approve, the call is refused, and there is no token.
      writeAccess(server.accessFile, [BOTH], { requireOtherApprover: true });
      const more = await host.call("create_targetings", { items: [{ name: `Travel fans ${era}` }] });
      const others = [targetings.parse(more.structuredContent).results[0]?._id ?? ""];
      const refused = await host.call("delete_targeting", { ids: others });
      expect(JSON.stringify(refused)).toContain("Nobody can approve");
      expect(refused.structuredContent).not.toHaveProperty("confirmation");
      expect(questions).toEqual([]);
    },
  );
});

describe("the page over HTTP lets in", () => {
  test("approvers alone, who call no tool unless they say so", async () => {
    const server = await startShared([AGENT, BOSS, BOTH]);
    const { origin, url } = server;
    expect((await postLogin(origin, TOKENS.agent)).status).toBe(403);
    expect((await postLogin(origin, "guessed-token-0123456789")).status).toBe(401);
    expect((await postLogin(origin, TOKENS.boss, { origin: "http://evil.example" })).status).toBe(403);
    expect((await postLogin(origin, TOKENS.boss, { origin: "null" })).status).toBe(403);
    const tools = (name: keyof typeof TOKENS) =>
      fetch(url, { method: "POST", headers: { authorization: `Bearer ${TOKENS[name]}` }, body: "{}" });
    expect((await tools("boss")).status).toBe(403);
    expect((await tools("both")).status).not.toBe(403);
    for (const path of ["/page/stream", "/page/runs/01ARZ3NDEKTSV4RRFFQ69G5FAV", "/page/other"]) {
      const answer = await fetch(origin + path, { headers: { authorization: `Bearer ${TOKENS.boss}` } });
      expect(answer.status, path).toBe(401);
      expect(await answer.json()).toMatchObject({ token: true });
    }
    const page = await fetch(`${origin}/`);
    expect(page.status).toBe(200);
    expect(page.headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
        "frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    );
    expect(page.headers.get("referrer-policy")).toBe("no-referrer");
    expect((await fetch(`${origin}/nowhere`)).status).toBe(404);
  });

  test("with the token of a session, until the entry leaves the access file", async () => {
    const server = await startShared([AGENT, BOSS]);
    const { origin, accessFile } = server;
    const boss = await loggedIn(origin, "boss");
    const unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    expect((await boss.press(unknown, "approve")).status).toBe(404);
    expect((await boss.press(unknown, "approve", { origin: "http://evil.example" })).status).toBe(403);
    expect((await boss.press(unknown, "approve", { "x-page-token": "guessed" })).status).toBe(401);
    const asCookie = { "x-page-token": "", cookie: `session=${boss.session}` };
    expect((await boss.press(unknown, "approve", asCookie)).status).toBe(401);
    writeAccess(accessFile, [AGENT, { ...BOSS, token: "boss-token-that-is-new-0123" }]);
    expect((await boss.press(unknown, "approve")).status).toBe(401);
    await expect.poll(boss.isOver).toBe(true);
    expect((await postLogin(origin, TOKENS.boss)).status).toBe(401);
    writeAccess(accessFile, [AGENT, BOSS]);
    expect((await boss.press(unknown, "approve")).status).toBe(404);
  });

  test("until they log out, in this session alone", async () => {
    const { origin, stateDir } = await startShared([AGENT, BOSS]);
    const [here, there] = [await loggedIn(origin, "boss"), await loggedIn(origin, "boss")];
    const logOut = (headers: Readonly<Record<string, string>>) =>
      fetch(`${origin}/page/logout`, {
        method: "POST",
        headers: { "content-type": "application/json", origin, ...here.headers, ...headers },
      });
    expect((await logOut({ origin: "http://evil.example" })).status).toBe(403);
    expect((await logOut({ "x-page-token": "" })).status).toBe(401);
    expect((await logOut({})).status).toBe(200);
    await expect.poll(here.isOver).toBe(true);
    const read = (headers: Readonly<Record<string, string>>) => fetch(`${origin}/page/runs/none`, { headers });
    expect((await read(here.headers)).status).toBe(401);
    expect((await read(there.headers)).status).toBe(404);
    expect((await logOut({})).status).toBe(401);
    // Another process with the same key also refuses the ended session, and so would this one after a restart.
    const next = await startApproved([AGENT, BOSS], { env: { TARGETING_MCP_STATE_DIR: stateDir } });
    const readNext = (headers: Readonly<Record<string, string>>) => fetch(`${next.origin}/page/runs/none`, { headers });
    expect((await readNext(here.headers)).status).toBe(401);
    expect((await readNext(there.headers)).status).toBe(404);
  });

  test("nobody where the page is off", async () => {
    const { origin } = await startApproved([AGENT, BOSS], { env: { TARGETING_MCP_PAGE: "off" } });
    for (const path of ["/", "/page/page.js", "/page/stream", "/login", "/callback"]) {
      expect((await fetch(origin + path)).status, path).toBe(404);
    }
  });
});

describe("where nobody can approve over HTTP", () => {
  test.for([
    ["the default", {}, "Nobody can approve"],
    ["ask", { TARGETING_MCP_CONFIRM: "ask" }, undefined],
  ] as const)("%s goes on to the next channel at once", async ([, env, refusal]) => {
    const server = await startApproved([AGENT, { ...BOSS, project: "shop" }], {
      more: { projects: { shop: { targetingApiKey: "sandbox-read-key" } } },
      env,
    });
    const { ask } = await deletion(await clientOf(server.url, "agent"));
    const result = await ask();
    if (refusal !== undefined) {
      expect(result.isError).toBe(true);
      expect(textOf(result)).toContain(refusal);
      expect(textOf(result)).toContain("TARGETING_MCP_CONFIRM=ask");
      expect(textOf(result)).toContain('"approves": true');
    } else expect(checkedReport(result).confirmation?.token).toMatch(/^.{40}$/);
    const told = server.logged().filter(({ message }) => /nobody can approve/i.test(message));
    expect(told).toHaveLength(refusal === undefined ? 0 : 1);
  });
});

const told = z.array(z.object({ url: z.string(), method: z.string(), body: z.string() }));

test.for([200, 500])("the webhook learns of a waiting run, and its %i hinders nothing", async (status) => {
  const hook = await startStub(() => ({ status, json: {} }));
  const server = await startApproved([AGENT, BOSS], {
    env: { TARGETING_MCP_APPROVAL_WEBHOOK: `${hook.url}/hook?key=a-secret-of-the-hook` },
  });
  const { ask } = await deletion(await clientOf(server.url, "agent"));
  const answer = ask();
  const boss = await loggedIn(server.origin, "boss");
  const { runId } = await boss.waiting();
  await expect.poll(() => hook.received.length).toBe(1);
  const [request] = told.parse(hook.received);
  expect(request).toMatchObject({ url: "/hook?key=a-secret-of-the-hook", method: "POST" });
  const { project, ...body }: Record<string, unknown> = JSON.parse(request?.body ?? "");
  expect(body).toEqual({ runId, tool: "delete_targeting", url: `${server.origin}/` });
  expect(project).toEqual(expect.any(String));
  await boss.press(runId, "approve");
  expect(checkedReport(await answer).approval).toMatchObject({ decision: "approved", channel: "page" });
  expect(server.stderr()).not.toContain("a-secret-of-the-hook");
  expect(server.stderr().includes("the webhook for approvals")).toBe(status !== 200);
});

test("without callers who say who they are the page opens in the browser of this machine's person", async () => {
  const browser = browserOfTest();
  const server = await startHttp({ ...browser.env, TARGETING_MCP_MODE: "sandbox" });
  const { origin } = new URL(server.url);
  expect((await fetch(`${origin}/page/stream`)).status).toBe(401);
  const { ask } = await deletion(await CLIENTS["2026 client, modern"]({ url: server.url }));
  const answer = ask();
  const link = await browser.address();
  expect(new URL(link).origin).toBe(origin);
  const person = await personAt(link);
  const { runId } = await person.waiting();
  expect((await person.press(runId, "approve")).status).toBe(200);
  expect(checkedReport(await answer).approval).toMatchObject({ decision: "approved", channel: "page" });
  const [line] = await decisions(server.stateDir, runId);
  expect(line).toMatchObject({ where: "page", caller: "local" });
});

test("a person has at most 128 open pages in all their sessions, and others can still open theirs", async () => {
  const server = await startApproved([AGENT, BOSS, CHIEF]);
  let closing = new AbortController();
  // The stream of an answer that nothing refers to is closed.
  const opened: Response[] = [];
  const open = async (name: "boss" | "chief"): Promise<number> => {
    const headers = { "x-page-token": await sessionOf(await postLogin(server.origin, TOKENS[name])) };
    const answer = await fetch(`${server.origin}/page/stream`, { headers, signal: closing.signal });
    opened.push(answer);
    return answer.status;
  };
  for (let pages = 0; pages < 128; pages += 1) expect(await open("boss")).toBe(200);
  expect(await open("boss")).toBe(503);
  expect(await open("chief")).toBe(200);
  closing.abort();
  const again = new AbortController();
  atEnd(() => again.abort());
  closing = again;
  await expect.poll(() => open("boss")).toBe(200);
  expect(opened.length).toBeGreaterThan(130);
});
