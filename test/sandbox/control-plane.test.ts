import { request } from "node:http";
import { expect, test } from "vitest";
import { at, ROUTE, type SandboxService, withSandbox } from "./service.ts";

/** Returns the status of a request with headers that fetch does not allow. */
function statusWith(service: SandboxService, path: string, headers: Readonly<Record<string, string>>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(service.url + path, { headers }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
    });
    sent.on("error", reject);
    sent.end();
  });
}

test("the control plane answers loopback names alone", () =>
  withSandbox(async (service) => {
    for (const host of ["localhost", "localhost:4010", "127.0.0.1", "127.0.0.1:80", "[::1]:9"]) {
      expect(await statusWith(service, "/_sandbox/state", { host }), host).toBe(200);
    }
    for (const host of ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "10.0.0.1"]) {
      expect(await statusWith(service, "/_sandbox/state", { host }), host).toBe(403);
    }
    const host = "localhost";
    expect(await statusWith(service, "/_sandbox/state", { host, origin: "http://localhost:3000" })).toBe(200);
    for (const origin of ["https://evil.example", "null", "http://localhost.evil.example"]) {
      expect(await statusWith(service, "/_sandbox/state", { host, origin }), origin).toBe(403);
      expect(await statusWith(service, "/_sandbox", { host, origin }), origin).toBe(403);
    }
  }));

test("a state travels from one sandbox to another and stays the same", () =>
  withSandbox(async (first) => {
    const targeting = await first.create("News", [
      { name: "group", contexts: ["a"], children: [{ name: "sub", contexts: ["b"] }], exposeChildren: true },
      { name: "one" },
    ]);
    const [older = "", younger = ""] = await first.add(targeting, [
      { name: "older" },
      { name: "younger", type: "collection", contexts: ["c"] },
    ]);
    await first.bulk(ROUTE.updateOptions, { items: [{ _id: older, parent: younger }] });
    await first.seed({
      keys: [{ key: "more" }],
      audience: [{ name: "Visitors" }],
      products: [{ name: "Banner", required: { include: [younger] }, newOptions: { exclude: [targeting] } }],
      campaigns: [{ options: [younger] }],
    });
    const state = (await first.control("GET", "/state")).body;
    await withSandbox(async (second) => {
      expect((await second.control("PUT", "/state", state)).status).toBe(200);
      expect((await second.control("GET", "/state")).body).toEqual(state);
      expect((await second.list(targeting)).items).toEqual((await first.list(targeting)).items);
    });
  }));

test("a state that does not fit together is refused, and the old one stays", () =>
  withSandbox(async (service) => {
    const targeting = await service.create("News");
    await service.add(targeting, [{ name: "one" }]);
    const before = (await service.control("GET", "/state")).body;
    const text = JSON.stringify(before);
    const broken = [
      "{}",
      "[",
      text.replace('"version":1', '"version":2'),
      text.replaceAll(`"targeting":"${targeting}"`, '"targeting":"01ARZ3NDEKTSV4RRFFQ69G5FAV"'),
      text.replace('"type":"atomic"', '"type":"atomic","parent":"01ARZ3NDEKTSV4RRFFQ69G5FAV"'),
    ];
    for (const state of broken) {
      const reply = await service.sendText("PUT", "/_sandbox/state", state);
      expect(reply, state).toMatchObject({ status: 400, body: { message: expect.any(String) } });
    }
    expect((await service.control("GET", "/state")).body).toEqual(before);
  }));

test("reset clears what it is told, or everything", () =>
  withSandbox(async (service) => {
    await service.create("News");
    await service.event({ uid: "u", eventName: "app_open" });
    await service.fault({ kind: "reset" });
    await service.control("POST", "/reset", { only: ["events", "faults"] });
    expect(await service.control("GET", "")).toMatchObject({
      body: { projects: [{ targetings: 1 }], events: { recorded: 0 }, faults: 0 },
    });
    expect((await service.control("GET", "/requests")).body).toMatchObject({ requests: [{}, {}] });
    await service.control("POST", "/reset");
    expect(await service.control("GET", "")).toMatchObject({ body: { projects: [{ targetings: 0 }] } });
    expect((await service.control("GET", "/requests")).body).toEqual({ requests: [], dropped: 0 });
  }));

