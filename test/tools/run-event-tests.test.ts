import { describe, expect, test } from "vitest";
import * as z from "zod";
import { generateEventTests } from "../../src/events/suites/generate.ts";
import { SuiteStore } from "../../src/events/suites/suite-store.ts";
import { ShareFullError } from "../../src/runs/backend.ts";
import { StoreUnavailableError } from "../../src/runs/store.ts";
import { grant } from "../../src/tools/decide-run.ts";
import type { ToolContext } from "../../src/tools/define-tool.ts";
import { inspectEvents } from "../../src/tools/inspect-events.ts";
import { runEventTestsTool } from "../../src/tools/run-event-tests.ts";
import { decide } from "../../src/tools/write/decide.ts";
import { answerOf, eventTools, outcomeOf } from "../support/event-tools.ts";
import { memoryBackend } from "../support/memory-store.ts";

const suite = generateEventTests({ eventNames: ["purchase"] });
const report = z.looseObject({
  suiteId: z.string(),
  target: z.string(),
  cases: z.number(),
  matched: z.number(),
  mismatched: z.number(),
  unobservable: z.number(),
  mismatches: z.array(z.looseObject({ id: z.string() })),
  resourceUri: z.string(),
});
const asked = z.object({ status: z.literal("needs_confirmation"), confirmation: z.object({ token: z.string() }) });

const live = (more: Partial<ToolContext> = {}) => eventTools({ environment: "live", ...more });

