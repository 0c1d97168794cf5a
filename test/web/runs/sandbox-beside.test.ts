import { expect, onTestFinished, test } from "vitest";
import { startSandbox } from "../../../src/sandbox/index.ts";
import type { StreamSource } from "../../../src/web/event-stream.ts";
import { findOnce, findPageSandbox, mergeSources, type SandboxRights } from "../../../src/web/sandbox-beside.ts";
import { sandboxPage } from "../../../src/web/sandbox-page.ts";
import type { Message } from "../../../src/web/wire.ts";

const HEADERS = { authorization: "sandbox-app-key", "content-type": "application/json" };

/** Starts a sandbox with its page, which a server then uses. Ends with the test. */
async function served(rights: SandboxRights, options: { readonly forward?: string } = {}) {
  const sandbox = await startSandbox({ ...options, page: async (world, url) => sandboxPage(world, url) });
  onTestFinished(() => sandbox.close());
  const events = () => Promise.resolve({ events: [], total: 0, dropped: 0 });
  const services = { sandbox: { events }, testBench: { url: async () => sandbox.url } };
  const beside = await findPageSandbox(services, rights);
  if (beside === undefined) throw new Error("the sandbox was not found");
  const send = (event: unknown) =>
    fetch(`${sandbox.url}/event`, { method: "POST", headers: HEADERS, body: JSON.stringify(event) });
  const get = (path: string) => beside.answer(new Request(`http://127.0.0.1:1${path}`), undefined);
  const post = (path: string, body: unknown) =>
    beside.answer(new Request(`http://127.0.0.1:1${path}`, { method: "POST" }), body);
  return { sandbox, beside, send, get, post };
}

/** Collects the updates of a source until they contain what the test needs. */
async function until(source: StreamSource<Message>, isEnough: (all: readonly Message[]) => boolean) {
  const all: Message[] = [];
  let wake = (): void => undefined;
  const unwatch = source.watch(() => wake());
  while (!isEnough(all)) {
    const changed = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const { messages } = await source.since(undefined);
    all.push(...messages);
    if (messages.length === 0) await changed;
  }
  unwatch();
  return all;
}

test("the views of a server's sandbox come from the sandbox's own page, with everything that they can do", async () => {
  const { beside, send, get, post, sandbox } = await served("all");
  expect(beside).toMatchObject({ address: new URL(sandbox.url).host, views: ["targetings", "events", "faults"] });
  await send({ uid: "u", eventName: "Purchase" });
  const messages = await until(beside.updates(), (all) => all.some(({ kind }) => kind === "faults"));
  expect(messages.map(({ kind }) => kind)).toEqual(["sandbox", "events", "targetings", "faults"]);
  expect(messages[0]).toEqual({ kind: "sandbox", address: sandbox.url, appKey: "sandbox-app-key" });
  expect(await (await get("/page/events/1"))?.json()).toMatchObject({ event: { name: "Purchase" } });
  const tests = await get("/page/events/tests?format=curl");
  expect(tests?.headers.get("content-disposition")).toBe('attachment; filename="events.sh"');
  expect((await post("/page/faults", { operation: "any", kind: "reset" }))?.status).toBe(200);
  expect((await post("/page/events", { text: '{"uid":"u","eventName":"app_open"}' }))?.status).toBe(200);
  expect(sandbox.events().map(({ eventName }) => eventName)).toEqual(["Purchase", "app_open"]);
  expect(await get("/page/runs/01J00000000000000000000000")).toBeUndefined();
});

test("an event that a person sends from the page stays in the sandbox, also where events are passed on", async () => {
  const real = await startSandbox();
  onTestFinished(() => real.close());
  const { post, send, sandbox } = await served("all", { forward: real.url });
  await post("/page/events", { text: '{"uid":"u","eventName":"app_open"}' });
  expect([sandbox.events().length, real.events().length]).toEqual([1, 0]);
  await send({ uid: "u", eventName: "app_open" });
  expect([sandbox.events().length, real.events().length]).toEqual([2, 1]);
  expect((await post("/page/events", { event: {} }))?.status).toBe(400);
});

test("who only looks gets events and targetings, and changes nothing", async () => {
  const { beside, get, post, send, sandbox } = await served("reads");
  expect(beside.views).toEqual(["targetings", "events"]);
  await send({ uid: "u", eventName: "app_open" });
  const messages = await until(beside.updates(), (all) => all.some(({ kind }) => kind === "sandbox"));
  expect(messages[0]).toMatchObject({ kind: "sandbox", readOnly: true });
  expect((await get("/page/targetings?search="))?.status).toBe(200);
  for (const path of ["/page/events", "/page/faults", "/page/faults/1/remove", "/page/reset"]) {
    await expect(post(path, {}), path).rejects.toMatchObject({ status: 403 });
  }
  expect(sandbox.events()).toHaveLength(1);
});

test("a sandbox that ends says so on the page, and one that is not there has no views", async () => {
  const { beside, sandbox, get } = await served("all");
  const updates = beside.updates();
  const ended = until(updates, (all) => all.some((message) => message.kind === "sandbox" && message.isLost === true));
  await sandbox.close();
  await ended;
  await expect(get("/page/events")).rejects.toMatchObject({ status: 502 });
  const { url } = sandbox;
  const events = () => Promise.resolve({ events: [], total: 0, dropped: 0 });
  const gone = { sandbox: { events }, testBench: { url: async () => url } };
  expect(await findPageSandbox(gone, "all")).toBeUndefined();
  expect(await findPageSandbox({ sandbox: undefined, testBench: gone.testBench }, "all")).toBeUndefined();
});

test("a sandbox that was not found is looked for again after a while, and no longer once it was", async () => {
  let tries = 0;
  const clock = { now: 0 };
  const { beside } = await served("all");
  const find = findOnce(
    async () => {
      tries += 1;
      return tries > 1 ? beside : undefined;
    },
    () => clock.now,
  );
  expect([await find(), await find(), tries]).toEqual([undefined, undefined, 1]);
  clock.now += 60_000;
  expect([await find(), await find(), tries]).toEqual([beside, beside, 2]);
});

test("two sources are told as one, each from its own position", async () => {
  const asked: (string | undefined)[] = [];
  const source = (position: string): StreamSource<Message> => ({
    since(from) {
      asked.push(from);
      return { messages: [{ kind: "notice", text: position }], position };
    },
    watch: () => () => undefined,
  });
  const both = mergeSources(source("a"), source("b"));
  const first = await both.since(undefined);
  expect(first.messages).toHaveLength(2);
  await both.since(first.position);
  expect(asked).toEqual([undefined, undefined, "a", "b"]);
});