test("seeds change what has a known ID, and remove what they name", () =>
  withSandbox(async (service) => {
    const targeting = await service.create("News");
    const [group = "", one = ""] = await service.add(targeting, [
      { name: "group", children: [{ name: "sub" }] },
      { name: "one" },
    ]);
    await service.seed({
      targetings: [{ _id: targeting, name: "Sport" }],
      options: [{ _id: one, targeting, name: "two", contexts: [" a "] }],
      remove: [group],
    });
    expect(await service.get(`/context-targeting/${targeting}`)).toMatchObject({ name: "Sport", optionCount: 2 });
    expect((await service.list(targeting)).items).toMatchObject([{ name: "sub" }, { name: "two", contextCount: 1 }]);
    const { audience } = await service.seed({ audience: [{ name: "Visitors" }] });
    await service.seed({ remove: [at(audience, 0), targeting] });
    await service.create("Visitors");
    for (const wrong of [
      { options: [{ targeting: one, name: "x" }] },
      { options: [{ targeting, name: "x", parent: one }] },
      { unknown: 1 },
      { targetings: [{ name: "Not made" }], options: [{ targeting: one, name: "x" }] },
    ]) {
      expect((await service.control("POST", "/seed", wrong)).status).toBe(400);
    }
  }));

test("a seed that would tie options into a ring, or across targetings, is refused whole", () =>
  withSandbox(async (service) => {
    const [targeting, other] = [await service.create("News"), await service.create("Sport")];
    const [group = ""] = await service.add(targeting, [{ name: "group", children: [{ name: "sub" }] }]);
    const sub = at((await service.list(targeting, `?parent=${group}`)).items, 0)._id;
    const before = (await service.control("GET", "/state")).body;
    for (const option of [
      { _id: group, targeting, name: "group", parent: group },
      { _id: group, targeting, name: "group", parent: sub },
      { _id: sub, targeting: other, name: "sub" },
      { targeting: other, name: "new", parent: group },
    ]) {
      const reply = await service.control("POST", "/seed", { audience: [{ name: "Visitors" }], options: [option] });
      expect(reply, JSON.stringify(option)).toMatchObject({ status: 400, body: { message: expect.any(String) } });
    }
    expect(
      (await service.control("POST", "/seed", { remove: [group], options: [{ targeting, name: "x", parent: group }] }))
        .status,
    ).toBe(400);
    const [left, right] = ["01ARZ3NDEKTSV4RRFFQ69G5FA1", "01ARZ3NDEKTSV4RRFFQ69G5FA2"];
    const ring = [
      { _id: left, targeting, name: "left" },
      { _id: right, targeting, name: "right", parent: left },
      { _id: left, targeting, name: "left", parent: right },
    ];
    expect((await service.control("POST", "/seed", { options: ring })).status).toBe(400);
    expect((await service.control("GET", "/state")).body).toEqual(before);
  }));

test("events are read by verdict, name, user, time and number", () =>
  withSandbox(
    async (service) => {
      for (const [uid, eventName] of [
        ["a", "app_open"],
        ["b", "app_open"],
        ["a", "unknown"],
        ["a", ""],
      ]) {
        await service.event({ uid, eventName });
      }
      const read = async (query: string) => (await service.control("GET", `/events${query}`)).body;
      expect(await read("")).toMatchObject({ total: 4, dropped: 0 });
      expect(await read("?verdict=recorded")).toMatchObject({ total: 2 });
      expect(await read("?uid=a&eventName=app_open")).toMatchObject({
        total: 1,
        events: [{ uid: "a", body: { uid: "a", eventName: "app_open" }, at: "2026-01-02T03:04:05.000Z" }],
      });
      expect(await read("?limit=1")).toMatchObject({ total: 4, events: [{ verdict: "rejected" }] });
      expect(await read("?since=2026-01-02T03:04:05.001Z")).toMatchObject({ total: 0 });
      expect(await read(`?since=${Date.parse("2026-01-02T03:04:05Z")}`)).toMatchObject({ total: 4 });
      for (const query of ["?verdict=good", "?since=never", "?limit=-1", "?other=1"]) {
        expect((await service.control("GET", `/events${query}`)).status, query).toBe(400);
      }
    },
    { now: () => Date.parse("2026-01-02T03:04:05Z") },
  ));

test("a page may send events, and may be asked about beforehand", () =>
  withSandbox(async (service) => {
    const preflight = await fetch(`${service.url}/event`, {
      method: "OPTIONS",
      headers: { Origin: "https://shop.example", "Access-Control-Request-Method": "POST" },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-origin")).toBe("*");
    expect(preflight.headers.get("access-control-allow-headers")).toBe("Authorization, Content-Type");
    const { headers } = await service.event({ uid: "u", eventName: "app_open" });
    expect(headers.get("access-control-allow-origin")).toBe("*");
  }));
