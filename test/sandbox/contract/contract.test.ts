import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Sandbox, startSandbox } from "../../../src/sandbox/index.ts";
import { type Access, at, codes, errorOf, idOf, ROUTE, type Service, serviceAt } from "../service.ts";

const UNKNOWN = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/** A word that makes the names of this test run unique, because a live project may have names of other runs. */
const RUN = Date.now().toString(36);

/**
 * The same checks for the sandbox and for a live service. They use only one targeting, which they create and delete,
 * and events of one made-up user. Where the documents leave something open, they rely only on the routes.
 */
function contract(access: () => Access): void {
  let service: Service;
  let targeting: string;
  const named = (name: string) => `ct ${RUN} ${name}`;

  beforeAll(async () => {
    service = serviceAt(access());
    targeting = await service.create(named("t"));
  });

  afterAll(async () => {
    const results = await service.bulk(ROUTE.deleteTargetings, { ids: [targeting] });
    expect(codes(results)).toEqual(["ok"]);
  });

  test("a created targeting can be read, renamed, and not created again", async () => {
    expect(await service.get(`/context-targeting/${targeting}`)).toMatchObject({ _id: targeting, name: named("t") });
    const again = await service.bulk(ROUTE.createTargetings, { items: [{ name: named("t") }] });
    expect(errorOf(again[0])).toMatchObject({
      statusCode: 409,
      errorCode: "TARGETING_NAME_DUPLICATE",
      detail: { existingId: targeting },
    });
    const same = await service.bulk(ROUTE.renameTargetings, { items: [{ _id: targeting, name: named("t") }] });
    expect(codes(same)).toEqual(["ok"]);
  });

  test("options are added, changed, listed and deleted, with results in order", async () => {
    const added = await service.bulk(ROUTE.addOptions, {
      items: [
        { targeting, name: "regular", contexts: [`${RUN} a`, `${RUN} b`] },
        { targeting, name: "group", type: "collection", children: [{ name: "sub 1" }, { name: "sub 2" }] },
        { targeting, name: "regular" },
      ],
    });
    expect(codes(added)).toEqual(["ok", "ok", "TARGETING_CATEGORY_NAME_DUPLICATE"]);
    expect(errorOf(added[2])?.detail).toMatchObject({ duplicateOfIndex: 0 });
    const [regular, group] = [idOf(added[0]), idOf(added[1])];
    expect(added[0]).toMatchObject({ data: { name: "regular", type: "atomic", contextCount: 2 } });
    expect(added[1]).toMatchObject({ data: { name: "group", type: "collection" } });

    const contexts = { add: [`${RUN} c`], remove: [`${RUN} a`, `${RUN} never`] };
    for (const _ of [1, 2]) {
      const updated = await service.bulk(ROUTE.updateOptions, { items: [{ _id: regular, name: "renamed", contexts }] });
      expect(updated).toMatchObject([{ success: true, data: { name: "renamed", contextCount: 2 } }]);
    }
    expect((await service.list(targeting)).items.map(({ _id }) => _id)).toEqual([regular, group]);
    const subs = (await service.list(targeting, `?parent=${group}`)).items;
    expect(subs.map(({ name }) => name)).toEqual(["sub 1", "sub 2"]);

    const moved = await service.bulk(ROUTE.updateOptions, { items: [{ _id: regular, parent: group }] });
    expect(codes(moved)).toEqual(["ok"]);
    const deleted = await service.bulk(ROUTE.deleteOptions, { ids: [regular, UNKNOWN] });
    expect(codes(deleted)).toEqual(["ok", "TARGETING_CATEGORY_NOT_FOUND"]);
    const last = await service.bulk(ROUTE.deleteOptions, { ids: [at(subs, 0)._id] });
    expect(codes(last)).toEqual(["ok"]);
    expect(codes(await service.bulk(ROUTE.deleteOptions, { ids: [at(subs, 1)._id] }))).toEqual([
      "TARGETING_CATEGORY_NOT_SUPPORTED",
    ]);
  });

  test("a request with one wrong field is refused whole", async () => {
    const items = [
      { targeting, name: "never" },
      { targeting, name: "never_this" },
    ];
    const reply = await service.send("POST", ROUTE.addOptions, { items });
    expect(reply).toMatchObject({ status: 400, body: { statusCode: 400, message: expect.any(Array) } });
    expect(reply.body).not.toHaveProperty("errorCode");
    expect((await service.list(targeting)).items.map(({ name }) => name)).not.toContain("never");
  });

  test("missing things, bad IDs and wrong keys have their own answers", async () => {
    expect(await service.send("GET", `/context-targeting/${UNKNOWN}`)).toMatchObject({
      status: 404,
      body: { errorCode: "TARGETING_NOT_FOUND" },
    });
    expect(await service.send("GET", "/context-targeting/not-a-ulid")).toMatchObject({
      status: 400,
      body: { message: expect.any(String) },
    });
    const wrong = { "x-api-key": `wrong-${RUN}` };
    expect((await service.send("GET", `/context-targeting/${targeting}`, undefined, wrong)).status).toBe(401);
  });

  test("events are taken, and those that the service ignores look the same", async () => {
    const uid = `contract-${RUN}`;
    const recorded = await service.event({ uid, eventName: "page_view", page_id: "contract" });
    expect(recorded).toMatchObject({ status: 200, body: { message: "ok" } });
    expect((await service.event({ uid, eventName: "no_such_event" })).status).toBe(200);
    expect((await service.event({ uid, eventName: "page_view" })).status).toBe(200);
  });
}

describe("the sandbox", () => {
  let sandbox: Sandbox | undefined;
  beforeAll(async () => {
    sandbox = await startSandbox();
  });
  afterAll(() => sandbox?.close());
  contract(() => {
    const url = sandbox?.url ?? "";
    return { targetingUrl: url, targetingKey: "sandbox-key", eventUrl: url, appKey: "sandbox-app-key" };
  });
});

const {
  CONTRACT_TARGETING_API_URL: targetingUrl = "",
  CONTRACT_TARGETING_API_KEY: targetingKey = "",
  CONTRACT_EVENT_API_URL: eventUrl = "",
  CONTRACT_EVENT_APP_KEY: appKey = "",
} = process.env;

describe.skipIf([targetingUrl, targetingKey, eventUrl, appKey].includes(""))("the live service", () => {
  contract(() => ({ targetingUrl, targetingKey, eventUrl, appKey }));
});
