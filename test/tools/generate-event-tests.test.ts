import { expect, test } from "vitest";
import * as z from "zod";
import { tokensOf } from "../../src/answers/budget.ts";
import { generateEventTestsTool } from "../../src/tools/generate-event-tests.ts";
import { answerOf, eventTools } from "../support/event-tools.ts";

const generated = z.object({
  suiteId: z.string(),
  resourceUri: z.string(),
  cases: z.number(),
  byKind: z.record(z.string(), z.number()),
  byVerdict: z.record(z.string(), z.number()),
  byBasis: z.record(z.string(), z.number()),
  preview: z.string(),
});

test("a suite is kept, counted and previewed within the budget", async () => {
  const { context } = await eventTools();
  const answer = await answerOf(generateEventTestsTool, {}, context);
  const { suiteId, resourceUri, cases, byKind, byVerdict, byBasis, preview } = generated.parse(answer.structured);
  expect(resourceUri).toBe(`targeting://suites/${suiteId}`);
  expect(Object.values(byKind).reduce((sum, count) => sum + count, 0)).toBe(cases);
  expect(Object.keys(byKind)).toHaveLength(9);
  for (const counts of [byVerdict, byBasis]) {
    expect(Object.values(counts).reduce((sum, count) => sum + count, 0)).toBe(cases);
  }
  expect(Object.keys(byVerdict)).toEqual(["recorded", "ignored", "rejected", "uncertain"]);
  expect(Object.keys(byBasis)).toEqual(["documented", "assumed", "notShown"]);
  expect(answer.text).toContain(`Expected verdicts of its cases: recorded ${byVerdict.recorded}, ignored`);
  expect((await context.suites.find("local", suiteId))?.suite.cases).toHaveLength(cases);
  expect(answer.text).toContain(preview.split("\n")[0]);
  expect(tokensOf(JSON.stringify(answer.structured)) + tokensOf(answer.text)).toBeLessThan(3500);
});

test("the same choice has the same ID, another seed or form another", async () => {
  const { context } = await eventTools();
  const idOf = async (given: object) =>
    generated.parse((await answerOf(generateEventTestsTool, given, context)).structured).suiteId;
  const first = await idOf({ eventNames: ["click"], seed: 3 });
  expect(await idOf({ eventNames: ["click"], seed: 3 })).toBe(first);
  expect(await idOf({ eventNames: ["click"], seed: 4 })).not.toBe(first);
  expect(await idOf({ eventNames: ["click"], seed: 3, format: "curl" })).not.toBe(first);
});

test("only the kinds, events and user that were asked for", async () => {
  const { context } = await eventTools();
  const given = { eventNames: ["sign_up"], kinds: ["minimal" as const], uid: "me" };
  const { suiteId, cases, byKind } = generated.parse(
    (await answerOf(generateEventTestsTool, given, context)).structured,
  );
  expect({ cases, byKind }).toEqual({ cases: 1, byKind: { minimal: 1 } });
  expect((await context.suites.find("local", suiteId))?.suite.cases).toMatchObject([
    { expected: "recorded", body: { uid: "me", eventName: "sign_up", method: expect.any(String) } },
  ]);
  expect(await context.suites.find("somebody else", suiteId)).toBeUndefined();
});

test("what cannot be generated", async () => {
  const { context } = await eventTools();
  const generate = (given: object) => answerOf(generateEventTestsTool, given, context);
  await expect(generate({ eventNames: ["purchased"] })).rejects.toThrow('did you mean "purchase"?');
  await expect(generate({ eventNames: ["click"], kinds: ["sequence"] })).rejects.toThrow("no test case");
  const { structured, text } = await generate({ eventNames: ["purchase"], kinds: ["minimal", "sequence"] });
  const left = "There is no test of kind sequence: to include one, name all of its events in eventNames (view_item, ";
  expect(text).toContain(left);
  expect(structured.notes).toContainEqual(expect.stringContaining(left));
  const sale = ["view_item", "add_to_cart", "begin_checkout", "purchase"];
  expect((await generate({ eventNames: sale, kinds: ["minimal", "sequence"] })).text).not.toContain("no test of kind");
});

test("a Playwright file is said to hold what it holds: one test of a page, not the cases of the suite", async () => {
  const { context, sandbox } = await eventTools();
  const { structured, text } = await answerOf(generateEventTestsTool, { format: "playwright" }, context);
  const { suiteId, cases, byKind, preview } = generated.parse(structured);
  expect({ cases, byKind }).toEqual({ cases: 1, byKind: { page: 1 } });
  const held = (await context.suites.find("local", suiteId))?.suite.cases.length ?? 0;
  expect(held).toBeGreaterThan(100);
  expect(structured.note).toContain(`it does not contain the ${held} cases of the suite`);
  expect(text).toContain(`it does not contain the ${held} cases of the suite`);
  expect(text).toMatch(/^1 event test, .*\nThe file opens a page .*\nExpected verdicts of the suite's cases: /);
  expect(preview).toMatch(/^\/\/ One page test/);
  // The port of the sandbox could contain the same digits, so its address is removed.
  expect(preview.replaceAll(sandbox.url, "")).not.toContain(String(held));
});

test("a page test names the address at which the sandbox really listens", async () => {
  const { context, sandbox } = await eventTools();
  const given = { eventNames: ["click"], format: "playwright" as const };
  const { structured, text } = await answerOf(generateEventTestsTool, given, context);
  const { preview } = generated.parse(structured);
  expect(structured).toMatchObject({ target: sandbox.url });
  expect(preview).toContain(`the sandbox at ${sandbox.url}`);
  expect(preview).not.toContain(":4010");
  expect(text).toContain(sandbox.url);
});

test("files that test the service do not send to the sandbox that an app uses", async () => {
  const { context, sandbox } = await eventTools();
  for (const format of ["vitest", "curl"] as const) {
    const { structured, text } = await answerOf(generateEventTestsTool, { eventNames: ["click"], format }, context);
    expect(structured).not.toHaveProperty("target");
    expect(`${generated.parse(structured).preview}${text}`).not.toContain(sandbox.url);
    expect(text).toContain("It tests the service, not the app, in a sandbox that it starts itself.");
  }
});

test("tests for a page say that the port of the embedded sandbox is in use", async () => {
  const { context } = await eventTools();
  const inUse = Object.assign(new Error("listen EADDRINUSE: address already in use 127.0.0.1:4010"), {
    code: "EADDRINUSE",
  });
  const testBench = context.testBench && { ...context.testBench, url: () => Promise.reject(inUse) };
  const generating = answerOf(
    generateEventTestsTool,
    { format: "playwright" },
    { ...context, ...(testBench && { testBench }) },
  );
  await expect(generating).rejects.toMatchObject({
    message: "the port of the embedded sandbox is in use",
    remedy: "Set TARGETING_MCP_SANDBOX_PORT to a free port, or leave it out.",
  });
});
