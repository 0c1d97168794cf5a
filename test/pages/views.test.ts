import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { Answer } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { browserOfTest } from "../support/page-person.ts";
import { startCommand } from "../support/server-process.ts";
import { startService } from "../support/service.ts";
import {
  decisionMeta,
  type Given,
  madeTargeting,
  SHOWS_VIEWS,
  TOKENS,
  VIEW_HOSTS,
  VIEW_URI,
  type ViewHost,
  type ViewResult,
} from "../support/view-hosts.ts";

/** The tools whose runs a view shows, repeated here by hand. */
const SHOWN = [
  ...["delete_targeting", "update_contexts", "delete_options", "plan_targeting", "apply_plan", "undo_run", "get_run"],
];
type HostName = keyof typeof VIEW_HOSTS;
const HOSTS = Object.keys(VIEW_HOSTS).filter((name): name is HostName => Object.hasOwn(VIEW_HOSTS, name));

/** Two hosts that cover both transports and both eras. Enough for tests in which all hosts behave alike. */
const EITHER: readonly HostName[] = ["stdio, 2026 era", "HTTP sessions, 2025 era"];
/** The capabilities of clients that show no views. */
const WITHOUT = { nothing: {}, "other types": { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html"] } } };

let answering: Answer | undefined;
const kept = perFile((name: HostName, asks: boolean, env: Given["env"] = {}) =>
  VIEW_HOSTS[name]({
    env: { TARGETING_MCP_LOG_LEVEL: "debug", ...env },
    ...(asks && { answer: (message: string) => answering?.(message) ?? { action: "cancel" } }),
  }),
);

/** Returns the host that tests with the same settings share. Each test sets its own answers. */
async function shared(name: HostName, { env, answer }: Pick<Given, "env" | "answer"> = {}): Promise<ViewHost> {
  answering = answer;
  // Over HTTP, one server can have clients with and without answers.
  if (answer === undefined || name.startsWith("stdio")) return kept(name, answer !== undefined, env);
  const host = await kept(name, false, env);
  return { ...host, ...(await host.other({ answer })) };
}

let made = 0;

/** Creates a targeting with a unique name and one option. */
function newTargeting(host: Pick<ViewHost, "call">): Promise<string> {
  made += 1;
  return madeTargeting(host, `Sports fans ${made}`);
}

function decisionOf(answer: ViewResult) {
  return decisionMeta.parse(answer._meta?.["targeting-mcp/decision"]);
}

/** Creates a targeting, and asks to delete it. Returns the answer, which shows the targeting in a view. */
async function asked(host: ViewHost) {
  const targetingId = await newTargeting(host);
  const answer = await host.call("delete_targeting", { ids: [targetingId] });
  const isThere = async () => (await host.call("get_targeting", { targetingId })).isError !== true;
  return { targetingId, answer, ...decisionOf(answer), isThere };
}

async function rested(host: ViewHost, runId: string) {
  await expect
    .poll(async () => (await host.call("get_run", { runId, waitMs: 1000 })).structuredContent?.status)
    .not.toBe("running");
  return (await host.call("get_run", { runId })).structuredContent;
}

describe.each(HOSTS)("a host that shows views over %s", (name) => {
  const start = (given?: Parameters<typeof shared>[1]) => shared(name, given);

  test("is listed the view and the tool that it calls, and reads the view, which is small and loads nothing", async () => {
    const host = await start();
    const tools = await host.tools();
    expect(tools.filter(({ _meta }) => _meta !== undefined).map(({ name }) => name)).toEqual([...SHOWN, "decide_run"]);
    for (const { name, _meta } of tools.filter(({ name }) => SHOWN.includes(name))) {
      expect(_meta, name).toEqual({ ui: { resourceUri: VIEW_URI }, "ui/resourceUri": VIEW_URI });
    }
    expect(tools.find(({ name }) => name === "decide_run")?._meta).toEqual({ ui: { visibility: ["app"] } });
    const listed = (await host.resources()).filter(({ uri }) => uri.startsWith("ui:"));
    expect(listed).toMatchObject([{ uri: VIEW_URI, mimeType: "text/html;profile=mcp-app" }]);
    const [content] = (await host.read(VIEW_URI)).contents;
    expect(content).toMatchObject({ uri: VIEW_URI, mimeType: "text/html;profile=mcp-app" });
    const html = content !== undefined && "text" in content ? content.text : "";
    expect(html).toMatch(/^<!doctype html>/);
    expect(html.match(/<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="(?!data:,)[^"]*"/g)).toBeNull();
    expect(gzipSync(html, { level: 9 }).length).toBeLessThanOrEqual(30 * 1024);
  });

  test("a person approves there: at once, once, and it is told who agreed where", async () => {
    const browser = browserOfTest();
    const host = await start({ env: browser.env });
    const { answer, runId, secret, isThere } = await asked(host);
    expect(answer.structuredContent).toMatchObject({ runId, status: "needs_confirmation" });
    expect(answer.structuredContent).not.toHaveProperty("confirmation.token");
    expect(answer.structuredContent).not.toHaveProperty("asked");
    expect(answer._meta?.["targeting-mcp/run"]).toMatchObject({
      run: {
        runId,
        status: "needs_confirmation",
        actions: ["approve", "decline"],
        waiting: { expiresAt: expect.any(Number) },
      },
      downloads: [],
    });
    expect(await isThere()).toBe(true);
    const decided = await host.call("decide_run", { runId, decision: "approve", secret });
    expect(decided.isError).not.toBe(true);
    expect(await rested(host, runId)).toMatchObject({
      status: "succeeded",
      approval: { decision: "approved", channel: "view" },
    });
    expect(await isThere()).toBe(false);
    expect(host.audit()).toContainEqual(
      expect.objectContaining({ runId, decision: "approved", where: "view", who: expect.any(String) }),
    );
    for (const decision of ["approve", "decline"]) {
      expect((await host.call("decide_run", { runId, decision, secret })).isError).toBe(true);
    }
    expect(browser.opened()).toEqual([]);
  });

  test("a person declines there: nothing is sent, and it is told who said no where", async () => {
    const host = await start();
    const { runId, secret, isThere } = await asked(host);
    const declined = await host.call("decide_run", { runId, decision: "decline", secret });
    expect(declined.structuredContent).toMatchObject({
      runId,
      status: "cancelled",
      approval: { decision: "declined", channel: "view" },
    });
    expect((await host.call("decide_run", { runId, decision: "approve", secret })).isError).toBe(true);
    expect(await isThere()).toBe(true);
    expect(host.audit()).toContainEqual(expect.objectContaining({ runId, decision: "declined", where: "view" }));
  });

  test("what has changed since cannot be approved, and says so", async () => {
    const host = await start();
    const { targetingId, runId, secret, isThere } = await asked(host);
    await host.call("bulk_add_options", { targetingId, items: [{ name: "Rowing", contexts: ["o"] }] });
    for (let times = 0; times < 2; times += 1) {
      const stale = await host.call("decide_run", { runId, decision: "approve", secret });
      expect(stale.isError).toBe(true);
      expect(JSON.stringify(stale.content)).toContain("changed since it was planned");
      expect(stale._meta?.["targeting-mcp/run"]).toMatchObject({
        run: { waiting: { stale: [expect.any(String), expect.stringContaining("Rowing")] } },
      });
    }
    expect(await isThere()).toBe(true);
  });

  test("guessed secrets, and those of other runs, decide nothing", async () => {
    const host = await start();
    const first = await asked(host);
    const second = decisionOf(await host.call("delete_targeting", { ids: [await newTargeting(host)] }));
    const guesses = ["", "x".repeat(43), `${first.secret}x`, first.secret.slice(0, -1), second.secret, first.runId];
    for (const secret of guesses) {
      for (const decision of ["approve", "decline"]) {
        const refused = await host.call("decide_run", { runId: first.runId, decision, secret });
        expect(refused.isError, secret).toBe(true);
        expect(refused.structuredContent).not.toHaveProperty("status");
      }
    }
    expect(await first.isThere()).toBe(true);
    const { structuredContent } = await host.call("get_run", { runId: first.runId });
    expect(structuredContent?.status).toBe("needs_confirmation");
  });

  test("the secret is in the _meta of one answer, and nowhere else", async () => {
    const host = await start();
    const { runId, secret } = await asked(host);
    await host.call("get_run", { runId });
    await host.call("get_run", {});
    for (const { uri } of await host.resources()) await host.read(uri);
    for (const part of ["results", "removed", "plan"])
      await host.read(`targeting://runs/${runId}/${part}`).catch(() => {});
    await host.call("decide_run", { runId, decision: "approve", secret });
    await rested(host, runId);
    const holding = host.told.filter((message) => JSON.stringify(message).includes(secret));
    expect(holding).toHaveLength(1);
    const [answer] = holding;
    const { _meta, ...rest } =
      (answer !== null && typeof answer === "object" && "result" in answer && Object(answer.result)) || {};
    expect(JSON.stringify(rest)).not.toContain(secret);
    expect(_meta).toMatchObject({ "targeting-mcp/decision": { runId, secret } });
    expect(host.written()).not.toContain(secret);
  });

  test("a plan that deletes is decided on there, too", async () => {
    const host = await start();
    const targetingId = await newTargeting(host);
    const desired = { version: 1, targeting: { _id: targetingId }, options: [{ name: "Running", contexts: [] }] };
    const planned = await host.call("plan_targeting", { desired });
    expect(planned._meta).not.toHaveProperty(["targeting-mcp/decision"]);
    expect(planned._meta?.["targeting-mcp/run"]).toMatchObject({ run: { status: "planned" } });
    const { runId, secret } = decisionOf(
      await host.call("apply_plan", { runId: planned.structuredContent?.runId ?? "" }),
    );
    await host.call("decide_run", { runId, decision: "approve", secret });
    expect(await rested(host, runId)).toMatchObject({
      status: "succeeded",
      approval: { decision: "approved", channel: "view" },
    });
  });

  test("a question comes before it; one that is closed without a decision is put there", async () => {
    const told: string[] = [];
    const yes = await start({
      answer(message) {
        told.push(message);
        return { action: "accept", content: { confirm: true } };
      },
    });
    const agreed = await yes.call("delete_targeting", { ids: [await newTargeting(yes)] });
    expect(agreed.structuredContent).toMatchObject({ approval: { decision: "approved", channel: "client" } });
    expect(told).toHaveLength(1);
    const closed = await start({ answer: () => ({ action: "cancel" }) });
    const { runId, secret } = await asked(closed);
    await closed.call("decide_run", { runId, decision: "approve", secret });
    expect(await rested(closed, runId)).toMatchObject({
      status: "succeeded",
      approval: { decision: "approved", channel: "view" },
    });
  });

  test.each(Object.entries(WITHOUT))("nothing of it is there for a client that declares %s", async (_, extensions) => {
    const host = await start();
    const shown = (await host.tools()).filter(({ name }) => name !== "decide_run");
    const plain = await host.other({ extensions });
    const bare = shown.map(({ _meta: _shown, ...tool }) => tool);
    expect(JSON.stringify(await plain.tools())).toBe(JSON.stringify(bare));
    expect((await plain.resources()).map(({ uri }) => uri)).not.toContain(VIEW_URI);
    const refusalOf = (work: Promise<unknown>) =>
      work.then(
        () => "done",
        (thrown: unknown) => String(thrown),
      );
    const call = (name: string) => refusalOf(plain.client.callTool({ name, arguments: {} }));
    expect(await call("decide_run")).toBe((await call("no_such_tool")).replace("no_such_tool", "decide_run"));
    const read = (uri: string) => refusalOf(plain.read(uri));
    expect(await read(VIEW_URI)).toBe((await read("ui://no/such")).replaceAll("ui://no/such", VIEW_URI));
    const targetingId = await newTargeting(plain);
    const answer = await plain.call("delete_targeting", { ids: [targetingId] });
    expect(answer.structuredContent).toHaveProperty("confirmation.token");
    expect(JSON.stringify(answer._meta ?? {})).not.toContain("targeting-mcp/");
  });
});

describe.each(EITHER)("over %s", (name) => {
  const start = (given?: Parameters<typeof shared>[1]) => shared(name, given);

  test("strict counts it only where the hosts' views are trusted", async () => {
    const strict = { TARGETING_MCP_CONFIRM: "strict", TARGETING_MCP_PAGE: "off" };
    const host = await start({ env: strict });
    const targetingId = await newTargeting(host);
    const refused = await host.call("delete_targeting", { ids: [targetingId] });
    expect(refused.isError).toBe(true);
    expect(JSON.stringify(refused._meta ?? {})).not.toContain("secret");
    const trusting = await start({ env: { ...strict, TARGETING_MCP_TRUST_VIEWS: "on" } });
    const { runId, secret } = await asked(trusting);
    await trusting.call("decide_run", { runId, decision: "approve", secret });
    expect(await rested(trusting, runId)).toMatchObject({
      status: "succeeded",
      approval: { decision: "approved", channel: "view" },
    });
  });

  test("read-only lists no deciding", async () => {
    const host = await start({ env: { TARGETING_MCP_READ_ONLY: "on" } });
    expect((await host.tools()).map(({ name }) => name)).not.toContain("decide_run");
    await expect(host.client.callTool({ name: "decide_run", arguments: {} })).rejects.toThrow();
  });
});

test.each(HOSTS.filter((name) => name.startsWith("HTTP")))(
  "another caller's secret decides nothing over %s",
  async (name) => {
    const alice = await shared(name);
    const { runId, secret, isThere } = await asked(alice);
    const bob = await alice.other({ token: TOKENS.bob });
    expect((await bob.call("decide_run", { runId, decision: "approve", secret })).isError).toBe(true);
    expect(await isThere()).toBe(true);
    await alice.call("decide_run", { runId, decision: "approve", secret });
    await expect.poll(isThere).toBe(false);
  },
);

test("each request of the 2026 era says by itself whether its client shows views", async () => {
  const command = startCommand([]);
  const ask = async (id: string, method: string, params: object, extensions: object) => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test-host", version: "1.0.0" },
      "io.modelcontextprotocol/clientCapabilities": { extensions },
    };
    command.send({ jsonrpc: "2.0", id, method, params: { ...params, _meta } });
    const answer = JSON.stringify(await command.answer(id));
    return ["decide_run", "<!doctype html>", "-32602"].filter((part) => answer.includes(part));
  };
  const read = { uri: VIEW_URI };
  const call = { name: "decide_run", arguments: {} };
  for (const round of [1, 2]) {
    expect(await ask(`${round} list with`, "tools/list", {}, SHOWS_VIEWS)).toEqual(["decide_run"]);
    expect(await ask(`${round} list without`, "tools/list", {}, {})).toEqual([]);
    expect(await ask(`${round} read with`, "resources/read", read, SHOWS_VIEWS)).toContain("<!doctype html>");
    expect(await ask(`${round} read without`, "resources/read", read, {})).toEqual(["-32602"]);
    expect(await ask(`${round} call with`, "tools/call", call, SHOWS_VIEWS)).toEqual(["decide_run"]);
    expect(await ask(`${round} call without`, "tools/call", call, {})).toEqual(["decide_run", "-32602"]);
  }
});

test("a live service gets nothing before the decision, and what was agreed to after it", async () => {
  const service = await startService();
  const host = await VIEW_HOSTS["stdio, 2026 era"]({ env: service.live });
  const { runId, secret } = await asked(host);
  expect(await service.count("deleteTargetings")).toBe(0);
  await host.call("decide_run", { runId, decision: "approve", secret });
  await rested(host, runId);
  expect(await service.count("deleteTargetings")).toBe(1);
});
