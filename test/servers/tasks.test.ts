import { once } from "node:events";
import { mkdtempSync, readFileSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { perFile } from "../support/ends.ts";
import { startHttp } from "../support/http-server.ts";
import { loggedIn, TOKENS, writeAccess } from "../support/page-http.ts";
import { cleanEnvironment } from "../support/server-process.ts";
import { optionItems, startService } from "../support/service.ts";
import {
  type Ask,
  DECLARES,
  type Declared,
  type Listen,
  listenOverHttp,
  overHttp,
  overStdio,
  type TaskReply,
  taskHost,
} from "../support/task-clients.ts";
import { decisionMeta, SHOWS_VIEWS } from "../support/view-hosts.ts";

const TASKS = "io.modelcontextprotocol/tasks";
const NOT_FOUND = { code: -32602, message: "Failed to retrieve task: Task not found" };
const NEEDS_TASKS = { code: -32021, data: { requiredCapabilities: { extensions: { [TASKS]: {} } } } };
const FORMS = { elicitation: { form: {} } };
const YES = { action: "accept", content: { confirm: true } };
/** Patterns of secrets with which a person logs in or decides. A model must not see them. */
const SECRETS = /requestState|inputRequests|confirm-|\/open\/|[?&#](?:code|token|session)=/;

/** Starts a service, and a server for it over stdio and one over HTTP. */
const shared = perFile(async () => {
  const service = await startService();
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "targeting-mcp-saved-")));
  const accessFile = join(folder, "access.json");
  writeAccess(accessFile, [{ name: "agent", folders: [folder] }, { name: "other" }, { name: "boss", approves: true }]);
  const settings = { ...service.live, TARGETING_MCP_CONFIRM: "ask" };
  const stdio = cleanEnvironment({ ...settings, TARGETING_MCP_ALLOWED_DIRS: folder, TARGETING_MCP_PAGE: "off" });
  const http = cleanEnvironment({ ...settings, TARGETING_MCP_ACCESS_FILE: accessFile });
  const [{ url }, { ask, listen }] = [await startHttp(http), overStdio(stdio)];
  const asks: Readonly<Record<"stdio" | "HTTP", Ask>> = { stdio: ask, HTTP: overHttp(url, TOKENS.agent) };
  const listens: Readonly<Record<"stdio" | "HTTP", Listen>> = {
    stdio: listen,
    HTTP: listenOverHttp(url, TOKENS.agent),
  };
  return { service, folder, stdio, http, url, asks, listens };
});

const viewed = z.looseObject({ _meta: z.looseObject({ "targeting-mcp/decision": decisionMeta }) });
let count = 0;
const named = (word: string) => {
  count += 1;
  return `${word} ${count}`;
};

/** Creates a targeting with some options directly in the service. */
async function withOptions(service: Awaited<ReturnType<typeof startService>>, options = 2) {
  const targetingId = await service.targeting(named("Sports fans"));
  const made = await service.control("POST", "/seed", {
    options: optionItems(options).map(({ name }) => ({ targeting: targetingId, name, contexts: ["r"] })),
  });
  return { targetingId, ids: z.object({ options: z.array(z.string()) }).parse(made).options };
}

