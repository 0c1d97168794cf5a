import { expect, test } from "vitest";
import * as z from "zod";
import { ROUTE, type SandboxService, withSandbox } from "./service.ts";

const journal = z.object({
  requests: z.array(
    z.looseObject({
      operation: z.string(),
      status: z.number().nullable(),
      applied: z.boolean(),
      fault: z.string().optional(),
    }),
  ),
});

const create = (service: SandboxService, name: string) =>
  service.send("POST", ROUTE.createTargetings, { items: [{ name }] });

/** Creates a targeting. Returns the status, or "reset" if the connection was closed. */
const outcome = async (service: SandboxService, name: string) =>
  create(service, name).then(
    ({ status }) => status,
    () => "reset",
  );

/** Returns whether a targeting with this name exists. */
async function exists(service: SandboxService, name: string): Promise<boolean> {
  const { body } = await service.control("GET", "/state");
  return JSON.stringify(body).includes(`"name":"${name}"`);
}

/** Waits until the only fault has affected this many requests. */
const untilHeld = (service: SandboxService, struck: number) =>
  expect.poll(() => service.control("GET", "/faults")).toMatchObject({ body: { faults: [{ struck }] } });

test("a status before or after the request is applied", () =>
  withSandbox(async (service) => {
    for (const status of [500, 502, 413, 429]) {
      await service.fault({ kind: "status", status });
      expect(await outcome(service, `Before ${status}`)).toBe(status);
      expect(await exists(service, `Before ${status}`)).toBe(false);
      await service.control("DELETE", "/faults");
      await service.fault({ kind: "status", status, applied: true });
      expect(await outcome(service, `After ${status}`)).toBe(status);
      expect(await exists(service, `After ${status}`)).toBe(true);
      await service.control("DELETE", "/faults");
    }
  }));

test("the third write: applied, then the connection is reset", () =>
  withSandbox(async (service) => {
    await service.fault({ on: "write", nth: 3, kind: "reset", applied: true });
    expect(await outcome(service, "One")).toBe(200);
    expect((await service.send("GET", "/context-targeting/01ARZ3NDEKTSV4RRFFQ69G5FAV")).status).toBe(404);
    expect(await outcome(service, "Two")).toBe(200);
    expect(await outcome(service, "Three")).toBe("reset");
    expect(await outcome(service, "Four")).toBe(200);
    expect(await exists(service, "Three")).toBe(true);
    const { requests } = journal.parse((await service.control("GET", "/requests")).body);
    const struck = requests.filter(({ fault }) => fault !== undefined);
    expect(struck).toMatchObject([{ operation: "createTargetings", status: null, applied: true, fault: "reset" }]);
  }));

test("a reset before the request is applied", () =>
  withSandbox(async (service) => {
    await service.fault({ on: "createTargetings", kind: "reset" });
    expect(await outcome(service, "One")).toBe("reset");
    expect(await exists(service, "One")).toBe(false);
  }));

test("a request that is never answered, applied or not", () =>
  withSandbox(async (service) => {
    for (const applied of [true, false]) {
      await service.fault({ kind: "timeout", applied });
      const name = applied ? "Applied" : "Not applied";
      const abort = new AbortController();
      const answer = fetch(service.url + ROUTE.createTargetings, {
        method: "POST",
        headers: { "x-api-key": "sandbox-key" },
        body: JSON.stringify({ items: [{ name }] }),
        signal: abort.signal,
      });
      await expect
        .poll(async () => JSON.stringify((await service.control("GET", "/faults")).body))
        .not.toContain('"struck":0');
      await expect.poll(() => exists(service, name)).toBe(applied);
      abort.abort();
      await expect(answer).rejects.toThrow();
      await service.control("DELETE", "/faults");
    }
  }));

test("a write applied late holds the lock until then, or does not", () =>
  withSandbox(async (service) => {
    await service.fault({ kind: "late" });
    expect(await outcome(service, "Held")).toBe("reset");
    expect(await exists(service, "Held")).toBe(false);
    expect(await outcome(service, "Other")).toBe(409);
    await service.control("DELETE", "/faults");
    await expect.poll(() => exists(service, "Held")).toBe(true);
    await expect.poll(() => outcome(service, "Next")).toBe(200);
    await service.fault({ kind: "late", holdsLock: false });
    expect(await outcome(service, "Free")).toBe("reset");
    expect(await outcome(service, "Other")).toBe(200);
    expect(await exists(service, "Free")).toBe(false);
    await service.control("DELETE", "/faults");
    await expect.poll(() => exists(service, "Free")).toBe(true);
    await service.fault({ kind: "late", delayMs: 1 });
    expect(await outcome(service, "Later")).toBe("reset");
    await expect.poll(() => exists(service, "Later")).toBe(true);
  }));

