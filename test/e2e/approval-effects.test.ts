import { randomUUID } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { basePathOf } from "../../src/plans/base.ts";
import { textOf } from "../support/clients.ts";
import { browserOfTest, personAt } from "../support/page-person.ts";
import { checkedReport, tokensOfResult, warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

/**
 * The folder in which the server saves the base of a plan. With a base, options that the desired state omits are
 * deleted.
 */
const DIR = mkdtempSync(join(tmpdir(), "targeting-mcp-"));
const ALLOWED = { TARGETING_MCP_ALLOWED_DIRS: DIR };
const BY_TOKEN = { ...ALLOWED, TARGETING_MCP_PAGE: "off" };

type Session = Awaited<ReturnType<typeof startSession>>;

const run = z.looseObject({ runId: z.string(), status: z.string() });
const NEW = Array.from({ length: 25 }, (_, at) => `New ${String(at + 1).padStart(2, "0")}`);

const targetingId = "01HZZZZZZZZZZZZZZZZZZZZZZZ";
const id = (at: number): string => `01HZZZZZZZZZZZZZZZZZZZZZA${at}`;
const option = (at: number, name: string, more: object = { contexts: [`c${at}`, `d${at}`] }) => ({
  ...{ _id: id(at), targeting: targetingId, name },
  ...more,
});

/** Plans every kind of change. Returns the ID of the plan's run. */
async function plannedOfAllKinds({ client, control }: Session): Promise<string> {
  await control("/seed", {
    targetings: [{ _id: targetingId, name: "Shop" }],
    options: [
      option(0, "Old"),
      option(1, "Losing"),
      option(2, "Gaining"),
      option(3, "Wrong name"),
      option(4, "Group", { type: "collection", contexts: [] }),
      option(5, "Inside", { parent: id(4), contexts: ["c5", "d5"] }),
      option(6, "Moving"),
    ],
  });
  const desired = {
    version: 1,
    targeting: { _id: targetingId },
    options: [
      { _id: id(1), contexts: ["c1"] },
      { _id: id(2), contexts: ["c2", "d2", "e2"] },
      { _id: id(3), name: "Right name" },
      {
        ...{ _id: id(4), exposeChildren: true },
        children: [
          { _id: id(5), name: "Inside" },
          { _id: id(6), name: "Moving" },
        ],
      },
      ...NEW.map((name) => ({ name, contexts: [name] })),
    ],
  };
  const file = join(DIR, `${randomUUID()}.yaml`);
  const saved = await client.callTool("list_options", { targetingId, saveTo: file });
  expect(saved.isError, textOf(saved)).not.toBe(true);
  const planned = await client.callTool("plan_targeting", { desired, base: basePathOf(file), prune: true });
  expect(planned.isError, textOf(planned)).not.toBe(true);
  const { runId, status } = run.parse(planned.structuredContent);
  expect(status, textOf(planned)).toBe("planned");
  return runId;
}

const KINDS = {
  "Options deleted (1)": ["Old"],
  "Options that lose Context IDs (1)": ["Losing"],
  "Options renamed (1)": ["Wrong name"],
  "Options moved (1)": ["Moving"],
  "Options that get Context IDs (1)": ["Gaining"],
  "Option groups with other settings (1)": ["Group"],
  "Options created (25)": [...NEW.slice(0, 5), ...NEW.slice(-5)],
} as const;

const COUNTS =
  /deletes 1 option with 2 Context IDs, removes 1 Context ID from 1 option, renames 1 option, moves 1 option, adds Context IDs to 1 option, changes the settings of 1 option group, and creates 25 options\./;

test("the client is asked about each kind of change of a plan, with its total and its first and last names", async () => {
  const asked: string[] = [];
  const session = await startSession({
    env: ALLOWED,
    answer(message) {
      asked.push(message);
      return { action: "decline" };
    },
  });
  const runId = await plannedOfAllKinds(session);
  const declined = await session.client.callTool("apply_plan", { runId });
  const [question = ""] = asked;
  expect(question).toMatch(COUNTS);
  expect(question).toMatch(/ 2 of the 7 options of "[^"]+" \(29 %\) are deleted or lose Context IDs\./);
  for (const [title, names] of Object.entries(KINDS)) {
    expect(question).toContain(`${title}:`);
    for (const name of names) expect(question).toContain(`"${name}"`);
  }
  for (const name of [...NEW.slice(0, 10), ...NEW.slice(-10)]) expect(question).toContain(`"${name}"`);
  expect(question).toContain("… 5 more …");
  expect(question).toContain('becomes "Right name"');
  expect(question).toContain('from top level to "Group"');
  // The agent, too, gets the figures of the question.
  expect(textOf(declined)).toMatch(COUNTS);
  expect(checkedReport(declined).status).toBe("cancelled");
});

test("sub-options that the plan moves do not become top-level options when it deletes their group", async () => {
  const asked: string[] = [];
  const { client, control } = await startSession({
    env: ALLOWED,
    answer(message) {
      asked.push(message);
      return { action: "decline" };
    },
  });
  const group = { type: "collection", contexts: [] };
  await control("/seed", {
    targetings: [{ _id: targetingId, name: "Shop" }],
    options: [
      option(0, "Sports", group),
      option(1, "Balls", { parent: id(0) }),
      option(2, "Boards", { parent: id(0) }),
      option(3, "Seasonal", group),
      option(4, "Snow", { parent: id(3) }),
    ],
  });
  const file = join(DIR, `${randomUUID()}.yaml`);
  await client.callTool("list_options", { targetingId, saveTo: file });
  const children = [
    { _id: id(4), name: "Snow" },
    { _id: id(1), name: "Balls" },
  ];
  const desired = {
    version: 1,
    targeting: { _id: targetingId },
    options: [
      { _id: id(3), children },
      { _id: id(2), name: "Boards" },
    ],
  };
  const planned = await client.callTool("plan_targeting", { desired, base: basePathOf(file), prune: true });
  expect(planned.isError, textOf(planned)).not.toBe(true);
  const { runId } = run.parse(planned.structuredContent);
  await client.callTool("apply_plan", { runId });
  expect(asked).toHaveLength(1);
  expect(asked[0]).toContain("deletes 1 option group");
  expect(asked[0]).not.toContain("become");
});

test("with a token the agent shows the same kinds", async () => {
  const session = await startSession({ env: BY_TOKEN });
  const runId = await plannedOfAllKinds(session);
  const told = await session.client.callTool("apply_plan", { runId });
  const { effect = "", token = "" } = checkedReport(told).confirmation ?? {};
  expect(effect).toMatch(COUNTS);
  for (const [title, names] of Object.entries(KINDS)) {
    expect(effect).toContain(`${title}: `);
    for (const name of names) expect(effect).toContain(`"${name}"`);
  }
  expect(effect).toContain("… 15 more …");
  expect(tokensOfResult(told)).toBeLessThanOrEqual(2500);
  const done = await session.client.callTool("apply_plan", { confirmation: token });
  expect(checkedReport(done)).toMatchObject({ status: "succeeded", counts: { items: 31, succeeded: 31 } });
});

test("the page has all of it: a plan by kind, an undo by what comes back and what does not", async () => {
  const browser = browserOfTest();
  const session = await startSession({
    fresh: true,
    env: { ...ALLOWED, ...browser.env, TARGETING_MCP_WAIT_MS: "60000" },
  });
  const runId = await plannedOfAllKinds(session);
  const applied = session.client.callTool("apply_plan", { runId });
  const person = await personAt(await browser.address());
  const waiting = await person.waiting();
  expect(waiting.waiting?.effect).toMatch(COUNTS);
  expect(waiting.waiting).toMatchObject({ magnitude: { verb: "deleted", whole: expect.any(Number) } });
  expect(waiting.waiting?.parts.map(({ title, count }) => `${title} (${count})`)).toEqual(Object.keys(KINDS));
  expect(waiting.waiting?.parts.at(-1)?.objects.map(({ name }) => name)).toEqual(NEW);
  await person.press(waiting.runId, "approve");
  expect(checkedReport(await applied).status).toBe("succeeded");

  await session.control("/seed", {
    options: [option(3, "Theirs", {})],
  });
  const undone = await person.press(runId, "undo");
  expect(undone.status).toBe(200);
  const found = () => person.runs().find((row) => row.waiting !== undefined && row.runId !== runId);
  await expect.poll(found).toBeDefined();
  const undo = found();
  // The page shows as figures how much the undo restores and which share of the targeting changes, so the sentence
  // omits both.
  expect(undo?.waiting?.effect).toMatch(
    /^Undoes an earlier run in "[^"]+": .* This deletes 25 options.* from 1 option\.$/,
  );
  const parts = new Map(undo?.waiting?.parts.map(({ title, objects }) => [title, objects]));
  expect(parts.get("Options deleted")?.map(({ name }) => name)).toEqual(NEW);
  expect(parts.get("Changed since and will not be undone")?.map(({ name }) => name)).toEqual(["Theirs"]);
  expect(parts.get("Will be undone with a new ID")).toEqual([
    expect.objectContaining({ name: "Old", says: expect.stringContaining("gets a new ID") }),
  ]);
  const exact = parts.get("Will be undone exactly")?.map(({ name }) => name);
  for (const name of ["Losing", "Group", "Moving"]) expect(exact).toContain(name);
  // The undo only removes Context IDs from "Gaining", so the page lists it with the losses.
  expect(exact).not.toContain("Gaining");
});