describe("against the sandbox", () => {
  test("every case of the whole suite matches", async () => {
    const { context } = await eventTools();
    const answer = await answerOf(runEventTestsTool, { suite: generateEventTests() }, context);
    const { cases, matched, mismatches, resourceUri, suiteId } = report.parse(answer.structured);
    expect({ matched, mismatches }).toEqual({ matched: cases, mismatches: [] });
    expect(resourceUri).toBe(`targeting://suites/${suiteId}`);
    expect((await context.suites.find("local", suiteId))?.report?.cases).toBe(cases);
    expect(answer.structured).not.toHaveProperty("asked");
    expect(answer.text).toMatch(
      /By expected verdict: .*ignored \d+ as expected.* By how the verdict is known: documented \d+/,
    );
    expect(answer.text).toMatch(
      /\d+ cases that ended as expected accept any result, because the documents do not state it/,
    );
  });

  test("a wrong expectation is a mismatch, shown with what was observed", async () => {
    const { context } = await eventTools();
    const wrong = { ...suite, cases: suite.cases.map((one) => ({ ...one, expected: "recorded" as const })) };
    const answer = await answerOf(runEventTestsTool, { suite: wrong }, context);
    const { mismatched, mismatches } = report.parse(answer.structured);
    expect(mismatched).toBeGreaterThan(0);
    expect(mismatches).toContainEqual(
      expect.objectContaining({
        id: "purchase/missing/tx_id",
        expected: "recorded",
        observed: "ignored",
        finding: '"purchase" needs "tx_id" (documented, event-tracking-api 7); add "tx_id"',
      }),
    );
    expect(answer.text).toContain('observed ignored: "purchase" needs "tx_id" (documented, event-tracking-api 7); add');
    expect(answer.isError).toBe(false);
  });

  test("what is not run in time is unobservable, never passed", async () => {
    const { context, hold } = await eventTools({ waitMs: 20 });
    await hold();
    const answer = await answerOf(runEventTestsTool, { suite }, context);
    const { cases, matched, mismatched, unobservable } = report.parse(answer.structured);
    expect({ sum: matched + mismatched + unobservable, mismatched }).toEqual({ sum: cases, mismatched: 0 });
    expect(answer.structured.notRun).toBeGreaterThan(0);
  });

  test("cases whose answer is lost are named, and the next step runs them again", async () => {
    const { context, control } = await eventTools();
    await control("/faults", { faults: [{ on: "trackEvent", kind: "reset", applied: true, times: 2 }] });
    const answer = await answerOf(runEventTestsTool, { suite }, context);
    const { cases, matched, suiteId } = report.parse(answer.structured);
    expect(matched).toBe(cases - 2);
    expect(answer.structured.unanswered).toHaveLength(2);
    expect(answer.text).toMatch(
      /Without a usable answer:\n.*\n("purchase\/.*: expected \w+; no answer came; the event may have been recorded\n){2}/,
    );
    expect(answer.text).toContain(
      `Next: run_event_tests {"suiteId":"${suiteId}","target":"sandbox"} runs all tests again`,
    );
  });

  test("the events of a sequence that are not as expected are named", async () => {
    const { context, control } = await eventTools();
    const uid = "event-tests-1";
    const [seen, unseen] = [
      { uid, eventName: "page_view", page_id: "p" },
      { uid, eventName: "page_view" },
    ];
    const own = { id: "a", title: "t", kind: "sequence", expected: "recorded", basis: "documented" };
    const sequence = { seed: 1, uid, cases: [{ ...own, events: [seen, unseen, seen, { uid, eventName: "nope" }] }] };
    const wrong = await answerOf(runEventTestsTool, { suite: sequence }, context);
    expect(wrong.text).toContain(
      'observed ignored (event 2 of the sequence; also event 4): "page_view" needs "page_id"',
    );
    await control("/faults", { faults: [{ on: "trackEvent", kind: "reset", applied: true, nth: 3 }] });
    const lost = { ...sequence, cases: [{ ...own, events: Array(5).fill(seen) }] };
    const { text } = await answerOf(runEventTestsTool, { suite: lost }, context);
    expect(text).toContain("no answer came; the event may have been recorded (event 3 of the sequence)");
  });

  test("the status of an answer that is not usable is shown", async () => {
    const { context, control } = await eventTools();
    const one = { ...suite, cases: suite.cases.slice(0, 1) };
    const textAt = async (status: number): Promise<string> => {
      await control("/faults", { faults: [{ on: "trackEvent", kind: "status", status, times: 1 }] });
      return (await answerOf(runEventTestsTool, { suite: one }, context)).text;
    };
    expect(await textAt(500)).toContain("; the service answered with status 500; the event may have been recorded");
    expect(await textAt(400)).toMatch(/; the service answered with status 400; the event was not recorded; it says "/);
  });

  test("when the service refuses all events, the cases that were sent before are reported", async () => {
    const { context, control } = await eventTools();
    await control("/faults", { faults: [{ on: "trackEvent", kind: "status", status: 403, nth: 20 }] });
    const { structured, text } = await answerOf(runEventTestsTool, { suite: generateEventTests() }, context);
    const { cases, matched, unobservable } = report.parse(structured);
    expect(matched).toBeGreaterThan(5);
    expect(matched + unobservable).toBe(cases);
    expect(text).toContain("the key is not allowed to send events; this ended the tests after other test events");
    expect(text).toContain("Next: Set EVENT_APP_KEY");
    expect(text).not.toContain("there was no time");
  });

  test("the answer and the coverage say that the test events are counted, and how to leave them out", async () => {
    const { context, post } = await eventTools();
    const { text } = await answerOf(runEventTestsTool, { suite }, context);
    const [, since = ""] = /inspect_events now counts these test events too; with "since":"([^"]+)"/.exec(text) ?? [];
    const coverage = { coverage: true };
    const all = await answerOf(inspectEvents, coverage, context);
    expect(all.text).toMatch(
      /^The counts include \d+ events of test runs \(uid "event-tests-…"\)\. To leave them out,/m,
    );
    await expect.poll(() => new Date().toISOString() > since).toBe(true);
    await post({ uid: "u", eventName: "app_open" });
    const own = await answerOf(inspectEvents, { ...coverage, since }, context);
    expect(own.text).toContain("1 of 13 events seen");
    expect(own.text).not.toContain("test runs");
  });

  test("what is not a suite", async () => {
    const { context } = await eventTools();
    const run = (given: object) => answerOf(runEventTestsTool, given, context);
    await expect(run({})).rejects.toThrow("exactly one of suite, suiteId and file");
    await expect(run({ suite, suiteId: "x" })).rejects.toThrow("exactly one of suite, suiteId and file");
    await expect(run({ suiteId: "x" })).rejects.toThrow("no suite with this ID");
    await expect(run({ suite: { seed: 1 } })).rejects.toThrow("does not have the form of a suite (uid:");
    const [one] = suite.cases;
    await expect(run({ suite: { ...suite, cases: [...suite.cases, one] } })).rejects.toThrow(
      `two cases of suite have the same id, "${one?.id}" (cases.0 and cases.${suite.cases.length})`,
    );
    await expect(run({ suite: { ...suite, cases: [] } })).rejects.toThrow("suite has no cases");
    const ownCase = { name: "a", kind: "minimal", expected: "recorded" };
    const own = run({ suite: { seed: 1, uid: "event-tests-1", cases: [ownCase] } });
    await expect(own).rejects.toThrow(/\(cases\.0\.id: .*cases\.0\.title: .*cases\.0\.basis: /);
  });
});

describe("against a live endpoint", () => {
  const configured = { suite, target: "configured" as const };

  test("target sandbox needs no yes", async () => {
    const { context } = await live({ readOnly: true });
    const { structured, text } = await answerOf(runEventTestsTool, { suite }, context);
    expect(structured).toMatchObject({ environment: "live", target: "sandbox", unobservable: 0 });
    // The sandbox that inspect_events reads is another one than that of the tests.
    expect(text).not.toContain("inspect_events now counts");
  });

  test("a client that cannot ask gets a token, which starts one run", async () => {
    const { context, sandbox } = await live();
    const first = asked.parse((await answerOf(runEventTestsTool, configured, context)).structured);
    expect(sandbox.events()).toHaveLength(0);
    const { token } = first.confirmation;
    const answer = report.parse((await answerOf(runEventTestsTool, { confirmation: token }, context)).structured);
    const sent = sandbox.events().length;
    expect(sent).toBeGreaterThan(0);
    expect(answer).toMatchObject({
      target: "configured",
      mismatched: 0,
      approval: { decision: "approved", channel: "token" },
    });
    expect(answer.matched).toBe(suite.cases.filter(({ expected }) => expected === "rejected").length);
    expect(answer.unobservable).toBe(answer.cases - answer.matched);
    const ofVerdict = (verdict: string) => suite.cases.filter(({ expected }) => expected === verdict).length;
    expect(answer.byVerdict).toEqual({
      recorded: { unobservable: ofVerdict("recorded") },
      ignored: { unobservable: ofVerdict("ignored") },
      rejected: { matched: ofVerdict("rejected") },
      uncertain: { unobservable: ofVerdict("uncertain") },
    });
    const again = report.parse((await answerOf(runEventTestsTool, { confirmation: token }, context)).structured);
    expect(again).toEqual(answer);
    expect(sandbox.events()).toHaveLength(sent);
  });

  test("a token is bound to its caller, its suite and its time", async () => {
    const { context } = await live();
    const { confirmation } = asked.parse((await answerOf(runEventTestsTool, configured, context)).structured);
    const use = (more: Partial<ToolContext>, given: object = {}) =>
      answerOf(runEventTestsTool, { confirmation: confirmation.token, ...given }, { ...context, ...more });
    await expect(use({ caller: "somebody else" })).rejects.toThrow("not a token that this server gave");
    await expect(use({}, { suite: generateEventTests({ seed: 9 }) })).rejects.toThrow("differ from the planned ones");
    const clock = { ...context.clock, now: () => Date.now() + 601_000 };
    await expect(use({ clock })).rejects.toThrow("expired");
    await expect(use({ readOnly: true })).rejects.toThrow("only reads");
  });

  test("the person is asked, and what they decline stays declined", async () => {
    const { context, sandbox } = await live({ canAsk: () => true });
    const outcome = await outcomeOf(runEventTestsTool, configured, context);
    if (!("ask" in outcome)) throw new Error("nobody was asked");
    const { token } = outcome.ask;
    const reply = (accepted: boolean) => ({ ...context, reply: { token, accepted } });
    for (const again of [reply(false), reply(true), context]) {
      expect((await answerOf(runEventTestsTool, configured, again)).structured).toMatchObject({
        status: "cancelled",
        approval: { decision: "declined", channel: "client" },
      });
    }
    expect(sandbox.events()).toHaveLength(0);
  });

  test("the person is asked, and one yes is one run", async () => {
    const { context, sandbox } = await live({ canAsk: () => true });
    const outcome = await outcomeOf(runEventTestsTool, configured, context);
    if (!("ask" in outcome)) throw new Error("nobody was asked");
    expect(outcome.ask.message).toContain("LIVE event API");
    const { token } = outcome.ask;
    const said = (accepted: boolean) =>
      answerOf(runEventTestsTool, configured, { ...context, reply: { token, accepted } });
    const agreed = await said(true);
    expect(agreed.structured).toMatchObject({ approval: { decision: "approved", channel: "client" } });
    expect(agreed.text).toContain("Approved in the client.");
    const sent = sandbox.events().length;
    await said(true);
    expect(sandbox.events()).toHaveLength(sent);
  });

  test.each([
    ["read-only mode", { readOnly: true, confirm: "off" }, "only reads"],
    ["strict", { confirm: "strict" }, "cannot ask"],
  ] as const)("%s refuses", async (_title, settings, words) => {
    const { context, sandbox } = await live(settings);
    await expect(answerOf(runEventTestsTool, configured, context)).rejects.toThrow(words);
    expect(sandbox.events()).toHaveLength(0);
  });

  const away = new StoreUnavailableError("the store cannot be reached; nothing was sent for this call", "Try again.");
  const full = new ShareFullError("Your share of the store is full. Nothing was sent", "Apply plans.");

  /** Starts tests whose suites cannot be stored any more once an event was sent. */
  async function failingStore(thrown: Error, more: Partial<ToolContext> = {}) {
    const texts = memoryBackend().suites;
    const unlessSent = async (store: () => Promise<void>): Promise<void> => {
      if (tools.sandbox.events().length > 0) throw thrown;
      await store();
    };
    const suites = new SuiteStore({
      ...texts,
      put: (...given) => unlessSent(() => texts.put(...given)),
      settle: (...given) => unlessSent(() => texts.settle(...given)),
    });
    const tools = await live({ ...more, suites });
    return tools;
  }

  test.each([
    ["cannot be reached", away],
    ["is full", full],
  ])("a store that %s once the tests are sent leaves their results in the answer", async (_title, thrown) => {
    for (const confirm of ["ask", "off"] as const) {
      const { context, sandbox } = await failingStore(thrown, { confirm });
      const first = await answerOf(runEventTestsTool, configured, context);
      const { token } = asked.safeParse(first.structured).data?.confirmation ?? {};
      const again = () => answerOf(runEventTestsTool, { confirmation: token }, context);
      const { structured, text } = token === undefined ? first : await again();
      const sent = sandbox.events().length;
      expect(sent).toBeGreaterThan(0);
      expect(report.parse(structured).cases).toBe(suite.cases.length);
      expect(structured).not.toHaveProperty("reportUri");
      expect(text).toContain("the report was not stored in time");
      expect(text).not.toMatch(/nothing was sent|the report on every case/i);
      if (token !== undefined) expect((await again()).structured).toEqual(structured);
      expect(sandbox.events()).toHaveLength(sent);
    }
  });

  test("tests approved on the page whose report cannot be stored are in the answer", async () => {
    const { context, sandbox } = await failingStore(away, { confirm: "strict" });
    const show = async ({ runId }: { readonly runId: string }): Promise<boolean> => {
      const person = { who: "ann", caller: "local" };
      const decision = { answer: "approved", channel: "page", person, saw: () => true } as const;
      expect(await decide(runId, decision, context, { grant })).toMatchObject({ is: "done" });
      return true;
    };
    const page = { isOffered: () => true, show };
    const { structured, text } = await answerOf(runEventTestsTool, configured, { ...context, page });
    expect(report.parse(structured).cases).toBe(suite.cases.length);
    expect(text).toContain("the report was not stored in time");
    expect(sandbox.events().length).toBeGreaterThan(0);
  });

  test("off asks nobody", async () => {
    const { context } = await live({ confirm: "off" });
    const { structured } = await answerOf(runEventTestsTool, configured, context);
    expect(structured).toMatchObject({ target: "configured", approval: { decision: "not_needed" } });
  });
});
