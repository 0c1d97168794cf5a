// A run is executed only if the settings and the caller's rights allow it now. It does not matter which process or
// person starts the run.
import { describe, expect, test } from "vitest";
import { CLIENTS, callsOf } from "../support/clients.ts";
import { startHttp } from "../support/http-server.ts";
import { startIssuer } from "../support/issuer.ts";
import { clientOf, loggedIn, startApproved, TOKENS, writeAccess } from "../support/page-http.ts";
import { groupItems, startService } from "../support/service.ts";
import { checkedReport } from "../support/writing.ts";

/** Starts a server and its client. Tests start several servers with the same service and state folder. */
async function startServer(env: Readonly<Record<string, string>>) {
  const server = await startHttp({ TARGETING_MCP_CONFIRM: "off", ...env });
  const client = await CLIENTS["2026 client, modern"]({ url: server.url });
  return { ...server, toolNames: client.toolNames, call: callsOf(client) };
}

/**
 * Starts a run of several requests, and kills its server after the first. Returns how to start another server in its
 * place.
 */
async function interrupted() {
  const service = await startService();
  const first = await startServer(service.live);
  const made = await first.call("create_targetings", { items: [{ name: "Spring" }, { name: "Other" }] });
  const [targetingId = "", otherId = ""] = made.results.map(({ _id }) => _id);
  const items = groupItems(450);
  const release = await service.hold("addOptions", { nth: 2 });
  const args = { targetingId, items };
  const lost = first.call("bulk_add_options", args).catch(() => undefined);
  await expect.poll(() => service.count("addOptions")).toBe(2);
  const [{ runId, status } = { runId: "", status: "" }] = (await first.call("get_run", {})).runs;
  expect(status).toBe("running");
  first.child.kill("SIGKILL");
  await first.exited;
  await lost;
  await release();
  const another = (env: Readonly<Record<string, string>>) =>
    startServer({ ...service.live, TARGETING_MCP_STATE_DIR: first.stateDir, ...env });
  return { service, runId, args, otherId, another };
}

describe("a run that was cut short is not executed", () => {
  test.for([
    ["by a server that only reads", "READ_ONLY", () => ({ TARGETING_MCP_READ_ONLY: "on" })],
    ["without its toolset", "TOOLSET", () => ({ TARGETING_MCP_TOOLSETS: "events" })],
    [
      "in a targeting that may not change",
      "TARGETINGS",
      (otherId: string) => ({ TARGETING_MCP_ALLOWED_TARGETINGS: otherId }),
    ],
    ["in another project", "PROJECT", () => ({ TARGETING_MCP_PROJECT: "another" })],
  ] as const)("%s, and stays cancellable", async ([, code, envOf]) => {
    const { service, runId, otherId, another } = await interrupted();
    const sent = await service.count("addOptions");
    const server = await another(envOf(otherId));
    const seen = await server.call("get_run", { runId });
    expect(seen).toMatchObject({ status: "interrupted", blocked: { code } });
    expect(seen.text).toContain(seen.blocked?.message);
    expect(seen.nextSteps.join(" ")).not.toContain("resume_run");
    if ((await server.toolNames()).includes("resume_run")) {
      const resumed = await server.call("resume_run", { runId });
      expect(resumed.isError).toBe(true);
      expect(resumed.text).toContain(seen.blocked?.message);
    } else expect(code).toBe("READ_ONLY");
    expect(await service.count("addOptions")).toBe(sent);
    expect(await server.call("cancel_run", { runId })).toMatchObject({ status: "cancelled" });
    expect(await service.count("addOptions")).toBe(sent);
  });

  test("when the same call is made again where its targeting may not change", async () => {
    const { service, runId, args, otherId, another } = await interrupted();
    const sent = await service.count("addOptions");
    const server = await another({ TARGETING_MCP_ALLOWED_TARGETINGS: otherId });
    expect((await server.call("bulk_add_options", args)).isError).toBe(true);
    expect(await service.count("addOptions")).toBe(sent);
    const unguarded = await another({});
    await unguarded.call("resume_run", { runId });
    await expect.poll(() => unguarded.call("get_run", { runId })).toMatchObject({ status: "succeeded" });
  });
});

