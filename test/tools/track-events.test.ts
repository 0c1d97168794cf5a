import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import * as z from "zod";
import { tokensOf } from "../../src/answers/budget.ts";
import { getRun } from "../../src/tools/get-run.ts";
import { inspectEvents } from "../../src/tools/inspect-events.ts";
import { trackEvent } from "../../src/tools/track-event.ts";
import { trackEvents } from "../../src/tools/track-events.ts";
import { answerOf, eventTools } from "../support/event-tools.ts";

const click = (uid: string, element_id = "b") => ({ uid, eventName: "click", element_id });

test("sends what counts, in the order of each uid, and groups what does not", async () => {
  const { context, sandbox } = await eventTools();
  const events: Record<string, unknown>[] = Array.from({ length: 1000 }, (_, index) =>
    click(`user-${index % 7}`, `e-${index}`),
  );
  for (let index = 0; index < 300; index += 1) events.push({ uid: "u", eventName: "purchase", order_id: `o-${index}` });
  events.push({ uid: "u", eventName: "Click", element_id: "b" });
  const { structured, text, isError } = await answerOf(trackEvents, { events }, context);
  expect(isError).toBe(false);
  expect(structured).toMatchObject({
    environment: "sandbox",
    status: "partial",
    counts: { items: 1301, succeeded: 1000, failed: 301, notApplied: 0, unknown: 0, pending: 0 },
    requests: { sent: 1000, resent: 0 },
    failures: [
      { count: 300, errorCode: "EVENT_IGNORED", remedy: expect.stringContaining('Rename "order_id" to "tx_id"') },
      { count: 1, errorCode: "EVENT_IGNORED", ref: "Click", indexes: [1300] },
    ],
  });
  expect(tokensOf(JSON.stringify(structured)) + tokensOf(text)).toBeLessThan(2500);
  const arrived = sandbox.events().filter(({ uid }) => uid === "user-3");
  expect(arrived.map(({ text: body }) => JSON.parse(body).element_id)).toEqual(
    Array.from({ length: 143 }, (_, place) => `e-${place * 7 + 3}`),
  );
});

const oddPurchase = {
  ...{ uid: "d", eventName: "purchase", tx_id: 5, c1: "X", c2: 3, c3: 1, c4: 1, platform: "iOS", currency: "dollar" },
  items: [
    { item_id: "a", price: "x", quantity: "y", q1: 1 },
    { item_id: 6, price: "z" },
  ],
};

test("all findings about an event are shown, or their number", async () => {
  const { context, post } = await eventTools();
  const one = await answerOf(trackEvents, { events: [oddPurchase], dryRun: true }, context);
  for (const path of ["tx_id", "items[1].price", "items[0].q1", "c1", "c4", "platform", "currency"]) {
    expect(one.text).toContain(`${path} (`);
  }
  expect(one.text).not.toContain("more finding");
  await post(oddPurchase);
  expect((await answerOf(inspectEvents, {}, context)).text).toMatch(/at "c4" .*at "platform" .*at "currency" /);
  const odd = Array.from({ length: 9 }, (_, at) => ({ ...oddPurchase, [`d${at}`]: 1 }));
  const { text } = await answerOf(trackEvents, { events: odd, dryRun: true }, context);
  expect(text).toContain("tx_id (");
  expect(text).toContain(" | 12 more findings (a dry run of the event alone shows up to 20)");
  const fields = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`x${at}`, 1]));
  const many = await answerOf(trackEvent, { ...click("u"), extra: fields, dryRun: true }, context);
  expect(many.text).toContain(" | 10 more findings (");
});

test("the uids of failed events end where there are no others, or say how many events they are of", async () => {
  const { context } = await eventTools();
  const lost = (uid: string) => ({ uid, eventName: "click" });
  const few = await answerOf(trackEvents, { events: [lost("h1"), lost("h1"), lost("h2")], dryRun: true }, context);
  expect(few.text).toContain('uid "h1", "h2": ');
  const events = Array.from({ length: 6 }, () => lost("y"));
  const many = await answerOf(trackEvents, { events, dryRun: true }, context);
  expect(many.text).toContain('uids of the first 5: "y": ');
  expect(few.text).not.toContain("…");
});