describe.for(["stdio", "HTTP"] as const)("over %s", (kind) => {
  test("the tools that write, plan and save answer with a task, which ends with their result", async () => {
    const { service, asks, folder } = await shared();
    const host = taskHost(asks[kind]);
    const { targetingId } = await withOptions(service);
    const desired = { version: 1, targeting: { _id: targetingId }, options: [{ name: "Option 1", contexts: ["x"] }] };
    const event = { uid: "user-1", eventName: "app_open" };
    const added = await host.settled(
      (await host.call("bulk_add_options", { targetingId, items: [{ name: "New" }] })).taskId,
    );
    const runId = added.result?.structuredContent?.runId ?? "";
    const saveTo = join(folder, `${named("options")}.csv`);
    const calls = [
      ["create_targetings", { items: [{ name: named("Runners") }] }, "succeeded"],
      ["bulk_add_options", { targetingId, items: [{ name: "_" }] }, "failed"],
      ["update_contexts", { targetingId, items: [{ name: "Option 2", add: ["y"] }] }, "succeeded"],
      ["update_contexts", { targetingId, items: [{ name: "Option 2", add: ["z"] }], dryRun: true }, "planned"],
      ["plan_targeting", { targetingId, desired }, "planned"],
      ["undo_run", { runId }, "planned"],
      ["resume_run", { runId }, "succeeded"],
      ["update_options", { targetingId, items: [{ currentName: "New", name: "Newer" }] }, "succeeded"],
      ["track_event", event, "succeeded"],
      ["track_events", { items: [event, { ...event, uid: "user-2" }] }, "succeeded"],
      ["track_events", { items: [event, { ...event, uid: "user-3" }], dryRun: true }, "planned"],
      ["list_options", { targetingId, saveTo }, "succeeded"],
    ] as const;
    for (const [name, args, status] of calls) {
      const first = await host.call(name, args);
      expect([name, first.result, first.inputRequests]).toEqual([name, undefined, undefined]);
      const { result, ...task } = await host.settled(first.taskId);
      expect([name, task]).toMatchObject([name, { resultType: "complete", status: "completed", taskId: first.taskId }]);
      expect([name, result?.structuredContent?.status]).toEqual([name, status]);
      expect([name, result?.isError]).toEqual([name, status === "failed"]);
      expect(task.statusMessage).toBe(result?.content[0]?.text?.toString().split("\n")[0]);
    }
    expect(readFileSync(saveTo, "utf8")).toContain("Option 2");
    // Only over stdio can the client open the server's files.
    const { content } = await taskHost(asks[kind], { extensions: {} }).result("list_options", {
      targetingId,
      saveTo: join(folder, `${named("linked")}.csv`),
    });
    const link = {
      type: "resource_link",
      uri: expect.stringMatching(/^file:\/\/\/.*\.(csv|ndjson)$/),
      name: expect.any(String),
    };
    expect(
      z
        .array(z.looseObject({ type: z.string() }))
        .parse(content)
        .slice(1),
    ).toEqual(kind === "stdio" ? [link, link] : []);
  });

  test("reads, looks at runs and refused calls are answered at once", async () => {
    const { service, asks } = await shared();
    const host = taskHost(asks[kind]);
    const { targetingId } = await withOptions(service);
    for (const [name, args] of [
      ["get_targeting", { targetingId }],
      ["get_run", {}],
      ["bulk_add_options", { targetingId }],
      ["track_event", { uid: "user-1", eventName: "app_open", dryRun: true }],
    ] as const) {
      const result = await host.result(name, args);
      expect([name, result.resultType, result.taskId]).toEqual([name, "complete", undefined]);
    }
  });

  test("a client that does not declare tasks meets none", async () => {
    const { service, asks } = await shared();
    const ask = asks[kind];
    const { targetingId } = await withOptions(service);
    const without = taskHost(ask, { extensions: {} });
    const result = await without.result("bulk_add_options", { targetingId, items: [{ name: "New" }] });
    expect(result).toMatchObject({ resultType: "complete", structuredContent: { status: "succeeded" } });
    expect(JSON.stringify(result)).not.toContain("taskId");
    const { taskId } = await taskHost(ask).call("bulk_add_options", { targetingId, items: [{ name: "Newer" }] });
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
      const { error } = await ask(method, { taskId, inputResponses: {} }, { extensions: {} });
      expect([method, error]).toMatchObject([method, NEEDS_TASKS]);
    }
    for (const method of ["tasks/list", "tasks/result"]) {
      expect((await ask(method, { taskId })).error).toMatchObject({ code: -32601 });
    }
    const { result: discovered } = await ask("server/discover", {}, { extensions: {} });
    expect(discovered).toMatchObject({ capabilities: { extensions: { [TASKS]: {} } } });
    expect(discovered?.capabilities).not.toHaveProperty("logging");
  });

  test("a task is cancelled, and stays so; that is said again and again without harm", async () => {
    const { service, asks } = await shared();
    const host = taskHost(asks[kind]);
    const { targetingId } = await withOptions(service, 0);
    const release = await service.hold("createTargetings");
    // This call needs two requests. It is cancelled while the service holds the first.
    const items = Array.from({ length: 150 }, () => ({ name: named("Fans") }));
    const { taskId, status } = await host.call("create_targetings", { items });
    expect(status).toBe("working");
    const { result } = await host.cancel(taskId);
    await release();
    expect(Object.keys(result ?? {}).filter((key) => key !== "_meta")).toEqual(["resultType"]);
    expect(result?.resultType).toBe("complete");
    const settled = await host.settled(taskId);
    expect(settled.result).toBeUndefined();
    expect((await host.cancel(taskId)).result?.resultType).toBe("complete");
    expect(await host.get(taskId)).toEqual(settled);
    // The plan is finished, so cancelling its task does not remove it.
    const plan = await host.call("bulk_add_options", { targetingId, items: [{ name: "Later" }], dryRun: true });
    const planned = await host.settled(plan.taskId);
    await host.cancel(plan.taskId);
    const applied = await host.settled(
      (await host.call("apply_plan", { runId: planned.result?.structuredContent?.runId ?? "" })).taskId,
    );
    expect(applied.result?.structuredContent?.status).toBe("succeeded");
    expect((await host.get(plan.taskId)).status).toBe("completed");
  });

  test("who listens hears when a run of their own stands elsewhere", async () => {
    const { service, asks, listens } = await shared();
    const host = taskHost(asks[kind]);
    const { targetingId } = await withOptions(service, 0);
    const release = await service.hold("addOptions");
    const { taskId } = await host.call("bulk_add_options", { targetingId, items: [{ name: "New" }] });
    const runId = /"runId":"([^"]+)"/.exec(JSON.stringify(await host.result("get_run", {})))?.[1] ?? "";
    const uri = `targeting://runs/${runId}/results`;
    const foreign = "targeting://runs/01J00000000000000000000000/results";
    const heard: TaskReply[] = [];
    const resourceSubscriptions = [foreign, uri, "targeting://spec/limits"];
    await listens[kind]({ resourceSubscriptions, toolsListChanged: true }, (message) => heard.push(message));
    const acknowledged = "notifications/subscriptions/acknowledged";
    const params = { notifications: { resourceSubscriptions: [uri] } };
    await expect.poll(() => heard).toContainEqual(expect.objectContaining({ method: acknowledged }));
    expect(heard.find(({ method }) => method === acknowledged)).toMatchObject({ params });
    await release();
    const updated = { method: "notifications/resources/updated", params: { uri } };
    await expect.poll(() => heard.find(({ method }) => method === updated.method)).toMatchObject(updated);
    expect((await host.settled(taskId)).status).toBe("completed");
    // Clients that do not support tasks are refused.
    const refused: TaskReply[] = [];
    await listens[kind]({ taskIds: [taskId] }, (message) => refused.push(message), { extensions: {} });
    await expect.poll(() => refused.find(({ error }) => error !== undefined)).toMatchObject({ error: NEEDS_TASKS });
  });

  test("who listens to a task hears its states as tasks/get shows them, until it is over", async () => {
    const { service, asks, listens } = await shared();
    const host = taskHost(asks[kind]);
    const { targetingId } = await withOptions(service, 0);
    const release = await service.hold("addOptions");
    const { taskId } = await host.call("bulk_add_options", { targetingId, items: [{ name: "New" }] });
    const heard: TaskReply[] = [];
    await listens[kind]({ taskIds: [taskId, taskId] }, (message) => heard.push(message));
    const of = (status: string) => heard.filter(({ params }) => params?.status === status);
    await expect.poll(() => of("working")).not.toEqual([]);
    expect(heard[0]).toMatchObject({
      method: "notifications/subscriptions/acknowledged",
      params: { notifications: { taskIds: [taskId] } },
    });
    await release();
    await expect.poll(() => of("completed")).not.toEqual([]);
    const { resultType, ...settled } = await host.get(taskId);
    const [{ method, params } = {}] = of("completed");
    const { _meta: its, ...told } = z.looseObject({ _meta: z.looseObject({}) }).parse(params);
    const { _meta: _server, ...shown } = settled;
    expect([method, told]).toEqual(["notifications/tasks", shown]);
    expect(Object.keys(its)).toEqual(["io.modelcontextprotocol/subscriptionId"]);
    expect(JSON.stringify(heard)).not.toMatch(SECRETS);
    // The first subscription gets no second notification. The new subscription gets its own.
    await listens[kind]({ taskIds: [taskId] }, (message) => heard.push(message));
    await expect.poll(() => of("completed")).toHaveLength(2);
    expect(heard.at(-1)?.method).toBe("notifications/tasks");
  });

  test("who listens to several tasks hears only those whose handles they received", async () => {
    const { service, asks, listens, url } = await shared();
    const host = taskHost(asks[kind]);
    const { targetingId } = await withOptions(service, 0);
    const { taskId } = await host.call("bulk_add_options", { targetingId, items: [{ name: "New" }] });
    const { result } = await host.settled(taskId);
    const other = taskHost(overHttp(url, TOKENS.other));
    const foreign = (await other.call("create_targetings", { items: [{ name: named("Foreign") }] })).taskId;
    const changed = `${taskId.slice(0, -2)}${taskId.endsWith("AA") ? "BB" : "AA"}`;
    const wrong = ["", "none", result?.structuredContent?.runId ?? "", changed, `${taskId}=`, foreign];
    const heard: TaskReply[] = [];
    await listens[kind]({ taskIds: [...wrong, taskId] }, (message) => heard.push(message));
    await expect.poll(() => heard.find(({ method }) => method === "notifications/tasks")).toBeDefined();
    expect(heard[0]).toMatchObject({ params: { notifications: { taskIds: [taskId] } } });
    const none: TaskReply[] = [];
    await listens[kind]({ taskIds: wrong }, (message) => none.push(message));
    await expect.poll(() => none.length).toBeGreaterThan(0);
    expect(none[0]?.params).not.toHaveProperty("notifications.taskIds");
    // Only the first twenty IDs of a request are used.
    const crowd: TaskReply[] = [];
    await listens[kind]({ taskIds: [...Array(1000).keys()].map((at) => `${at}`).concat(taskId) }, (message) =>
      crowd.push(message),
    );
    await expect.poll(() => crowd.length).toBeGreaterThan(0);
    expect(crowd[0]?.params).not.toHaveProperty("notifications.taskIds");
    for (const taskIds of ["text", 5, [5], { 0: taskId }, null]) {
      const refused: TaskReply[] = [];
      await listens[kind]({ taskIds }, (message) => refused.push(message));
      await expect.poll(() => refused.find(({ error }) => error !== undefined)?.error?.code).toBe(-32602);
    }
  });

  test("a handle that is wrong, changed or of nobody is the same error", async () => {
    const { service, asks } = await shared();
    const host = taskHost(asks[kind]);
    const { targetingId } = await withOptions(service);
    const { taskId } = await host.call("bulk_add_options", { targetingId, items: [{ name: "New" }] });
    const { result } = await host.settled(taskId);
    const bytes = Buffer.from(taskId, "base64url");
    const with1 = (at: number) =>
      Buffer.from(bytes.map((byte, one) => (one === at ? byte ^ 1 : byte))).toString("base64url");
    const [changed, asPlan] = [with1(bytes.length - 1), with1(16)];
    const runId = result?.structuredContent?.runId ?? "";
    for (const wrong of ["", "none", runId, changed, asPlan, `${taskId}=`, taskId.slice(1)]) {
      for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
        expect((await asks[kind](method, { taskId: wrong, inputResponses: {} })).error).toEqual(NOT_FOUND);
      }
    }
    expect((await asks[kind]("tasks/get", {})).error?.code).toBe(-32602);
  });
});