test("an update that takes away and adds says both", async () => {
  const session = await startSession({ env: BY_TOKEN });
  const made = await session.write("create_targetings", {
    items: [
      {
        name: "Shop",
        options: [
          { name: "Losing", contexts: ["a"] },
          { name: "Gaining", contexts: ["b"] },
        ],
      },
    ],
  });
  const [losing, gaining] = made.results.filter(({ child }) => child !== undefined).map(({ _id }) => _id);
  const report = await session.write("update_contexts", {
    items: [
      { _id: losing, set: [] },
      { _id: gaining, add: ["c", "d"] },
    ],
  });
  expect(report.confirmation?.effect).toContain(
    "This removes 1 Context ID from 1 option, which will be empty, and adds Context IDs to 1 option.",
  );
  expect(report.confirmation?.effect).toMatch(/"Gaining" \(\w{26}\): gets 2 Context IDs/);
});

/**
 * Creates a targeting of ten options with Context IDs. Returns calls that need approval, and the share of the targeting
 * that each of them changes.
 */
async function shopOfTen({ control }: Session) {
  const ids = Array.from({ length: 10 }, (_, at) => id(at));
  await control("/seed", {
    targetings: [{ _id: targetingId, name: "Shop" }],
    options: ids.map((_, at) => option(at, `Option ${at}`, { contexts: [`c${at}`] })),
  });
  return [
    { tool: "delete_options", args: { ids: ids.slice(0, 3) }, share: '3 of the 10 options of "Shop" (30 %)' },
    {
      tool: "update_contexts",
      args: { items: [{ _id: ids[9], set: [] }] },
      share: '1 of the 10 options of "Shop" (10 %)',
    },
  ];
}

