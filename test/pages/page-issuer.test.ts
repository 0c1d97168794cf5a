import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { startLoginIssuer } from "../support/login-issuer.ts";
import { clientOf, startApproved } from "../support/page-http.ts";
import { personWith } from "../support/page-person.ts";
import { checkedReport } from "../support/writing.ts";

const CLIENT = "page-client";
const SECRET = "the-secret-of-the-client";

const begun = z.object({ location: z.string(), login: z.string() });

/** Sends requests as the page's script does, and follows the redirects of the issuer as a browser does. */
function browserAt(origin: string) {
  const post = (path: string, body: unknown = {}, headers: Readonly<Record<string, string>> = {}) =>
    fetch(origin + path, {
      method: "POST",
      headers: { "content-type": "application/json", origin, ...headers },
      body: JSON.stringify(body),
    });
  /** Logs in at the issuer. Returns the query of the callback, and the `login` with which the page began. */
  const walk = async () => {
    const answer = await post("/login/issuer");
    expect(answer.status).toBe(200);
    const { location, login } = begun.parse(await answer.json());
    const there = await fetch(location, { redirect: "manual" });
    return { query: new URL(there.headers.get("location") ?? "").search.slice(1), login };
  };
  return { post, walk, comeBack: async () => post("/callback", await walk()) };
}

/** Starts a server at which people log in through an issuer. */
async function start(more: Partial<Parameters<typeof startLoginIssuer>[0]> = {}, env: Record<string, string> = {}) {
  const issuer = await startLoginIssuer({ clientId: CLIENT, ...more });
  const server = await startApproved([{ name: "agent", project: "shop" }], {
    more: { projects: { shop: { targetingApiKey: "sandbox-key" } } },
    env: {
      TARGETING_MCP_OAUTH_ISSUER: issuer.url,
      TARGETING_MCP_OAUTH_CLIENT_ID: CLIENT,
      TARGETING_MCP_OAUTH_PROJECT_CLAIM: "project",
      ...(more.secret !== undefined && { TARGETING_MCP_OAUTH_CLIENT_SECRET: more.secret }),
      ...env,
    },
  });
  return { server, issuer, ...browserAt(server.origin) };
}

test.for([undefined, SECRET])(
  "a person logs in through the issuer and approves for the project of their claim, secret %s",
  async (secret) => {
    const { server, issuer, post, walk } = await start({ claims: { project: "shop" }, ...(secret && { secret }) });
    const client = await clientOf(server.url, "agent");
    const made = checkedReport(await client.callTool("create_targetings", { items: [{ name: "Sports fans" }] }));
    const answer = client.callTool("delete_targeting", { ids: [made.results[0]?._id ?? ""] });
    const back = await walk();
    expect(Object.fromEntries(issuer.asked[0] ?? [])).toMatchObject({
      response_type: "code",
      scope: "openid targeting:approve",
      redirect_uri: `${server.origin}/callback`,
      code_challenge_method: "S256",
      client_id: CLIENT,
    });
    // The issuer redirects to a page without any data, which sends no request. The page's script sends the query.
    const asked = issuer.received.length;
    const page = await fetch(`${server.origin}/callback?${back.query}`);
    expect(page.status).toBe(200);
    expect(await page.text()).toContain("/page/page.js");
    expect(issuer.received).toHaveLength(asked);
    const came = await post("/callback", back);
    expect(came.status, server.stderr()).toBe(200);
    const ann = await personWith(server.origin, came);
    const { runId } = await ann.waiting();
    expect((await ann.press(runId, "approve")).status).toBe(200);
    expect(checkedReport(await answer)).toMatchObject({
      status: "succeeded",
      approval: { decision: "approved", channel: "page", by: "ann" },
    });
    const audit = await readFile(join(server.stateDir, "audit.ndjson"), "utf8");
    const line = audit.split("\n").find((one) => one.includes('"decision"')) ?? "{}";
    expect(JSON.parse(line)).toMatchObject({ where: "page", who: `${issuer.url} ann`, caller: "token:agent", runId });
    // The `login` works only once.
    const again = issuer.received.length;
    expect((await post("/callback", back)).status).toBe(403);
    expect(issuer.received).toHaveLength(again);
    for (const hidden of ["an-access-token-of-the-login", "of-the-login", SECRET, ann.session, back.login]) {
      expect(server.stderr()).not.toContain(hidden);
    }
  },
);