test("purchases with the tx_id of an earlier one are named by their number", async () => {
  const { context } = await eventTools();
  const buy = (tx_id: string) => ({ uid: "u", eventName: "purchase", tx_id, items: [{ item_id: "i" }] });
  const events = [buy("a"), buy("b"), buy("a"), buy("b"), click("u")];
  const words = "2 purchases (items 3-4) have the tx_id of an earlier purchase in this call: each counts";
  for (const dryRun of [true, false]) {
    expect((await answerOf(trackEvents, { events, dryRun }, context)).text).toContain(words);
  }
  const failing = [buy("c"), { ...buy("c"), items: [{ x: "a" }] }];
  for (const dryRun of [true, false]) {
    expect((await answerOf(trackEvents, { events: failing, dryRun }, context)).text).not.toContain("has the tx_id");
  }
  const many = [buy("x"), click("u"), ...Array.from({ length: 7 }, () => buy("x"))];
  const { text } = await answerOf(trackEvents, { events: many, dryRun: true }, context);
  expect(text).toContain("7 purchases (items 3-7, …) have the tx_id of an earlier purchase");
});

test("a dry run says that nothing was sent, and how the same events are sent", async () => {
  const { context } = await eventTools();
  const stepsOf = async (...events: object[]) => {
    const { structured, text } = await answerOf(trackEvents, { events, dryRun: true }, context);
    expect(text).toMatch(/^Dry run; nothing was sent\. /);
    return structured.nextSteps;
  };
  const bad = { uid: "u", eventName: "Click" };
  expect(await stepsOf(click("a"))).toEqual(["the same call without dryRun sends 1 event"]);
  expect(await stepsOf({ uid: "u", eventName: "nope" })).toEqual([
    "fix what would fail, then make the same call without dryRun",
  ]);
  const fix = 'fix what would fail ("autocorrect": true corrects misspelt names)';
  expect(await stepsOf(bad)).toEqual([`${fix}, then make the same call without dryRun`]);
  expect(await stepsOf(click("a"), bad, click("b"))).toEqual([
    `${fix}. The same call without dryRun sends only the other 2 events`,
  ]);
  const odd = { uid: "u", eventName: "add_to_cart", item_id: "a", price: "5 KRW", quantity: 1 };
  expect(await stepsOf(click("a"), odd)).toEqual([
    "the same call without dryRun sends 2 events, 1 with an uncertain result",
  ]);
  const all = Array.from({ length: 21 }, () => bad);
  expect(await stepsOf(...all)).toEqual([
    `${fix}, then make the same call without dryRun`,
    expect.stringMatching(
      /^all 21 events that would fail, with their input: get_run \{"runId":"\w+","outcome":"failed"/,
    ),
  ]);
  const view = { uid: "u", eventName: "veiw_item" };
  const events = [{ ...view, item_id: "a" }, { ...view, item_id: "b" }, view];
  const corrected = await answerOf(trackEvents, { events, dryRun: true, autocorrect: true }, context);
  expect(corrected.text).toContain(
    "Corrected: eventName veiw_item → view_item (2 events, not counting failed ones, first item 1).",
  );
  const { text } = await answerOf(trackEvent, { ...bad, dryRun: true }, context);
  expect(text).toMatch(/^Dry run; nothing was sent or stored\. /);
  expect(text).toContain("Next: fix what would fail, then make the same call without dryRun");
});

test("each of many reasons says what is wrong, however short the answer has to be", async () => {
  const { context } = await eventTools();
  const names = [
    ...["Sign_up", "Push_clicks", "Page_view", "Click", "View_item", "Add_to_cart", "Begin_checkout", "Purchase"],
  ];
  const required = ["sign_up", "push_clicks", "page_view", "click", "view_item", "purchase", "view_content"];
  const long = ["uid", "platform", "page_id", "page_url", "page_category", "method", "brand", "item_name"];
  const events = [
    ...[...names, ...required].map((eventName, place) => ({ uid: `user-${"u".repeat(60)}-${place}`, eventName })),
    ...long.map((field) => ({ uid: "u", eventName: "page_view", page_id: "p", [field]: "x".repeat(1025) })),
  ];
  const { text } = await answerOf(trackEvents, { events }, context);
  for (const { eventName } of events.slice(0, names.length)) expect(text).toContain(`"${eventName}" is not`);
  expect(text).not.toMatch(/: \. /);
});

test("a missing field is one cause, with each way to fix it and its events", async () => {
  const { context } = await eventTools();
  const purchase = { uid: "u", eventName: "purchase" };
  const [renamed, other] = [
    { ...purchase, order_id: "o" },
    { ...purchase, transactionId: "t" },
  ];
  const events = [renamed, other, purchase, renamed, { uid: "u", eventName: "click" }];
  const { structured, text } = await answerOf(trackEvents, { events }, context);
  expect(structured.failures).toMatchObject([
    {
      count: 4,
      detail: { rule: "requiredMissing tx_id" },
      remedy:
        '2 items (1, 4): Rename "order_id" to "tx_id". item 2: Rename "transactionId" to "tx_id". item 3: Add "tx_id".',
    },
    { count: 1, detail: { rule: "requiredMissing element_id" } },
  ]);
  expect(text).toContain("4 items (1-4)");
});

test("all missing fields of an event are named at once", async () => {
  const { context } = await eventTools();
  const events = [
    { uid: "u", eventName: "add_to_cart" },
    { uid: "u", eventName: "add_to_cart", item_id: "i" },
  ];
  const { structured } = await answerOf(trackEvents, { events }, context);
  const [all, rest] = [
    { count: 1, remedy: 'Add "item_id"; add "price"; add "quantity".' },
    { count: 1, remedy: 'Add "price"; add "quantity".' },
  ];
  expect(structured.failures).toMatchObject([all, rest]);
});

test("autocorrect says of each event that it could not correct why", async () => {
  const { context } = await eventTools();
  const events = [
    { uid: "u", eventName: "product_view", item_id: "i", price: 1 },
    { uid: "u", eventName: "checkout_step2" },
    { uid: "u", eventName: "zebra" },
    { uid: "u", eventName: "add_to_cart", item_id: "i", amount: 1 },
    { uid: "u", eventName: "sign_up" },
    { uid: "u", eventName: "purchase", tx_id: null },
    { uid: "u", eventName: "purchase", tx_id: "t", items: [{ quantity: 1 }] },
    { uid: "u", eventName: "click", element_id: "e", elementid: "f" },
  ];
  const why = ({ structured }: Awaited<ReturnType<typeof answerOf>>) =>
    z
      .array(z.looseObject({ indexes: z.array(z.number()), remedy: z.string() }))
      .parse(structured.failures)
      .map(({ indexes, remedy }) => [indexes[0], remedy.replace(/^.*Autocorrect cannot fix this: /, "")])
      .sort(([one], [other]) => Number(one) - Number(other));
  const reasons = [
    [0, "it corrects spelling, and this is another word."],
    [1, "no supported name is similar."],
    [3, "it is not clear which field is meant."],
    [4, "no field has a similar name."],
    [5, "it corrects names, not values."],
    [6, "no field has a similar name."],
  ];
  const dry = await answerOf(trackEvents, { events, autocorrect: true, dryRun: true }, context);
  expect(why(dry)).toEqual(reasons);
  const sent = await answerOf(trackEvents, { events, autocorrect: true }, context);
  expect(why(sent)).toEqual(reasons);
  expect(sent.text).toContain("Autocorrect did not rename unknown parameters");
  // The first call has autocorrected, so its answer does not advise it.
  expect(sent.text).not.toContain('"autocorrect": true');
  expect((await answerOf(trackEvents, { events }, context)).text).not.toContain("Autocorrect");
});

test("autocorrect renames a misspelt field of the event name, too", async () => {
  const { context } = await eventTools();
  const events = [
    { uid: "u", event_name: "sign_up", method: "mail" },
    { user_id: "u", event: "pageview", pageId: "home" },
    { uid: "u", event: { eventName: "app_open" } },
  ];
  const { structured, text } = await answerOf(trackEvents, { events, autocorrect: true, dryRun: true }, context);
  expect(structured.counts).toMatchObject({ items: 3, failed: 1 });
  expect(text).toContain("event_name → eventName (item 1)");
  expect(text).toContain("event → eventName (item 2)");
});

test("dryRun sends nothing", async () => {
  const { context, sandbox } = await eventTools();
  const { structured } = await answerOf(
    trackEvents,
    { events: [click("a"), { uid: "a", eventName: "sign_up" }], dryRun: true },
    context,
  );
  expect(structured).toMatchObject({ status: "planned", counts: { items: 2, pending: 1, failed: 1 } });
  const many = Array.from({ length: 1001 }, () => click("a"));
  expect((await answerOf(trackEvents, { events: many, dryRun: true }, context)).text).toContain("1,001 events (items");
  expect(sandbox.events()).toEqual([]);
});

test("what takes longer than a call goes on, and the same call meanwhile is the same run", async () => {
  const { context, sandbox, hold } = await eventTools({ waitMs: 30 });
  const release = await hold();
  const events = Array.from({ length: 40 }, () => click("u"));
  const { structured } = await answerOf(trackEvents, { events: events.slice(0, 4) }, context);
  expect(structured).toMatchObject({ status: "running", nextSteps: [expect.stringContaining("get_run")] });
  const again = await answerOf(trackEvents, { events: events.slice(0, 4) }, context);
  expect(again.structured.runId).toBe(structured.runId);
  await release();
  const run = await context.runs.find(String(structured.runId));
  await run?.rest;
  expect(run?.status()).toBe("succeeded");
  expect(sandbox.events()).toHaveLength(4);
});

test("events that may be recorded twice are named", async () => {
  const { context, control } = await eventTools();
  await control("/faults", { faults: [{ on: "any", kind: "reset", applied: true, nth: 2 }] });
  const events = ["a", "b", "c"].map((uid) => click("u", uid));
  const sent = await answerOf(trackEvents, { events, onUnknown: "resend" }, context);
  expect(sent.text).toContain("1 event may be recorded twice (item 2): an answer was lost, and it was sent again");
  const shown = await answerOf(getRun, { runId: String(sent.structured.runId) }, context);
  expect(shown.text).toContain("1 event may be recorded twice (item 2)");
});

test("a lost answer is unknown, or with resend sent again and perhaps recorded twice", async () => {
  const { context, control, sandbox } = await eventTools();
  await control("/faults", { faults: [{ on: "any", kind: "reset", applied: true, nth: 1 }] });
  const { structured, isError } = await answerOf(trackEvents, { events: [click("a")] }, context);
  expect(isError).toBe(true);
  expect(structured).toMatchObject({ status: "unknown", failures: [{ errorCode: "EVENT_ANSWER_LOST" }] });
  await control("/faults", { faults: [{ on: "any", kind: "reset", applied: true, nth: 1 }] });
  const resent = await answerOf(trackEvents, { events: [click("b")], onUnknown: "resend" }, context);
  expect(resent.structured).toMatchObject({
    status: "succeeded",
    notes: expect.arrayContaining([expect.stringContaining("twice")]),
  });
  expect(sandbox.events()).toHaveLength(3);
});

test("an event that is too large for the service is to be made smaller", async () => {
  const { context, control } = await eventTools();
  await control("/faults", { faults: [{ on: "any", kind: "status", status: 413, applied: false, nth: 1 }] });
  const { text } = await answerOf(trackEvents, { events: [click("a")] }, context);
  expect(text).toContain(
    `(status 413): the event was not recorded. Shorten the texts of the event, or send fewer entries of "items".`,
  );
});

test("the user's identifier is kept only as its hash once an event is settled", async () => {
  const { context, store } = await eventTools();
  const { structured } = await answerOf(trackEvents, { events: [click("secret-user")] }, context);
  const stored = await store.read(String(structured.runId));
  const kept: unknown[] = [stored?.header];
  for await (const entry of stored?.entries ?? []) kept.push(entry);
  expect(JSON.stringify(kept)).not.toContain("secret-user");
  expect(JSON.stringify(kept)).toContain(createHash("sha256").update("secret-user").digest("hex"));
});

test("an event that JSON cannot carry is named", async () => {
  const { context } = await eventTools();
  const events = [click("a"), { ...click("a"), n: Number.POSITIVE_INFINITY }];
  await expect(answerOf(trackEvents, { events }, context)).rejects.toThrow("event 2 holds a number");
});

const cart = (index: number, price: unknown) => ({
  ...{ uid: `u-${index}`, eventName: "add_to_cart", item_id: "i" },
  ...{ price, quantity: 1 },
});

test("which events are uncertain can be found out: by kind with their places, and one by one", async () => {
  const { context } = await eventTools();
  const events: Record<string, unknown>[] = Array.from({ length: 60 }, (_, index) =>
    cart(index, index % 2 === 0 ? "12.50" : 12.5),
  );
  events[7] = { uid: "u-7", eventName: "sign_up", method: "" };
  const { structured, text } = await answerOf(trackEvents, { events }, context);
  expect(structured).toMatchObject({
    status: "succeeded",
    verdicts: [
      { predicted: "uncertain", count: 30, indexes: Array.from({ length: 10 }, (_, place) => 2 * place) },
      { predicted: "uncertain", count: 1, index: 7, indexes: [7], findings: [{ rule: "requiredEmpty" }] },
      { predicted: "recorded", count: 29, findings: [] },
    ],
  });
  expect(structured).not.toHaveProperty("verdictsOmitted");
  expect(text).toContain("30 events (items 1, 3, 5,");
  const { runId } = structured;
  const page = await answerOf(getRun, { runId: String(runId), limit: 9 }, context);
  const { results } = z.object({ results: z.array(z.looseObject({ index: z.number() })) }).parse(page.structured);
  expect(results[0]).toMatchObject({ outcome: "succeeded", predicted: "uncertain", rule: "wrongType price" });
  expect(results[7]).toMatchObject({ outcome: "succeeded", predicted: "uncertain", rule: "requiredEmpty method" });
  for (const plain of [results[1], results[3]]) expect(plain).not.toHaveProperty("predicted");
  expect(page.text).toContain("expected uncertain (wrongType price)");
});

test("of more kinds of verdicts than an answer shows it says how many are left out", async () => {
  const { context } = await eventTools();
  const events = Array.from({ length: 400 }, (_, index) => ({
    ...click(`u-${index}`),
    [`strange_${index}`]: { long: "x".repeat(1025) },
  }));
  const { structured, text } = await answerOf(trackEvents, { events, dryRun: true }, context);
  const { verdicts, verdictsOmitted } = z
    .object({ verdicts: z.array(z.looseObject({ count: z.number() })), verdictsOmitted: z.number() })
    .parse(structured);
  expect(verdicts.length).toBeGreaterThan(0);
  expect(verdicts.length + verdictsOmitted).toBe(201);
  // There are too many different fields to list each, so they are grouped by their rule.
  expect(verdicts[0]).toMatchObject({ predicted: "uncertain", count: 200, index: 200 });
  expect(text).toContain(`${verdictsOmitted} more groups`);
  expect(tokensOf(JSON.stringify(structured)) + tokensOf(text)).toBeLessThan(2500);
});

test("the same call after its run has ended sends new events, and says so", async () => {
  const { context, control, sandbox } = await eventTools();
  await control("/faults", { faults: [{ on: "any", kind: "reset", applied: false, times: 1000 }] });
  const call = { events: [{ uid: "a", eventName: "Click" }, click("b")], onUnknown: "resend" as const };
  const first = await answerOf(trackEvents, call, context);
  expect(first.structured).toMatchObject({ counts: { failed: 1, unknown: 1 } });
  await fetch(`${sandbox.url}/_sandbox/faults`, { method: "DELETE" });
  const second = await answerOf(trackEvents, call, context);
  // Only events without an answer are sent again.
  expect(second.structured).toMatchObject({
    runId: first.structured.runId,
    status: "partial",
    counts: { succeeded: 1 },
  });
  const sent = sandbox.events().length;
  expect(sent).toBe(1);
  const third = await answerOf(trackEvents, call, context);
  expect(third.structured.runId).not.toBe(second.structured.runId);
  expect(sandbox.events()).toHaveLength(sent + 1);
  expect(third.text).toContain("ended partial");
  expect(third.text).not.toContain("resume_run");
});

test("the same call after a run with nothing left to send says that it counts only its own events", async () => {
  const { context, sandbox } = await eventTools();
  const call = { events: [{ uid: "a", eventName: "Click" }, click("b")] };
  const first = await answerOf(trackEvents, call, context);
  expect(first.text).not.toContain("was made before");
  const second = await answerOf(trackEvents, call, context);
  expect(second.structured).toMatchObject({ counts: { items: 2, succeeded: 1, failed: 1 } });
  expect(second.text).toContain(
    `he same call was made before and ended partial (run ${first.structured.runId}); ` +
      "this is a new run of all its events, and the counts are of this run alone.",
  );
  expect(sandbox.events()).toHaveLength(2);
});

test("a repeated call sends nothing while answers of the first are lost, and with resend only what has no answer", async () => {
  const { context, control, sandbox } = await eventTools();
  await control("/faults", { faults: [{ on: "any", nth: 2, kind: "reset", applied: true }] });
  const events = ["a", "b", "c", "d"].map((uid) => click(uid));
  const first = await answerOf(trackEvents, { events }, context);
  expect(first.structured).toMatchObject({ status: "partial", counts: { succeeded: 3, unknown: 1 } });
  const { runId } = first.structured;
  const second = await answerOf(trackEvents, { events }, context);
  expect(second.structured).toMatchObject({ runId, counts: { succeeded: 3, unknown: 1 }, requests: { sent: 4 } });
  expect(second.text).toMatch(/nothing was sent now.*onUnknown "resend" sends those events again/);
  expect(sandbox.events()).toHaveLength(4);
  const resent = await answerOf(trackEvents, { events, onUnknown: "resend" }, context);
  expect(resent.structured).toMatchObject({ runId, status: "succeeded", requests: { sent: 5 } });
  expect(sandbox.events()).toHaveLength(5);
  const later = await answerOf(trackEvents, { events }, context);
  expect(later.structured.runId).not.toBe(runId);
  expect(sandbox.events()).toHaveLength(9);
});
