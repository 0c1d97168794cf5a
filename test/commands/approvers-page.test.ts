import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { approversPage } from "../../src/commands/http/people/approvers-page.ts";
import { viewers } from "../../src/commands/http/people/viewers.ts";
import { projects } from "../../src/commands/http/projects.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { fileBackend } from "../../src/runs/file/backend.ts";
import { createLog, followWork } from "../../src/server/log.ts";
import { readSettings } from "../../src/settings/settings.ts";
import { startLoginIssuer } from "../support/login-issuer.ts";
import { sessionOf } from "../support/page-person.ts";

const ORIGIN = "http://127.0.0.1:3000";
const CLIENT = "page-client";
const MINUTE = 60_000;

type Issuer = Parameters<typeof startLoginIssuer>[0];

/** The page of people who log in through an issuer, at a time that the test says, and a person who came in there. */
async function start(more: Partial<Issuer> = {}) {
  const issuer = await startLoginIssuer({ clientId: CLIENT, claims: { project: "shop" }, ...more });
  const input = {
    environment: {
      TARGETING_API_URL: "http://127.0.0.1:9",
      TARGETING_MCP_MODE: "live",
      TARGETING_MCP_OWN_KEYS: "on",
      TARGETING_MCP_STATE_DIR: mkdtempSync(join(tmpdir(), "targeting-mcp-")),
      TARGETING_MCP_OAUTH_ISSUER: issuer.url,
      TARGETING_MCP_OAUTH_CLIENT_ID: CLIENT,
      TARGETING_MCP_OAUTH_PROJECT_CLAIM: "project",
    },
    flags: new Map<string, string>(),
    home: tmpdir(),
    platform: process.platform,
    overHttp: true,
  } as const;
  const settings = readSettings(input);
  const all = projects(input, settings, {
    stopping: new AbortController().signal,
    backend: fileBackend({ ...settings, clock: systemClock }),
    sealKey: async () => new Uint8Array(32),
    work: followWork(),
  });
  onTestFinished(() => all.close());
  const lines: string[] = [];
  const log = createLog({
    ...{ level: "debug", write: (line: string) => lines.push(line), redact: (line: string) => line },
    ...{ now: Date.now, work: undefined },
  });
  let now = Date.now();
  const access = () => ({
    projects: new Map(["shop", "other"].map((name) => [name, { targetingApiKey: `${name}-key` }])),
    tokens: [],
  });
  const page = approversPage({
    ...{ viewers: viewers({ settings, access, all }), address: `${ORIGIN}/`, key: new Uint8Array(32) },
    ...{ log, stopping: new AbortController().signal, settings, now: () => now },
  });
  const host = { host: new URL(ORIGIN).host };
  const read = (session: string, path = "/page/runs/none") =>
    page(new Request(ORIGIN + path, { headers: { ...host, "x-page-token": session } }));
  const post = (path: string, body: unknown = {}, session = "") =>
    page(
      new Request(ORIGIN + path, {
        method: "POST",
        headers: { ...host, origin: ORIGIN, "content-type": "application/json", "x-page-token": session },
        body: JSON.stringify(body),
      }),
    );
  const begun = z.object({ location: z.string(), login: z.string() });
  const logIn = async () => {
    const { location, login } = begun.parse(await (await post("/login/issuer")).json());
    const there = await fetch(location, { redirect: "manual" });
    const query = new URL(there.headers.get("location") ?? "").search.slice(1);
    return post("/callback", { query, login });
  };
  return {
    ...{ issuer, read, post, logIn, lines },
    renew: (session: string) => post("/page/renew", {}, session),
    pass(minutes: number): void {
      now += minutes * MINUTE;
    },
  };
}

test("a person's rights are looked at again every ten minutes, and the session goes on with another token", async () => {
  const { issuer, read, logIn, renew, pass } = await start({ refreshes: true });
  const first = await sessionOf(await logIn());
  pass(9);
  expect((await read(first)).status).toBe(404);
  // Before it is due, nobody is asked.
  const early = await sessionOf(await renew(first));
  expect(issuer.count("/token")).toBe(1);
  pass(1);
  for (const session of [first, early]) {
    const due = await read(session);
    expect(due.status).toBe(401);
    expect(await due.json()).toMatchObject({ renews: true });
  }
  const second = await sessionOf(await renew(first));
  expect(issuer.count("/token")).toBe(2);
  expect((await read(second)).status).toBe(404);
  expect((await read(first)).status).toBe(401);
  for (let times = 0; times < 71; times += 1) {
    pass(10);
    if (times === 0) expect((await read(second)).status).toBe(401);
  }
  // Twelve hours after the login it is over, however often it was renewed.
  expect((await renew(second)).status).toBe(401);
});

test.each<readonly [string, (issuer: Awaited<ReturnType<typeof startLoginIssuer>>) => void]>([
  ["the session of the issuer", (issuer) => issuer.endsAll()],
  ["the scope", (issuer) => issuer.becomes({ claims: { project: "shop" }, scope: "openid" })],
  ["the project", (issuer) => issuer.becomes({ claims: {} })],
  ["the person: another one", (issuer) => issuer.becomes({ claims: { project: "shop", sub: "bob" } })],
])("a session is over as soon as it is due where this is gone: %s", async (_, take) => {
  const { issuer, read, logIn, renew, pass } = await start({ refreshes: true });
  const session = await sessionOf(await logIn());
  take(issuer);
  pass(10);
  const over = await renew(session);
  expect(over.status).toBe(401);
  expect(await over.json()).not.toHaveProperty("renews");
  expect((await read(session)).status).toBe(401);
});

test("who is given another project at the issuer sees that one from then on", async () => {
  const { issuer, read, logIn, renew, pass } = await start({ refreshes: true });
  const session = await sessionOf(await logIn());
  issuer.becomes({ claims: { project: "other" } });
  pass(10);
  const stream = await read(await sessionOf(await renew(session)), "/page/stream");
  const { value } = await (stream.body ?? new ReadableStream<Uint8Array>()).getReader().read();
  expect(new TextDecoder().decode(value)).toContain("project other");
});

test("while the issuer cannot be asked a due session shows nothing, and goes on afterwards", async () => {
  const { issuer, read, logIn, renew, pass, lines } = await start({ refreshes: true });
  const session = await sessionOf(await logIn());
  issuer.away(true);
  pass(10);
  expect((await renew(session)).status).toBe(502);
  expect((await read(session)).status).toBe(401);
  issuer.away(false);
  expect((await read(await sessionOf(await renew(session)))).status).toBe(404);
  expect(lines.join()).not.toContain("of-the-login");
});

test("a session about whose person the issuer cannot be asked again lasts an hour", async () => {
  const { read, logIn, renew, pass } = await start();
  const session = await sessionOf(await logIn());
  pass(59);
  expect((await read(session)).status).toBe(404);
  expect((await renew(session)).status).toBe(200);
  pass(1);
  expect((await read(session)).status).toBe(401);
  expect((await renew(session)).status).toBe(401);
});

test("what a login begins with is no session, and the other way round", async () => {
  const { read, post, logIn } = await start();
  const begun = z.object({ login: z.string() }).parse(await (await post("/login/issuer")).json());
  expect((await read(begun.login)).status).toBe(401);
  const login = await sessionOf(await logIn());
  expect((await post("/callback", { query: "code=a&state=b", login })).status).toBe(403);
});
