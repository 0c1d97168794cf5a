import { expect, test } from "vitest";
import * as z from "zod";
import { hasApprover } from "../../src/http/access-now.ts";
import { startLoginIssuer } from "../support/login-issuer.ts";
import { CHIEF, pageOfPeople } from "../support/page-of-people.ts";
import { sessionOf } from "../support/page-person.ts";

const ORIGIN = "http://127.0.0.1:3000";
const PEER = "192.0.2.1";

/** Creates the page, and functions that send the requests of its script. */
async function start(more: Parameters<typeof pageOfPeople>[1] = {}) {
  const { page, ...rest } = await pageOfPeople(`${ORIGIN}/`, more);
  const host = { host: new URL(ORIGIN).host };
  const read = (session: string, path = "/page/runs/none") =>
    page(new Request(ORIGIN + path, { headers: { ...host, "x-page-token": session } }), PEER);
  const post = (path: string, body: unknown = {}, session = "", peer = PEER) =>
    page(
      new Request(ORIGIN + path, {
        method: "POST",
        headers: { ...host, origin: ORIGIN, "content-type": "application/json", "x-page-token": session },
        body: JSON.stringify(body),
      }),
      peer,
    );
  const begun = z.object({ location: z.string(), login: z.string() });
  const logIn = async (peer = PEER) => {
    const { location, login } = begun.parse(await (await post("/login/issuer", {}, "", peer)).json());
    const there = await fetch(location, { redirect: "manual" });
    const query = new URL(there.headers.get("location") ?? "").search.slice(1);
    return post("/callback", { query, login }, "", peer);
  };
  return { ...rest, read, post, logIn, renew: (session: string) => post("/page/renew", {}, session) };
}

test("a person's rights are looked at again every ten minutes, and the session goes on with another token", async () => {
  const { issuer, read, logIn, renew, pass } = await start({ refreshes: true });
  const first = await sessionOf(await logIn());
  pass(9);
  expect((await read(first)).status).toBe(404);
  // Before the next check is due, the issuer is not asked.
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
  // A session ends twelve hours after the login, even if it was renewed.
  expect((await renew(second)).status).toBe(401);
});

test("an approver of all projects is let in where the server has only the event API", async () => {
  // The access file has projects with keys of the management API, which this server cannot use.
  const { read, post, of } = await start({ env: { TARGETING_API_URL: "", EVENT_API_URL: "http://127.0.0.1:9" } });
  const session = await sessionOf(await post("/login", { token: CHIEF }));
  expect((await read(session)).status).toBe(404);
  expect(hasApprover(of, { name: "token:agent", caller: "token:agent", project: of.all.idOf(undefined) })).toBe(true);
});

test("while the access file cannot be read, this is said of no token, login or session", async () => {
  const { read, post, logIn, breakAccess } = await start();
  const session = await sessionOf(await post("/login", { token: CHIEF }));
  breakAccess(true);
  for (const refused of [await post("/login", { token: CHIEF }), await logIn(), await read(session)]) {
    expect(refused.status).toBe(503);
    expect(await refused.text()).toContain("The access file of this server cannot be read");
  }
  breakAccess(false);
  expect((await read(session)).status).toBe(404);
});

test("an approver of a project whose API has no address here is told so", async () => {
  const { read, logIn } = await start({ env: { TARGETING_API_URL: "", EVENT_API_URL: "http://127.0.0.1:9" } });
  const refused = await logIn();
  expect(refused.status).toBe(403);
  expect(await refused.text()).toContain("This server has no address of the API");
  expect((await read("")).status).toBe(401);
});

test("a check that lies ahead because the clock was set back is due at once", async () => {
  const { issuer, read, logIn, renew, pass } = await start({ refreshes: true });
  const first = await sessionOf(await logIn());
  pass(10);
  const session = await sessionOf(await renew(first));
  expect((await read(session)).status).toBe(404);
  pass(-5);
  const due = await read(session);
  expect(due.status).toBe(401);
  expect(await due.json()).toMatchObject({ renews: true });
  expect((await read(await sessionOf(await renew(session)))).status).toBe(404);
  expect(issuer.count("/token")).toBe(3);
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
  expect(new TextDecoder().decode(value)).toContain('"project":"other"');
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

test("what a login begins with is not a session, and the other way round", async () => {
  const { read, post, logIn } = await start();
  const begun = z.object({ login: z.string() }).parse(await (await post("/login/issuer")).json());
  expect((await read(begun.login)).status).toBe(401);
  const login = await sessionOf(await logIn());
  expect((await post("/callback", { query: "code=a&state=b", login })).status).toBe(403);
});

test("a session is over where the issuer, the client or the claim of the settings is another one", async () => {
  const { issuer, logIn } = await start({ claims: { project: "shop", group: "shop" } });
  const other = await startLoginIssuer({ clientId: "page-client" });
  const session = await sessionOf(await logIn());
  const statusWith = async (env: Readonly<Record<string, string>>) =>
    (await (await start({ issuer, env })).read(session)).status;
  expect(await statusWith({})).toBe(404);
  for (const changed of [
    { TARGETING_MCP_OAUTH_ISSUER: other.url },
    { TARGETING_MCP_OAUTH_ISSUER: "" },
    { TARGETING_MCP_OAUTH_CLIENT_ID: "another-client" },
    { TARGETING_MCP_OAUTH_CLIENT_ID: "" },
    { TARGETING_MCP_OAUTH_PROJECT_CLAIM: "group" },
    { TARGETING_MCP_OAUTH_PROJECT_CLAIM: "" },
  ]) {
    expect(await statusWith(changed), JSON.stringify(changed)).toBe(401);
  }
});

test("who logs in without a project claim approves for the configured project, and not once there is a claim", async () => {
  const { issuer, logIn, read } = await start({ env: { TARGETING_MCP_OAUTH_PROJECT_CLAIM: "" } });
  const session = await sessionOf(await logIn());
  expect((await read(session)).status).toBe(404);
  expect((await (await start({ issuer })).read(session)).status).toBe(401);
});

test("who sends many that come back, while the issuer is slow, keeps out nobody at another address", async () => {
  const { issuer, logIn, post } = await start();
  const release = issuer.holds();
  const many = Array.from({ length: 10 }, () => logIn());
  const refused = await Promise.any(
    many.map(async (one) => ((await one).status === 503 ? "refused" : Promise.reject())),
  );
  expect(refused).toBe("refused");
  const other = logIn("203.0.113.9");
  await expect.poll(() => issuer.count("/token")).toBe(5);
  release();
  expect((await other).status).toBe(200);
  const statuses = (await Promise.all(many)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(4);
  expect((await post("/callback", { query: "code=junk", login: "junk" })).status).toBe(403);
});
