import { expect, test } from "vitest";
import { NotSentError } from "../../src/api/errors.ts";
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
    expect(text).toContain("observed recorded");
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
    ...context,
    sandbox: {
      events: (query: unknown) => Promise.reject(looks.push(query) && new DOMException("gone", "AbortError")),
    },
  };
  const live = await answerOf(trackEvent, { uid: "u", eventName: "app_open" }, { ...closed, environment: "live" });
  expect(live.structured).toMatchObject({ status: "succeeded" });
  expect(looks).toEqual([]);
  const givenUp = { ...closed, signal: AbortSignal.abort() };
  const stopped = await answerOf(trackEvent, { uid: "u", eventName: "app_open" }, givenUp);
  expect(stopped.structured).toMatchObject({ counts: { unattempted: 1 } });
});

test("a sandbox that cannot be looked at takes nothing from the answer", async () => {
  const { context } = await eventTools();
  const sandbox = { events: () => Promise.reject(new NotSentError({ operation: "sandboxEvents", reason: "refused" })) };
  const { structured } = await answerOf(trackEvent, { uid: "u", eventName: "app_open" }, { ...context, sandbox });
  expect(structured).toMatchObject({ status: "succeeded", verdicts: [{ predicted: "recorded" }] });
  expect(JSON.stringify(structured)).not.toContain("observed");
});
