import { expect } from "vitest";
import { rule } from "./rule.ts";
import { ROUTE } from "./service.ts";

const UNKNOWN = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

rule("key-401", async (service) => {
  await service.seed({ keys: [{ key: "old-key", revoked: true }] });
  for (const key of ["", "wrong", "old-key", "__proto__"]) {
    const reply = await service.send("GET", `/context-targeting/${UNKNOWN}`, undefined, { "x-api-key": key });
    expect(reply, key).toMatchObject({ status: 401, body: { statusCode: 401, message: expect.any(String) } });
    expect(reply.body).not.toHaveProperty("errorCode");
  }
  const { status } = await fetch(`${service.url}/context-targeting/${UNKNOWN}`);
  expect(status).toBe(401);
});

rule("key-403", async (service) => {
  await service.seed({ keys: [{ key: "write-key", scopes: ["context-targeting:write"] }] });
  const write = { "x-api-key": "write-key" };
  const read = { "x-api-key": "sandbox-read-key" };
  const writes = [
    ["POST", ROUTE.createTargetings],
    ["PATCH", `/context-targeting/${UNKNOWN}`],
    ["DELETE", `/context-targeting/${UNKNOWN}`],
    ["POST", ROUTE.addOptions],
  ] as const;
  for (const [method, path] of writes) {
    expect(await service.send(method, path, undefined, read), path).toMatchObject({ status: 403 });
    expect((await service.send(method, path, undefined, write)).status, path).not.toBe(403);
  }
  const path = `/context-targeting/${UNKNOWN}`;
  expect(await service.send("GET", path, undefined, write)).toMatchObject({ status: 403 });
  expect(await service.send("GET", path, undefined, read)).toMatchObject({ status: 404 });
});

rule("project-gone", async (service) => {
  const targeting = await service.create("News");
  await service.seed({ deleted: true });
  const gone = { status: 404, body: { statusCode: 404, errorCode: "PROJECT_NOT_FOUND" } };
  expect(await service.send("GET", `/context-targeting/${targeting}`)).toMatchObject(gone);
  expect(await service.send("POST", ROUTE.createTargetings, { items: [{ name: "Sport" }] })).toMatchObject(gone);
});

rule(
  "key-project",
  async (service) => {
    const targeting = await service.create("News");
    const theirs = await service.send("POST", ROUTE.targetings, { name: "News" }, { "x-api-key": "given-key" });
    expect(theirs.status).toBe(200);
    const path = `/context-targeting/${targeting}`;
    expect(await service.send("GET", path, undefined, { "x-api-key": "given-key" })).toMatchObject({ status: 404 });
    expect(await service.send("GET", path)).toMatchObject({ status: 200 });
  },
  { keys: { managementKeys: [{ key: "given-key", project: "given" }] } },
);
