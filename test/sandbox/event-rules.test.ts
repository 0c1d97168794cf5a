import { expect } from "vitest";
import * as z from "zod";
import { rule } from "./rule.ts";
import { at, type SandboxService } from "./service.ts";

const events = z.object({
  events: z.array(
    z.looseObject({ verdict: z.string(), findings: z.array(z.object({ path: z.string(), rule: z.string() })) }),
  ),
  total: z.number(),
  dropped: z.number(),
});

/** The required and other parameters of each event, by hand from the event document 2.2. */
const CATALOGUE: Readonly<Record<string, { required: Record<string, unknown>; other: Record<string, unknown> }>> = {
  app_open: { required: {}, other: {} },
  sign_up: { required: { method: "m" }, other: {} },
  push_clicks: { required: { campaign_id: "c" }, other: {} },
  page_view: { required: { page_id: "p" }, other: { page_category: "c", page_url: "u" } },
  click: { required: { element_id: "e" }, other: { element_type: "t", target_url: "u" } },
  view_item: {
    required: { item_id: "i" },
    other: { item_name: "n", item_category: "c", brand: "b", price: 1 },
  },
  add_to_wishlist: {
    required: { item_id: "i" },
    other: { item_name: "n", item_category: "c", brand: "b", price: 1 },
  },
  add_to_cart: {
    required: { item_id: "i", price: 1.5, quantity: 2 },
    other: { item_name: "n", item_category: "c", brand: "b", value: 3, currency: "KRW" },
  },
  begin_checkout: { required: {}, other: { currency: "KRW", items: [{ item_id: "i", price: 1, quantity: 2 }] } },
  purchase: {
    required: { tx_id: "t" },
    other: { currency: "KRW", items: [{ item_id: "i", item_name: "n", item_category: "c", brand: "b" }] },
  },
  view_content: { required: { content_id: "c" }, other: { content_name: "n", content_type: "t" } },
  begin_lead_form: {
    required: { form_id: "f" },
    other: { form_name: "n", form_type: "t", form_destination: "d" },
  },
  generate_lead: {
    required: { form_id: "f" },
    other: { form_name: "n", form_type: "t", form_destination: "d", value: 1, currency: "KRW" },
  },
};

/** Sends an event; gives the status, the message, and what the sandbox kept. */
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
  expect(Object.keys(CATALOGUE)).toHaveLength(13);
  for (const [eventName, { required, other }] of Object.entries(CATALOGUE)) {
    const base = { uid: "u", eventName, ...required };
    expect(await sent(service, base), eventName).toEqual({ ...recorded, findings: [] });
    expect(await sent(service, { ...base, platform: "web", ...other }), eventName).toEqual({
      ...recorded,
      findings: [],
    });
  }
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
  for (const [eventName, { required }] of Object.entries(CATALOGUE)) {
    for (const missing of Object.keys(required)) {
      const { [missing]: _, ...rest } = required;
      expect(await sent(service, { uid: "u", eventName, ...rest }), `${eventName} ${missing}`).toMatchObject({
        status: 200,
        verdict: "ignored",
        findings: [`${missing} requiredMissing`],
      });
    }
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
  const bodies = [
    { eventName: "app_open" },
    { uid: null, eventName: "app_open" },
    { uid: 5, eventName: "app_open" },
    { uid: "u" },
    { uid: "u", eventName: 5 },
    { uid: "u", eventName: "" },
    { uid: "u", eventName: "x".repeat(65) },
    { ...signUp, method: "x".repeat(1025) },
    { ...signUp, unused: "x".repeat(1025) },
    { uid: "u", eventName: "purchase", tx_id: "t", items: [{ item_id: "i", brand: "x".repeat(1025) }] },
    { uid: "u", eventName: "begin_checkout", items: Array.from({ length: 101 }, () => ({ item_id: "i" })) },
    [],
    null,
    "text",
    "",
    "{",
  ];
  for (const body of bodies) expect(await sent(service, body), JSON.stringify(body)).toMatchObject(rejected);
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