test("a handle is of its caller alone, and of its project", async () => {
  const { service, url, asks, http } = await shared();
  const { targetingId } = await withOptions(service);
  const { taskId } = await taskHost(asks.HTTP).call("bulk_add_options", { targetingId, items: [{ name: "New" }] });
  const other = overHttp(url, TOKENS.other);
  for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
    expect((await other(method, { taskId, inputResponses: {} })).error).toEqual(NOT_FOUND);
  }
  const elsewhere = await startHttp({ ...http, TARGETING_MCP_PROJECT: "another" });
  expect((await overHttp(elsewhere.url, TOKENS.agent)("tasks/get", { taskId })).error).toEqual(NOT_FOUND);
  const again = await startHttp(http);
  expect((await taskHost(overHttp(again.url, TOKENS.agent)).settled(taskId)).status).toBe("completed");
});

test("a stream ends without a word once its caller is no longer let in", async () => {
  const { service, http } = await shared();
  const file = join(mkdtempSync(join(tmpdir(), "targeting-mcp-access-")), "access.json");
  writeAccess(file, [{ name: "agent" }, { name: "boss", approves: true }]);
  const { url } = await startHttp({ ...http, TARGETING_MCP_ACCESS_FILE: file });
  const { targetingId } = await withOptions(service, 0);
  const host = taskHost(overHttp(url, TOKENS.agent));
  const release = await service.hold("addOptions");
  const { taskId } = await host.call("bulk_add_options", { targetingId, items: [{ name: "New" }] });
  const heard: TaskReply[] = [];
  const ended = listenOverHttp(url, TOKENS.agent);
  let isOver = false;
  await ended(
    { taskIds: [taskId] },
    (message) => heard.push(message),
    {},
    () => {
      isOver = true;
    },
  );
  await expect.poll(() => heard.length).toBe(2);
  writeAccess(file, [{ name: "boss", approves: true }]);
  await release();
  await expect.poll(() => isOver).toBe(true);
  expect(heard.map(({ params }) => params?.status)).toEqual([undefined, "working"]);
});

