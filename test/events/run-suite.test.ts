import { describe, expect, it } from "vitest";
import { AmbiguousError, BusyError, RejectedError } from "../../src/api/errors.ts";
import type { EventAnswer, EventApi } from "../../src/api/events.ts";
import { generateEventTests } from "../../src/events/suites/generate.ts";
import { junitXml, type RunSuiteOptions, runSuite } from "../../src/events/suites/run-suite.ts";
import { keptAs } from "./reference-service.ts";
import { virtualClock } from "./virtual-clock.ts";

const operation = "trackEvent" as const;
const suite = generateEventTests({ eventNames: ["view_item", "add_to_cart", "begin_checkout", "purchase"], seed: 5 });
const one = generateEventTests({ eventNames: ["app_open"], kinds: ["minimal"] });

async function follow(body: string): Promise<EventAnswer> {
  return keptAs(JSON.parse(body)) === "rejected"
    ? { statusCode: 400, message: "!invalid" }
    : { statusCode: 200, message: "ok" };
}

const run = (api: EventApi["track"], options: Partial<RunSuiteOptions> = {}, cases = suite) =>
  runSuite(cases, { api: { track: api }, clock: virtualClock(), ...options });

describe("running a suite", () => {
  it("matches throughout against a sandbox that follows the document", async () => {
    const { results, ...counts } = await run(follow, { observe: async (event) => keptAs(event) });
    const cases = suite.cases.length;
    expect(counts).toEqual({ cases, matched: cases, mismatched: 0, unobservable: 0 });
    expect(results.map(({ id }) => id)).toEqual(suite.cases.map(({ id }) => id));
  });

  it("does not pass what a live service cannot show", async () => {
    const { results } = await run(follow);
    for (const { expected, status } of results)
      expect(status).toBe(expected === "rejected" ? "matched" : "unobservable");
  });

  it("finds where a service deviates", async () => {
    const { results } = await run(follow, {
      observe: async (event) => (event.eventName === "purchase" ? "ignored" : keptAs(event)),
    });
    const wrong = results.filter(({ status }) => status === "mismatched");
    expect(wrong).toContainEqual(
      expect.objectContaining({ id: "sequence/sale", expected: "recorded", observed: "ignored" }),
    );
    expect(wrong.every(({ id }) => id.startsWith("purchase/") || id === "sequence/sale")).toBe(true);
  });

  it("takes a refusal of what should be kept, and the reverse, for a mismatch on a live service too", async () => {
    const { results } = await run(async () => ({ statusCode: 422, message: "!invalid" }), {}, one);
    expect(results[0]).toMatchObject({ status: "mismatched", observed: "rejected" });
    const { mismatched } = await run(async () => ({ statusCode: 200, message: "ok" }));
    expect(mismatched).toBe(suite.cases.filter(({ expected }) => expected === "rejected").length);
  });

  it("waits where the service is busy, and gives up on it in the end", async () => {
    let attempts = 0;
    const busy = (until: number) => async (body: string) => {
      attempts += 1;
      if (attempts <= until) throw new BusyError({ operation, statusCode: 429, retryAfterMs: 5 });
      return follow(body);
    };
    expect((await run(busy(3), {}, one)).results[0]).toMatchObject({ observed: "accepted" });
    await expect(run(busy(1000), {}, one)).rejects.toThrow(BusyError);
  });

  it("can tell nothing of a lost answer, and ends where nothing can be tested", async () => {
    const lost = await run(() => Promise.reject(new AmbiguousError({ operation, reason: "reset" })), {}, one);
    expect(lost.results[0]).toMatchObject({ status: "unobservable", reason: "answerLost" });
    expect(junitXml(lost, "lost")).toContain('failures="0" errors="1" skipped="0"');
    const rejected = (kind: "tooLarge" | "unauthorized") =>
      run(
        () =>
          Promise.reject(new RejectedError({ operation, kind, statusCode: 400, route: "/e", messages: ["too large"] })),
        {},
        one,
      );
    const answered = { reason: "answerNotUnderstood", statusCode: 400, said: "too large" };
    const refused = await rejected("tooLarge");
    expect(refused.results[0]).toMatchObject(answered);
    expect(junitXml(refused, "refused")).toContain("seen: answerNotUnderstood (status 400)");
    const unknown = await run(async () => ({ statusCode: 204, message: undefined }), {}, one);
    expect(unknown.results[0]).toMatchObject({ reason: "answerNotUnderstood", statusCode: 204 });
    await expect(rejected("unauthorized")).rejects.toThrow(RejectedError);
  });

  it("reports what was sent before an error that concerns all cases", async () => {
    let sent = 0;
    const report = await run(
      async (body) => {
        sent += 1;
        if (sent > 20) throw new RejectedError({ operation, kind: "foreign", statusCode: 403, route: "POST /event" });
        return follow(body);
      },
      { observe: async (event) => keptAs(event) },
    );
    expect(report).toMatchObject({
      cases: suite.cases.length,
      mismatched: 0,
      ended: { kind: "foreign", statusCode: 403 },
    });
    expect(report.matched).toBeGreaterThan(10);
    const reasons = new Set(report.results.flatMap(({ reason }) => reason ?? []));
    expect(reasons).toEqual(new Set(["answerNotUnderstood", "notRun"]));
    expect(junitXml(report, "ended")).toMatch(/ errors="[1-9]/);
    expect(sent).toBeLessThan(30);
  });

  it("says of an event whose verdict cannot be read what its own answer shows", async () => {
    const unread = (error: Error) => run(follow, { observe: () => Promise.reject(error) });
    const lost = await unread(new AmbiguousError({ operation, reason: "reset" }));
    expect(new Set(lost.results.map(({ observed }) => observed))).toEqual(new Set(["accepted", "rejected"]));
    const refused = new RejectedError({ operation, kind: "forbidden", statusCode: 403, route: "GET /_sandbox/events" });
    const ended = await unread(refused);
    expect(ended).toMatchObject({ ended: { kind: "forbidden" }, mismatched: 0 });
    expect(new Set(ended.results.map(({ observed, reason }) => observed ?? reason))).toContain("accepted");
    expect(ended.results.filter(({ reason }) => reason !== undefined && reason !== "notRun")).toEqual([]);
  });

  it("runs nothing more once it is to stop, and passes nothing that it did not run", async () => {
    const stop = new AbortController();
    let sent = 0;
    const { results, ...counts } = await run(
      async (body) => {
        sent += 1;
        if (sent === 10) stop.abort();
        return follow(body);
      },
      { signal: stop.signal, observe: async (event) => keptAs(event) },
    );
    expect(sent).toBeLessThan(20);
    expect(counts.matched + counts.unobservable).toBe(suite.cases.length);
    expect(results.filter(({ reason }) => reason === "notRun")).toHaveLength(counts.unobservable);
  });
});

describe("the JUnit report", () => {
  it("counts, and says what was expected and seen", async () => {
    const report = await run(follow, {}, one);
    expect(
      junitXml({ ...report, results: report.results.map((result) => ({ ...result, milliseconds: 1 })) }, 'a <b> & "c"'),
    ).toMatchInlineSnapshot(`
        "<?xml version="1.0" encoding="UTF-8"?>
        <testsuites tests="1" failures="0" errors="0" skipped="1" time="0.001">
          <testsuite name="a &lt;b&gt; &amp; &quot;c&quot;" tests="1" failures="0" errors="0" skipped="1" time="0.001">
            <testcase classname="minimal" name="app_open/minimal/required: app_open: only what is required" time="0.001">
              <skipped message="expected recorded (documented), seen: accepted"/>
            </testcase>
          </testsuite>
        </testsuites>
        "
      `);
  });

  it("writes no character that XML cannot hold", async () => {
    const report = await run(follow, {}, one);
    expect(junitXml(report, "a\u0000\u001b\ud800\n😀b")).toContain('name="a\u{FFFD}\u{FFFD}\u{FFFD}&#10;😀b"');
  });
});
