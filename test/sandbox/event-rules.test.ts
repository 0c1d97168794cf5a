import { expect } from "vitest";
import * as z from "zod";
import { VERDICT_CASES } from "../events/verdicts.ts";
import { rule } from "./rule.ts";
import { at, type SandboxService } from "./service.ts";

const events = z.object({
  events: z.array(
    z.looseObject({ verdict: z.string(), findings: z.array(z.object({ path: z.string(), rule: z.string() })) }),
  ),
  total: z.number(),
  dropped: z.number(),
});

/** Sends an event. Returns the status, the message, and what the sandbox has stored. */
async function sent(service: SandboxService, body: unknown, key?: string) {
  const reply = await service.event(body, key);
  const page = events.parse((await service.control("GET", "/events?limit=1")).body);
  const kept = at(page.events, 0);
  return {
    status: reply.status,
    message: z.object({ message: z.string() }).parse(reply.body).message,
    verdict: kept.verdict,
    findings: kept.findings.map(({ path, rule: broken }) => `${path} ${broken}`),
  };
}

const recorded = { status: 200, message: "ok", verdict: "recorded" };
const ignored = { status: 200, message: "ok", verdict: "ignored" };
const rejected = { status: 400, message: "!invalid", verdict: "rejected" };
const signUp = { uid: "u", eventName: "sign_up", method: "m" };

rule("event-ok", async (service) => {
  const named = z.looseObject({ eventName: z.string() });
  const right = VERDICT_CASES.filter(({ verdict, finding }) => verdict === "recorded" && finding === undefined);
  for (const { title, event } of right) {
    for (const more of [{}, { platform: "web" }]) {
      expect(await sent(service, { ...named.parse(event), ...more }), title).toEqual({ ...recorded, findings: [] });
    }
  }
  expect(new Set(right.map(({ event }) => named.parse(event).eventName)).size).toBe(13);
});

rule("event-unsupported", async (service) => {
  for (const eventName of ["unknown", "App_Open", "app_open ", "toString", "__proto__", "x".repeat(64)]) {
    expect(await sent(service, { uid: "u", eventName }), eventName).toMatchObject({
      status: 200,
      verdict: "ignored",
      findings: ["eventName unsupportedEvent"],
    });
  }
});

rule("event-missing", async (service) => {
  for (const { title, event, finding: [path, broken] = [""] } of VERDICT_CASES) {
    if (broken !== "requiredMissing") continue;
    const findings = expect.arrayContaining([`${path.replaceAll(/\[(\d+)\]/g, ".$1")} requiredMissing`]);
    expect(await sent(service, event), title).toMatchObject({ ...ignored, findings });
  }
});

rule("event-ignored-message", async (service) => {
  expect(await sent(service, { uid: "u", eventName: "unknown" })).toMatchObject(ignored);
  expect(await sent(service, { uid: "u", eventName: "sign_up" })).toMatchObject(ignored);
});

rule("event-items", async (service) => {
  for (const base of [
    { uid: "u", eventName: "begin_checkout" },
    { uid: "u", eventName: "purchase", tx_id: "t" },
  ]) {
    expect(await sent(service, { ...base, items: [{ item_id: "i" }, { item_name: "n" }] })).toEqual({
      ...ignored,
      findings: ["items.1.item_id requiredMissing"],
    });
    expect(await sent(service, { ...base, items: [null] })).toMatchObject(ignored);
    expect(await sent(service, { ...base, items: [{ item_id: "i" }] })).toMatchObject(recorded);
  }
});

rule("event-null", async (service) => {
  expect(await sent(service, { ...signUp, method: null })).toMatchObject(ignored);
  expect(
    await sent(service, { uid: "u", eventName: "purchase", tx_id: "t", items: [{ item_id: null }] }),
  ).toMatchObject(ignored);
});

rule("event-without-items", async (service) => {
  expect(await sent(service, { uid: "u", eventName: "begin_checkout" })).toMatchObject(recorded);
  expect(await sent(service, { uid: "u", eventName: "begin_checkout", items: [] })).toMatchObject(recorded);
  expect(await sent(service, { uid: "u", eventName: "purchase", tx_id: "t", items: null })).toMatchObject(recorded);
});

rule("event-invalid", async (service) => {
  const bodies = VERDICT_CASES.filter(({ verdict }) => verdict === "rejected").map(({ event }) => event);
  for (const body of [...bodies, "text", "", "{"]) {
    expect(await sent(service, body), JSON.stringify(body)).toMatchObject(rejected);
  }
});

rule("event-limits", async (service) => {
  const items = Array.from({ length: 100 }, () => ({ item_id: "i" }));
  expect(await sent(service, { uid: "u", eventName: "begin_checkout", items })).toMatchObject(recorded);
  expect(await sent(service, { ...signUp, method: "x".repeat(1024) })).toMatchObject(recorded);
  expect(await sent(service, { ...signUp, method: "가".repeat(1024) })).toMatchObject(recorded);
  expect(await sent(service, { ...signUp, uid: "x".repeat(1025) })).toMatchObject(rejected);
});

rule("event-uncertain", async (service) => {
  const cases = [
    [{ ...signUp, method: "" }, "method requiredEmpty"],
    [{ ...signUp, uid: "" }, "uid requiredEmpty"],
    [{ ...signUp, method: 5 }, "method wrongType"],
    [{ ...signUp, platform: 5 }, "platform wrongType"],
    [{ uid: "u", eventName: "view_item", item_id: "i", price: "1" }, "price wrongType"],
    [{ uid: "u", eventName: "begin_checkout", items: "i" }, "items wrongType"],
    [{ ...signUp, method: "🙂".repeat(1000) }, "method lengthDependsOnCounting"],
  ] as const;
  for (const [body, found] of cases) {
    expect(await sent(service, body), found).toEqual({ ...recorded, findings: [found] });
  }
});

rule("event-unused", async (service) => {
  expect(await sent(service, { ...signUp, other: 1, items: [{}] })).toEqual({
    ...recorded,
    findings: ["other notAParameter", "items notAParameter"],
  });
});

rule("event-401", async (service) => {
  for (const key of ["wrong", "", "Bearer sandbox-app-key"]) {
    expect(await sent(service, signUp, key)).toMatchObject({ status: 401, verdict: "rejected" });
  }
  const { status } = await fetch(`${service.url}/event`, { method: "POST", body: JSON.stringify(signUp) });
  expect(status).toBe(401);
});

rule("event-twice", async (service) => {
  await sent(service, signUp);
  await sent(service, signUp);
  expect((await service.control("GET", "/events?verdict=recorded")).body).toMatchObject({ total: 2 });
});