test("a deletion outside of plans says its share of the targeting in the client, with a token and on the page", async () => {
  const asked: string[] = [];
  const inClient = await startSession({
    env: ALLOWED,
    answer(message) {
      asked.push(message);
      return { action: "decline" };
    },
  });
  for (const { tool, args, share } of await shopOfTen(inClient)) {
    await inClient.client.callTool(tool, args);
    expect(asked.at(-1)).toContain(share);
  }
  const byToken = await startSession({ env: BY_TOKEN });
  for (const { tool, args, share } of await shopOfTen(byToken)) {
    const told = checkedReport(await byToken.client.callTool(tool, args));
    expect(told.confirmation?.effect).toContain(share);
  }
  const browser = browserOfTest();
  const onPage = await startSession({ fresh: true, env: { ...browser.env, TARGETING_MCP_WAIT_MS: "60000" } });
  const [first] = await shopOfTen(onPage);
  const calling = onPage.client.callTool(first?.tool ?? "", first?.args ?? {});
  const person = await personAt(await browser.address());
  const waiting = await person.waiting();
  // The page shows the share as a figure instead of in the sentence.
  expect(waiting.waiting?.magnitude).toEqual({ count: 3, whole: 10, verb: "deleted", what: "3 options" });
  expect(waiting.waiting?.effect).toBe("");
  await person.press(waiting.runId, "approve");
  expect(checkedReport(await calling).counts).toMatchObject({ succeeded: 3 });
});

test("an option that several items change is one option of the effect", async () => {
  const session = await startSession({ env: BY_TOKEN });
  await session.control("/seed", {
    targetings: [{ _id: targetingId, name: "Shop" }],
    options: [option(0, "Losing"), option(1, "Gaining")],
  });
  const items = [
    { _id: id(0), set: [] },
    { _id: id(1), add: ["e1"] },
    { _id: id(1), add: ["f1", "g1"] },
  ];
  const asked = await session.client.callTool("update_contexts", { items });
  const text = textOf(asked);
  expect(text).toContain("adds Context IDs to 1 option");
  expect(text).toContain("gets 3 Context IDs");
});

test("what one item adds and a later one removes is no gain of the option", async () => {
  const session = await startSession({ env: BY_TOKEN });
  await session.control("/seed", {
    targetings: [{ _id: targetingId, name: "Shop" }],
    options: [option(0, "Losing"), option(1, "Same"), option(2, "Emptied")],
  });
  const items = [
    { _id: id(0), add: ["n"], remove: ["c0"] },
    { _id: id(0), set: ["only"] },
    { _id: id(1), add: ["m"] },
    { _id: id(1), remove: ["m"] },
    { _id: id(2), set: [] },
  ];
  const asked = await session.client.callTool("update_contexts", { items });
  const { effect = "" } = checkedReport(asked).confirmation ?? {};
  expect(effect).toContain(
    "removes 4 Context IDs from 2 options, 1 of which will be empty, and adds Context IDs to 1 option",
  );
  expect(effect).toContain("gets 1 Context ID");
  expect(effect).not.toContain('"Same"');
});
