import { expect, test } from "vitest";
import { NotSentError } from "../../src/api/errors.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { cancelRun } from "../../src/tools/cancel-run.ts";
import { getRun } from "../../src/tools/get-run.ts";
import { resumeRun } from "../../src/tools/resume-run.ts";
import { trackEvent } from "../../src/tools/track-event.ts";
import { answerOf, eventTools } from "../support/event-tools.ts";

test("in sandbox mode the verdict says what the sandbox made of the event", async () => {
  const { context, post } = await eventTools();
  await post({ uid: "u", eventName: "sign_up" });
  for (const [given, predicted] of [
    [{ eventName: "sign_up", method: "mail" }, "recorded"],
    [{ eventName: "add_to_cart", item_id: "i", price: "12.50", quantity: 1 }, "uncertain"],
  ] as const) {
    const { structured, text } = await answerOf(trackEvent, { uid: "u", ...given }, context);
    expect(structured).toMatchObject({ status: "succeeded", verdicts: [{ predicted, observed: "recorded" }] });
    expect(text).toContain("actual recorded");
  }
});

test("what is not sent is not observed, and neither is anything where nobody can look", async () => {
  const { context, sandbox } = await eventTools();
  const refused = await answerOf(trackEvent, { uid: "u", eventName: "sign_up" }, context);
  expect(refused.structured).toMatchObject({ status: "failed", verdicts: [{ predicted: "ignored" }] });
  expect(JSON.stringify(refused.structured)).not.toContain("observed");
  expect(sandbox.events()).toEqual([]);
  const looks: unknown[] = [];
  const closed = {
    sandbox: {
      events: (query: unknown) => Promise.reject(looks.push(query) && new DOMException("gone", "AbortError")),
    },
  };
  const live = await eventTools({ ...closed, environment: "live" });
  const sent = await answerOf(trackEvent, { uid: "u", eventName: "app_open" }, live.context);
  expect(sent.structured).toMatchObject({ status: "succeeded" });
  expect(looks).toEqual([]);
  const givenUp = { ...context, signal: AbortSignal.abort() };
  const stopped = await answerOf(trackEvent, { uid: "u", eventName: "app_open" }, givenUp);
  expect(stopped.structured).toMatchObject({ counts: { notApplied: 1 } });
});

test("a sandbox that cannot be looked at takes nothing from the answer", async () => {
  const sandbox = { events: () => Promise.reject(new NotSentError({ operation: "sandboxEvents", reason: "refused" })) };
  const { context } = await eventTools({ sandbox });
  const { structured } = await answerOf(trackEvent, { uid: "u", eventName: "app_open" }, context);
  expect(structured).toMatchObject({ status: "succeeded", verdicts: [{ predicted: "recorded" }] });
  expect(JSON.stringify(structured)).not.toContain("observed");
});

const home = { uid: "u", eventName: "app_open" };

async function fault(control: (path: string, body: unknown) => Promise<void>, one: object): Promise<void> {
  await control("/faults", { faults: [{ on: "any", nth: 1, ...one }] });
}

test("is a run: it is kept, found, and told like any other write", async () => {
  const { context } = await eventTools();
  const { structured } = await answerOf(trackEvent, home, context);
  expect(structured).toMatchObject({
    ...{ tool: "track_event", status: "succeeded", counts: { items: 1, succeeded: 1, pending: 0 } },
    ...{ requests: { sent: 1 }, results: [{ index: 0, outcome: "succeeded", name: "app_open" }] },
  });
  const runId = String(structured.runId);
  const found = await answerOf(getRun, { runId }, context);
  expect(found.structured).toMatchObject({ runId, tool: "track_event", status: "succeeded" });
  const resumed = await answerOf(resumeRun, { runId }, context);
  expect(resumed.structured).toMatchObject({ runId, status: "succeeded", requests: { sent: 1 } });
  const listed = await answerOf(getRun, {}, context);
  expect(listed.structured).toMatchObject({ runs: [{ runId, tool: "track_event" }] });
});