test.for([
  ["the server has become strict", { TARGETING_MCP_CONFIRM: "strict" }, "TARGETING_MCP_CONFIRM is strict"],
  ["it deletes more than is allowed by now", { TARGETING_MCP_MAX_DELETES: "1" }, "TARGETING_MCP_MAX_DELETES"],
] as const)("a confirmation starts nothing where %s", async ([, by, sentence]) => {
  const service = await startService();
  const asking = await startServer({ ...service.live, TARGETING_MCP_CONFIRM: "ask" });
  const made = await asking.call("create_targetings", { items: [{ name: "One" }, { name: "Two" }] });
  const { confirmation, runId } = await asking.call("delete_targeting", { ids: made.results.map(({ _id }) => _id) });
  const env = { TARGETING_MCP_STATE_DIR: asking.stateDir, TARGETING_MCP_CONFIRM: "ask", ...by };
  const now = await startServer({ ...service.live, ...env });
  const refused = await now.call("delete_targeting", { confirmation: confirmation.token });
  expect(refused.isError).toBe(true);
  expect(refused.text).toContain(sentence);
  if ("TARGETING_MCP_MAX_DELETES" in by) {
    expect(await now.call("get_run", { runId })).toMatchObject({ blocked: { code: "LIMITS" } });
  }
  expect(await service.count("deleteTargetings")).toBe(0);
});

describe("a deletion that waits on the page is refused to its approver", () => {
  test.for([
    ["was removed", []],
    ["may only read", [{ name: "agent", readOnly: true }]],
    ["is for another project", [{ name: "agent", project: "shop" }]],
  ] as const)("when the token that asked for it %s by then", async ([, entries]) => {
    const boss = { name: "boss", approves: true } as const;
    const more = { projects: { shop: { targetingApiKey: "key-of-the-shop" } } };
    const server = await startApproved([{ name: "agent" }, boss], { more, env: { TARGETING_MCP_WAIT_MS: "60000" } });
    const agent = await clientOf(server.url, "agent");
    const targetingId = await server.sandbox.targeting("Sports fans");
    const asked = agent.callTool("delete_targeting", { ids: [targetingId] });
    const { runId } = await (await loggedIn(server.origin, "boss")).waiting();
    writeAccess(server.accessFile, [...entries, boss], more);
    const person = await loggedIn(server.origin, "boss");
    const pressed = await person.press(runId, "approve");
    expect(pressed.status).toBe(403);
    expect(JSON.stringify(await pressed.json())).toMatch(/caller|token/);
    const state = JSON.stringify(await (await fetch(`${server.sandbox.url}/_sandbox/state`)).json());
    expect(state).toContain("Sports fans");
    expect((await person.press(runId, "decline")).status).toBe(200);
    expect(checkedReport(await asked)).toMatchObject({ runId, status: "cancelled" });
  });

  test.for([
    ["may only read", { scope: "targeting:read", project: "shop" }],
    ["has no scope", { project: "shop" }],
    ["is for another project", { scope: "targeting:write", project: "other" }],
  ] as const)("when the last token of the issuer that its caller brought %s", async ([, now]) => {
    const issuer = await startIssuer();
    const projects = { shop: { targetingApiKey: "sandbox-key" }, other: { targetingApiKey: "key-of-the-other" } };
    const boss = { name: "boss", project: "*", approves: true } as const;
    const server = await startApproved([boss], {
      more: { projects },
      env: {
        TARGETING_MCP_OAUTH_ISSUER: issuer.url,
        TARGETING_MCP_OAUTH_AUDIENCE: "the-server",
        TARGETING_MCP_OAUTH_PROJECT_CLAIM: "project",
        TARGETING_MCP_WAIT_MS: "60000",
      },
    });
    const agentWith = async (claims: Readonly<Record<string, string>>) => {
      const token = await issuer.token({ aud: "the-server", ...claims });
      return CLIENTS["2026 client, modern"]({
        url: server.url,
        headers: { authorization: `Bearer ${token}` },
      });
    };
    const writing = await agentWith({ scope: "targeting:write", project: "shop" });
    const targetingId = await server.sandbox.targeting("Sports fans");
    const asked = writing.callTool("delete_targeting", { ids: [targetingId] });
    const person = await loggedIn(server.origin, "boss");
    const { runId } = await person.waiting();
    // The server learns the caller's present rights from their next call, even if it refuses the call.
    await agentWith(now).then(
      (client) => client.callTool("get_run", { runId }),
      () => undefined,
    );
    const pressed = await person.press(runId, "approve");
    expect(pressed.status).toBe(403);
    expect(JSON.stringify(await pressed.json())).toMatch(/caller/);
    await agentWith({ scope: "targeting:write", project: "shop" }).then((client) =>
      client.callTool("get_run", { runId }),
    );
    expect((await person.press(runId, "approve")).status).toBe(200);
    expect(checkedReport(await asked)).toMatchObject({ runId, status: "succeeded" });
  });

  test("and a token that was removed lets nobody call", async () => {
    const boss = { name: "boss", approves: true } as const;
    const server = await startApproved([{ name: "agent" }, { name: "other" }, boss]);
    const list = (token: string) =>
      fetch(server.url, {
        method: "POST",
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} }),
      });
    expect((await list(TOKENS.agent)).status).not.toBe(401);
    writeAccess(server.accessFile, [{ name: "other" }, boss]);
    expect((await list(TOKENS.agent)).status).toBe(401);
    expect((await list(TOKENS.other)).status).not.toBe(401);
  });
});