test("who listens to twenty tasks hears of each, and the server's log has no warning", async () => {
  const { service, http } = await shared();
  const { url, stderr } = await startHttp(http);
  const host = taskHost(overHttp(url, TOKENS.agent));
  const { targetingId } = await withOptions(service, 0);
  const taskIds: string[] = [];
  for (let at = 0; at < 20; at += 1) {
    const items = [{ name: `New ${at}` }];
    taskIds.push((await host.call("bulk_add_options", { targetingId, items })).taskId);
  }
  const heard = new Set<unknown>();
  await listenOverHttp(url, TOKENS.agent)({ taskIds }, ({ params }) => heard.add(params?.taskId));
  await expect.poll(() => taskIds.filter((one) => !heard.has(one))).toEqual([]);
  expect(stderr()).not.toContain("Warning");
});

test("an approval that the client can ask for is asked for before there is a task", async () => {
  const { service, asks } = await shared();
  for (const [kind, declared] of [
    ["stdio", FORMS],
    ["HTTP", FORMS],
  ] as const) {
    const { ids } = await withOptions(service);
    const host = taskHost(asks[kind], declared);
    const question = await host.result("delete_options", { ids });
    expect(question).toMatchObject({ resultType: "input_required" });
    expect(question).not.toHaveProperty("taskId");
    const { requestState } = question;
    const reply = { requestState, inputResponses: { confirm: YES } };
    const started = await host.result("delete_options", { ids }, reply);
    expect(started).toMatchObject({ resultType: "task" });
    expect(started).not.toHaveProperty("requestState");
    const { result } = await host.settled(String(started.taskId));
    expect(result?.structuredContent).toMatchObject({ status: "succeeded", approval: { channel: "client" } });
  }
});