test("a login that another tab began, a wrong state, a refusal and a lacking scope or project let nobody in", async () => {
  const { issuer, post, walk } = await start({ claims: { project: "shop" } });
  // The logins that fail come from different addresses, because one address may only have a few a minute.
  let peers = 0;
  const comeBack = async () => {
    peers += 1;
    return post("/callback", await walk(), { "x-forwarded-for": `203.0.113.${peers}` });
  };
  const { query, login } = await walk();
  expect((await post("/callback", { query, login: "" })).status).toBe(403);
  expect((await post("/callback", { query: query.replace(/state=[^&]*/, "state=guessed"), login })).status).toBe(403);
  expect((await post("/callback", { query, login: (await walk()).login })).status).toBe(403);
  expect((await post("/callback", { query: query.replace(/code=[^&]*/, "error=access_denied"), login })).status).toBe(
    403,
  );
  for (const is of [
    { claims: { project: "shop" }, scope: "openid" },
    { claims: { project: "unknown" } },
    { claims: { project: "" } },
    { claims: { project: "*" } },
    { claims: { project: "\n" } },
    { claims: { project: null } },
    { claims: { project: ["shop"] } },
    { claims: {} },
    { claims: { project: "shop", aud: "another-client" } },
    { claims: { project: "shop", nonce: "another" } },
  ]) {
    issuer.becomes(is);
    const came = await comeBack();
    expect(came.status, JSON.stringify(is)).toBeGreaterThanOrEqual(400);
    expect(came.status, JSON.stringify(is)).not.toBe(503);
    expect(await came.json(), JSON.stringify(is)).toEqual({ message: expect.any(String) });
  }
  issuer.becomes({ claims: { project: "shop" } });
  expect((await comeBack()).status).toBe(200);
});

test("what has no valid login costs the issuer nothing, and its metadata is read once", async () => {
  const { server, issuer, post, walk } = await start({ claims: { project: "shop" } });
  const { query } = await walk();
  const junk = [
    { query, login: "" },
    { query, login: "guessed" },
    { query, login: "A".repeat(300) },
    { query: "", login: "" },
    { query: "code=junk&state=junk", login: (await walk()).login },
    { query: "", login: (await walk()).login },
  ];
  const before = issuer.received.length;
  for (const path of ["/login/issuer", "/callback", "/callback?code=junk&state=junk"]) {
    expect((await fetch(server.origin + path, { redirect: "manual" })).status).toBe(200);
  }
  for (const one of junk) expect((await post("/callback", one)).status, JSON.stringify(one)).toBe(403);
  for (const origin of ["http://127.0.0.1:1", server.origin.replace("http:", "https:"), `${server.origin}/`, "null"]) {
    expect((await post("/callback", { query }, { origin })).status, origin).toBe(403);
    expect((await post("/login", { token: "junk" }, { origin })).status, origin).toBe(403);
    expect((await post("/login/issuer", {}, { origin })).status, origin).toBe(403);
  }
  expect((await post("/callback", { query })).status).toBe(400);
  for (let times = 0; times < 50; times += 1) expect((await post("/login/issuer")).status).toBe(200);
  expect(issuer.received).toHaveLength(before);
  expect(issuer.count("/.well-known/openid-configuration")).toBe(1);
});

test("of many who come back with a code that nobody gave, few reach the issuer, and others are let in", async () => {
  const { issuer, post, walk } = await start({ claims: { project: "shop" }, secret: SECRET });
  const logins = Array.from({ length: 100 }, async () => {
    const { location, login } = begun.parse(await (await post("/login/issuer")).json());
    return { query: `code=junk&state=${new URL(location).searchParams.get("state")}`, login };
  });
  const came = await Promise.all((await Promise.all(logins)).map((one) => post("/callback", one)));
  const refused = came.filter(({ status }) => status === 503);
  expect(refused.length).toBeGreaterThanOrEqual(94);
  expect(refused[0]?.headers.get("retry-after")).toBe("60");
  expect(issuer.count("/token")).toBe(came.length - refused.length);
  // All these came from one address. A person at another address, as the proxy reports it, can still log in.
  expect((await post("/callback", await walk(), { "x-forwarded-for": "junk, 203.0.113.9" })).status).toBe(200);
});

test("a person who logs out is out at once, and what the issuer gave is taken back", async () => {
  const { server, issuer, post, comeBack } = await start({ claims: { project: "shop" }, refreshes: true });
  const ann = await personWith(server.origin, await comeBack());
  expect((await post("/page/logout", {}, ann.headers)).status).toBe(200);
  await expect.poll(ann.isOver).toBe(true);
  expect((await post("/page/renew", {}, ann.headers)).status).toBe(401);
  expect((await ann.press("01ARZ3NDEKTSV4RRFFQ69G5FAV", "approve")).status).toBe(401);
  expect(issuer.count("/revoke")).toBe(1);
});