test("busy answers 409 as a whole, and a slow write is carried out later", () =>
  withSandbox(async (service) => {
    await service.fault({ kind: "busy", retryAfterMs: 7 }, { kind: "slow", delayMs: 1, nth: 2 });
    expect(await create(service, "One")).toMatchObject({ status: 409, body: { detail: { retryAfterMs: 7 } } });
    expect((await create(service, "Two")).status).toBe(200);
  }));

test("a held request is carried out when the fault is deleted; a held write holds the lock", () =>
  withSandbox(async (service) => {
    await service.fault({ kind: "hold", nth: 2, on: ["createTargetings", "getTargeting", "trackEvent"] });
    expect(await outcome(service, "One")).toBe(200);
    const held = create(service, "Two");
    await untilHeld(service, 1);
    expect(await outcome(service, "Three")).toBe(409);
    expect(await exists(service, "Two")).toBe(false);
    await service.control("DELETE", "/faults");
    expect((await held).status).toBe(200);
    expect(await exists(service, "Two")).toBe(true);
    await service.fault({ kind: "hold", on: ["getTargeting", "trackEvent"], times: 2 });
    const read = service.send("GET", "/context-targeting/01ARZ3NDEKTSV4RRFFQ69G5FAV");
    const event = service.event({ uid: "u", eventName: "app_open" });
    await untilHeld(service, 2);
    expect(await outcome(service, "Four")).toBe(200);
    expect((await service.control("GET", "/events")).body).toMatchObject({ total: 0 });
    await service.control("POST", "/reset", { only: ["faults"] });
    expect([(await read).status, (await event).status]).toEqual([404, 200]);
    expect((await service.control("GET", "/events")).body).toMatchObject({ total: 1 });
  }));

test("a sandbox that ends cuts the requests that it holds", async () => {
  let held: Promise<unknown> | undefined;
  await withSandbox(async (service) => {
    await service.fault({ kind: "hold" });
    held = outcome(service, "Held");
    await untilHeld(service, 1);
  });
  expect(await held).toBe("reset");
});

test("a fault by probability strikes the same requests for the same seed", () =>
  withSandbox(async (service) => {
    const runs: unknown[] = [];
    for (const _ of [1, 2]) {
      await service.fault({ on: "any", kind: "status", status: 502, probability: 0.5, seed: 42 });
      const statuses: unknown[] = [];
      for (let round = 0; round < 20; round += 1) {
        statuses.push((await service.send("GET", "/context-targeting/01ARZ3NDEKTSV4RRFFQ69G5FAV")).status);
      }
      runs.push(statuses);
      await service.control("DELETE", "/faults");
    }
    expect(runs[0]).toEqual(runs[1]);
    expect(new Set(z.array(z.number()).parse(runs[0]))).toEqual(new Set([404, 502]));
  }));

test("faults of the event endpoint", () =>
  withSandbox(async (service) => {
    const event = { uid: "u", eventName: "app_open" };
    await service.fault(
      { on: "trackEvent", kind: "status", status: 500, applied: true },
      { on: "trackEvent", kind: "status", status: 502, nth: 2 },
      { on: "trackEvent", kind: "reset", nth: 3 },
    );
    expect((await service.event(event)).status).toBe(500);
    expect((await service.event(event)).status).toBe(502);
    await expect(service.event(event)).rejects.toThrow();
    expect((await service.event(event)).status).toBe(200);
    expect((await service.control("GET", "/events")).body).toMatchObject({ total: 2 });
  }));

test("a fault that cannot be understood is refused with what is wrong", () =>
  withSandbox(async (service) => {
    for (const fault of [
      { kind: "nothing" },
      { kind: "status", status: 700 },
      { kind: "reset", on: "unknownOperation" },
      { kind: "busy", retryAfterMs: 2001 },
      { kind: "reset", other: 1 },
    ]) {
      const reply = await service.control("POST", "/faults", { faults: [fault] });
      expect(reply, JSON.stringify(fault)).toMatchObject({ status: 400, body: { message: expect.any(String) } });
    }
    expect((await service.control("GET", "/faults")).body).toEqual({ faults: [] });
  }));