test("a change that waits on the page is a task at work until the person decides there", async () => {
  const { service, asks, url } = await shared();
  const boss = await loggedIn(new URL(url).origin, "boss");
  const { ids } = await withOptions(service);
  const opening = taskHost(asks.HTTP, { elicitation: { url: {} } });
  const asked = await opening.result("delete_options", { ids: ids.slice(0, 1) });
  expect(asked).toMatchObject({ resultType: "input_required", inputRequests: { open: { params: { mode: "url" } } } });
  const { requestState } = asked;
  const opened = { requestState, inputResponses: { open: { action: "accept" } } };
  const { taskId } = await opening.result("delete_options", { ids: ids.slice(0, 1) }, opened);
  const nobody = taskHost(asks.HTTP);
  const decided = async (taskId: string, decision: "approve" | "decline", status: string) => {
    const { status: now, statusMessage } = await nobody.get(taskId);
    expect(now).toBe("working");
    expect(statusMessage).toMatch(/^Approval required; nothing was sent\. A person decides on the page at http/);
    const waiting = () => boss.runs().find((run) => run.waiting !== undefined)?.runId;
    await expect.poll(waiting).toBeDefined();
    expect((await boss.press(waiting() ?? "", decision)).status).toBe(200);
    const { result } = await nobody.settled(taskId);
    expect(result?.structuredContent).toMatchObject({ status, approval: { channel: "page", by: "boss" } });
    expect(JSON.stringify(result)).not.toMatch(SECRETS);
    await expect.poll(waiting).toBeUndefined();
  };
  await decided(String(taskId), "approve", "succeeded");
  const other = await nobody.call("delete_options", { ids: ids.slice(1) });
  await decided(other.taskId, "decline", "cancelled");
});