test("answers within the wait; an equal call meanwhile sends nothing and waits for the same run", async () => {
  const { context, hold, sandbox } = await eventTools({ waitMs: 50 });
  const release = await hold();
  const first = await answerOf(trackEvent, home, context);
  expect(first.structured).toMatchObject({ status: "running", counts: { pending: 1 } });
  const { runId } = first.structured;
  const second = await answerOf(trackEvent, { ...home, onUnknown: "resend" }, context);
  expect(second.structured).toMatchObject({ runId, status: "running" });
  expect(second.text).toContain("nothing was sent");
  const cancelled = await answerOf(cancelRun, { runId: String(runId) }, context);
  expect(cancelled.structured).toMatchObject({ runId });
  await release();
  const run = await context.runs.find(String(runId));
  await run?.rest;
  expect(sandbox.events()).toHaveLength(1);
  // The run has ended, so the same call means another event.
  const third = await answerOf(trackEvent, home, context);
  expect(third.structured.runId).not.toBe(runId);
  await (await context.runs.find(String(third.structured.runId)))?.rest;
  expect(sandbox.events()).toHaveLength(2);
});

test("two equal calls at one instant are one run", async () => {
  const { context, sandbox } = await eventTools();
  const [one, other] = await Promise.all([answerOf(trackEvent, home, context), answerOf(trackEvent, home, context)]);
  expect(one.structured.runId).toBe(other.structured.runId);
  expect([one.text, other.text].filter((text) => text.includes("nothing was sent"))).toHaveLength(1);
  expect(sandbox.events()).toHaveLength(1);
});

test("a lost answer: an equal call says what the first came to, and only resend sends it again", async () => {
  const { context, control, sandbox } = await eventTools();
  await fault(control, { kind: "reset", applied: true });
  const first = await answerOf(trackEvent, home, context);
  expect(first.structured).toMatchObject({ status: "unknown", failures: [{ errorCode: "EVENT_ANSWER_LOST" }] });
  expect(first.text).toContain('onUnknown "resend"');
  const { runId } = first.structured;
  const second = await answerOf(trackEvent, home, context);
  expect(second.structured).toMatchObject({ runId, status: "unknown", requests: { sent: 1 } });
  expect(second.text).toMatch(/nothing was sent.*onUnknown "resend" sends it again/);
  expect(sandbox.events()).toHaveLength(1);
  const other = await answerOf(trackEvent, { ...home, uid: "somebody else" }, context);
  expect(other.structured).toMatchObject({ status: "succeeded" });
  const resent = await answerOf(trackEvent, { ...home, onUnknown: "resend" }, context);
  expect(resent.structured).toMatchObject({
    ...{ runId, status: "succeeded", counts: { succeeded: 1, unknown: 0 }, requests: { sent: 2, resent: 1 } },
    notes: expect.arrayContaining([expect.stringContaining("twice")]),
  });
  expect(sandbox.events()).toHaveLength(3);
  const later = await answerOf(trackEvent, home, context);
  expect(later.structured.runId).not.toBe(runId);
  expect(later.structured).toMatchObject({ status: "succeeded" });
});

test("what is unknown for ten minutes stands in the way of no equal call", async () => {
  let later = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + later };
  const { context, control } = await eventTools({ clock });
  await fault(control, { kind: "reset", applied: false });
  const { runId } = (await answerOf(trackEvent, home, context)).structured;
  later = 590_000;
  const soon = await answerOf(trackEvent, home, { ...context, arrivedAt: clock.now() });
  expect(soon.structured).toMatchObject({ runId, status: "unknown" });
  later = 601_000;
  const last = await answerOf(trackEvent, home, { ...context, arrivedAt: clock.now() });
  expect(last.structured.runId).not.toBe(runId);
  expect(last.structured).toMatchObject({ status: "succeeded" });
});

test("an event that lacks a parameter is answered with what empty arguments mean", async () => {
  const { context } = await eventTools();
  const note = "Here, an argument that is null or empty counts as not given; track_events sends such a value as it is.";
  const view = { uid: "u", eventName: "page_view", page_id: "p" };
  for (const dryRun of [true, false]) {
    const lacking = await answerOf(trackEvent, { uid: "u", eventName: "page_view", dryRun }, context);
    expect(lacking.text).toContain(note);
    const whole = await answerOf(trackEvent, { ...view, dryRun }, context);
    expect(whole.text).not.toContain("counts as not given");
  }
});
