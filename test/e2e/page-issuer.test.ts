import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startLoginIssuer } from "../support/login-issuer.ts";
import { clientOf, startApproved } from "../support/page-http.ts";
import { personWith } from "../support/page-person.ts";
import { checkedReport } from "../support/writing.ts";

const CLIENT = "page-client";
const SECRET = "the-secret-of-the-client";

/** A server at which people log in through an issuer, and how a browser walks through that. */
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
  const go = (url: string, cookie = "") => fetch(url, { redirect: "manual", headers: { cookie } });
  /** To the issuer and back: the address of the callback, and the cookie that belongs to it. */
  const walk = async () => {
    const begun = await go(`${server.origin}/login/issuer`);
    expect(begun.status).toBe(303);
    const set = begun.headers.get("set-cookie") ?? "";
    expect(set).toMatch(/^targeting-login-\d+=[\w.-]+; Path=\/callback; HttpOnly; SameSite=Lax; Max-Age=600$/);
    const there = await go(begun.headers.get("location") ?? "");
    return { back: there.headers.get("location") ?? "", cookie: set.split(";")[0] ?? "" };
  };
  return { server, issuer, go, walk };
}

test.for([undefined, SECRET])(
  "a person logs in through the issuer and approves for the project of their claim, secret %s",
  async (secret) => {
    const { server, issuer, go, walk } = await start({ claims: { project: "shop" }, ...(secret && { secret }) });
    const client = await clientOf(server.url, "agent");
    const made = checkedReport(await client.callTool("create_targetings", { items: [{ name: "Sports fans" }] }));
    const answer = client.callTool("delete_targeting", { ids: [made.results[0]?._id ?? ""] });
    const { back, cookie } = await walk();
    expect(Object.fromEntries(issuer.asked[0] ?? [])).toMatchObject({
      response_type: "code",
      scope: "openid targeting:approve",
      redirect_uri: `${server.origin}/callback`,
      code_challenge_method: "S256",
      client_id: CLIENT,
    });
    const came = await go(back, cookie);
    expect(came.status, server.stderr()).toBe(200);
    expect(await came.text()).toContain("/page/page.js");
    const session = came.headers.getSetCookie().find((one) => one.startsWith("targeting-page-"));
    expect(session).toContain("HttpOnly; SameSite=Strict");
    const ann = await personWith(server.origin, new Response(null, { headers: { "set-cookie": session ?? "" } }));
    const { runId } = await ann.waiting();
    expect((await ann.press(runId, "approve")).status).toBe(200);
    expect(checkedReport(await answer)).toMatchObject({
      status: "succeeded",
      approval: { decision: "approved", channel: "page", by: "ann" },
    });
    const audit = await readFile(join(server.stateDir, "audit.ndjson"), "utf8");
    const line = audit.split("\n").find((one) => one.includes('"decision"')) ?? "{}";
    expect(JSON.parse(line)).toMatchObject({ where: "page", who: `${issuer.url} ann`, caller: "token:agent", runId });
    // The code, the state and the cookie were good once.
    expect((await go(back, cookie)).status).toBe(502);
    for (const hidden of ["an-access-token-of-the-login", "of-the-login", SECRET, session?.split(/[=;]/)[1] ?? "?"]) {
      expect(server.stderr()).not.toContain(hidden);
    }
  },
);

test("a login that another browser began, a wrong state, a refusal and a lacking scope or project let nobody in", async () => {
  const { go, walk } = await start({ claims: { project: "shop" } });
  const { back, cookie } = await walk();
  expect((await go(back)).status).toBe(403);
  expect((await go(back.replace(/state=[^&]*/, "state=guessed"), cookie)).status).not.toBe(200);
  for (const more of [
    { claims: { project: "shop" }, scope: "openid" },
    { claims: { project: "unknown" } },
    { claims: {} },
    { claims: { project: "shop", aud: "another-client" } },
    { claims: { project: "shop" }, error: "access_denied" },
  ]) {
    const other = await start(more);
    const on = await other.walk();
    const came = await other.go(on.back, on.cookie);
    expect(came.status, JSON.stringify(more)).toBeGreaterThanOrEqual(400);
    expect(came.headers.getSetCookie().join()).not.toContain("targeting-page-");
    expect(await came.text()).toContain('name="login"');
  }
});