test("a change that is decided on in a view is answered with that, and no task", async () => {
  const { service, asks } = await shared();
  const { ids } = await withOptions(service);
  const extensions = { ...DECLARES.tasks, ...SHOWS_VIEWS };
  const host = taskHost(asks.stdio, { extensions });
  const shown = viewed.parse(await host.result("delete_options", { ids }));
  const decision = shown._meta["targeting-mcp/decision"];
  expect(shown).toMatchObject({ resultType: "complete", structuredContent: { status: "needs_confirmation" } });
  expect(await host.result("decide_run", { ...decision, decision: "approve" })).toMatchObject({
    resultType: "complete",
  });
  await host.result("get_run", { runId: decision.runId, waitMs: 25_000 });
  // The client supports tasks, so later work is a task again. Its result contains what the view shows.
  const undo = await host.settled((await host.call("undo_run", { runId: decision.runId })).taskId);
  expect(undo.result?._meta).toMatchObject({ "targeting-mcp/run": {} });
});

test("without anybody to ask the answer is given with its token, since the next step needs it", async () => {
  const { service, asks } = await shared();
  const { ids } = await withOptions(service);
  const host = taskHost(asks.stdio);
  const asked = await host.result("delete_options", { ids });
  expect(asked).toMatchObject({
    resultType: "complete",
    structuredContent: { confirmation: { token: expect.any(String) } },
  });
  const [, confirmation = ""] = /"token":"([^"]+)"/.exec(JSON.stringify(asked)) ?? [];
  const { taskId } = await host.call("delete_options", { confirmation });
  expect((await host.settled(taskId)).result?.structuredContent).toMatchObject({ status: "succeeded" });
});

describe("a change that was planned for long", () => {
  const strict = (more: Declared, confirm: string) =>
    planned({ TARGETING_MCP_CONFIRM: confirm, TARGETING_MCP_WAIT_MS: "400", TARGETING_MCP_PAGE: "off" }, more);

  /** Creates a task whose call answers before its run is planned. The run then waits for approval. */
  async function planned(env: Readonly<Record<string, string>>, declared: Declared) {
    const { service, stdio } = await shared();
    const { targetingId, ids } = await withOptions(service);
    const environment = cleanEnvironment({
      ...stdio,
      ...env,
      TARGETING_MCP_STATE_DIR: mkdtempSync(join(tmpdir(), "tasks-")),
    });
    const { ask } = overStdio(environment);
    const host = taskHost(ask, declared);
    await host.result("get_targeting", { targetingId });
    const release = await service.hold("listOptions");
    const call = await host.call("delete_options", { targetingId, names: ["Option 1"] });
    expect(call.status).toBe("working");
    await release();
    const isThere = async () =>
      JSON.stringify(await host.result("get_option", { optionId: ids[0] })).includes("Option 1");
    return { host, task: await host.settled(call.taskId), isThere };
  }

  test.for(["ask", "strict"])(
    "asks the person through its task (%s); nothing but a clear yes counts",
    async (confirm) => {
      const { host, task, isThere } = await strict(FORMS, confirm);
      const { taskId } = task;
      expect(task.status).toBe("input_required");
      const [[key = "", request] = []] = Object.entries(task.inputRequests ?? {});
      expect(request).toMatchObject({
        method: "elicitation/create",
        params: { message: expect.stringContaining("1 option") },
      });
      const odd = [
        {},
        { confirm: YES },
        { "confirm-x": YES },
        { [key]: { action: "accept" } },
        { [key]: { action: "accept", content: { confirm: "true" } } },
        { [key]: { action: "accept", content: { confirm: false } } },
        { [key]: { action: "cancel" } },
        { [key]: true },
      ];
      for (const inputResponses of odd) {
        expect((await host.update(taskId, inputResponses)).result?.resultType).toBe("complete");
        expect(await host.get(taskId)).toMatchObject({ status: "input_required", inputRequests: { [key]: {} } });
      }
      expect(await isThere()).toBe(true);
      await host.update(taskId, { [key]: YES });
      const { result } = await host.settled(taskId, "over");
      expect(result?.structuredContent).toMatchObject({ status: "succeeded", approval: { channel: "client" } });
      expect(JSON.stringify(result)).not.toMatch(SECRETS);
      // The task is already finished, so a second, different answer changes nothing.
      await host.update(taskId, { [key]: { action: "decline" } });
      expect((await host.get(taskId)).result?.structuredContent).toEqual(result?.structuredContent);
    },
  );

  test("is over with a no", async () => {
    const { host, task, isThere } = await strict(FORMS, "ask");
    const [key = ""] = Object.keys(task.inputRequests ?? {});
    await host.update(task.taskId, { [key]: { action: "decline" } });
    const { status, result } = await host.settled(task.taskId, "over");
    expect([status, result?.structuredContent]).toMatchObject(["completed", { approval: { decision: "declined" } }]);
    await host.update(task.taskId, { [key]: YES });
    expect(await isThere()).toBe(true);
  });

  test("ends with a token where nobody can be asked", async () => {
    const { task } = await strict({}, "ask");
    expect(task.result?.structuredContent).toMatchObject({
      status: "needs_confirmation",
      confirmation: { token: expect.any(String) },
    });
  });
});

test("a server whose client still listens ends with its input", async () => {
  const { service, stdio } = await shared();
  const env = cleanEnvironment({ ...stdio, TARGETING_MCP_STATE_DIR: mkdtempSync(join(tmpdir(), "tasks-")) });
  const { ask, child, listen } = overStdio(env);
  const host = taskHost(ask);
  const { targetingId } = await withOptions(service, 0);
  const { taskId } = await host.call("bulk_add_options", { targetingId, items: [{ name: "New" }] });
  const runId = (await host.settled(taskId)).result?.structuredContent?.runId;
  const heard: TaskReply[] = [];
  await listen({ resourceSubscriptions: [`targeting://runs/${runId}/results`] }, (message) => heard.push(message));
  await expect.poll(() => heard.length).toBeGreaterThan(0);
  const ended = once(child, "close");
  child.stdin.end();
  expect(await ended).toEqual([0, null]);
});

test("a task over stdio whose server is killed is found by the next one, and says what is left", async () => {
  const { service, stdio } = await shared();
  const env = cleanEnvironment({ ...stdio, TARGETING_MCP_STATE_DIR: mkdtempSync(join(tmpdir(), "tasks-")) });
  const first = overStdio(env);
  const { targetingId } = await withOptions(service, 0);
  const release = await service.hold("addOptions");
  const { taskId } = await taskHost(first.ask).call("bulk_add_options", { targetingId, items: optionItems(3) });
  await expect.poll(() => service.count("addOptions")).toBeGreaterThan(0);
  first.child.kill("SIGKILL");
  await release();
  const next = taskHost(overStdio(env).ask);
  const left = await next.settled(taskId);
  expect(left.result?.structuredContent).toMatchObject({ status: "interrupted" });
  const resumed = await next.call("resume_run", { runId: left.result?.structuredContent?.runId ?? "" });
  expect((await next.settled(resumed.taskId)).result?.structuredContent).toMatchObject({ status: "succeeded" });
});
