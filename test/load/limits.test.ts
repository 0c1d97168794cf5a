import { expect, test } from "vitest";
import { textOf } from "../support/clients.ts";
import { checkedReport, warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

/** The limits of the API documents, repeated here by hand. */
const OPTIONS_OF_A_TARGETING = 100_000;
const CONTEXT_IDS_OF_AN_OPTION = 50_000;
const LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

const contextIds = (count: number, prefix = "c") => Array.from({ length: count }, (_, number) => `${prefix}${number}`);

/** Returns a different ULID for each number. */
function ulid(number: number): string {
  let rest = number;
  let digits = "";
  while (digits.length < 8) {
    digits = `${LETTERS[rest % 32]}${digits}`;
    rest = Math.floor(rest / 32);
  }
  return `01JABCDEFGHJKMNPQR${digits}`;
}

test("a full targeting says its limit, how many options are there and fit, and where it stopped", async () => {
  const session = await startSession({ env: { TARGETING_MCP_WAIT_MS: "120000" } });
  const targeting = await session.sandbox.targeting("News");
  const there = OPTIONS_OF_A_TARGETING - 3;
  for (let from = 0; from < there; from += 20_000) {
    const count = Math.min(20_000, there - from);
    const options = Array.from({ length: count }, (_, at) => ({
      _id: ulid(from + at),
      targeting,
      name: `Old ${from + at}`,
    }));
    await session.control("/seed", { options });
  }
  const items = [{ name: "New 1" }, { name: "New 2", children: [{ name: "A1" }, { name: "A2" }] }, { name: "New 3" }];
  const given = await session.client.callTool("bulk_add_options", { targetingId: targeting, items });
  const report = checkedReport(given);
  expect(report.status).toBe("partial");
  const limit = report.failures.find(({ errorCode }) => errorCode === "TARGETING_CATEGORY_LIMIT_EXCEEDED");
  expect(limit).toMatchObject({ outcome: "failed", indexes: [1] });
  const made = report.counts.succeeded;
  expect(report.notes.join("\n")).toContain(
    `"News" (${targeting}) has ${(there + made).toLocaleString("en-US")} of at most 100,000 options now, sub-options ` +
      `included: ${3 - made} more ${3 - made === 1 ? "fits" : "fit"}`,
  );
  expect(report.notes.join("\n")).toContain("The limit was reached first at item 2 (applied: 1 of 1 before it");
  expect(textOf(given)).toContain("nothing of that item was applied");
  const full = { targetingId: targeting, items: [{ name: "B1", children: contextIds(3).map((name) => ({ name })) }] };
  const dry = await session.client.callTool("bulk_add_options", { ...full, dryRun: true });
  expect(textOf(dry)).toMatch(/it has 99,99\d, so at most \d more fits?/);
});

test("over many requests of uneven size the rows before the stop are in, and those after it are not", async () => {
  const session = await startSession({ env: { TARGETING_MCP_WAIT_MS: "120000" } });
  const targeting = await session.sandbox.targeting("News");
  const fitting = 6000;
  for (let from = 0; from < OPTIONS_OF_A_TARGETING - fitting; from += 23_500) {
    const options = Array.from({ length: 23_500 }, (_, at) => ({
      _id: ulid(from + at),
      targeting,
      name: `Old ${from + at}`,
    }));
    await session.control("/seed", { options });
  }
  const items = Array.from({ length: 9000 }, (_, at) => ({
    name: `New ${at}`,
    ...(at % 10 === 3 && { contexts: contextIds(200, `a ${at} `) }),
  }));
  const report = checkedReport(await session.client.callTool("bulk_add_options", { targetingId: targeting, items }));
  expect(report).toMatchObject({ status: "partial", counts: { succeeded: fitting, failed: 3000 } });
  expect(report.failures).toMatchObject([{ errorCode: "TARGETING_CATEGORY_LIMIT_EXCEEDED", count: 3000 }]);
  expect(report.failures[0]?.indexes[0]).toBe(fitting);
  expect(report.notes.join("\n")).toContain(
    "reached first at item 6001 (applied: 6,000 of 6,000 before it, 0 of 2,999 after it)",
  );
});

test("an option that is full says so of itself; a full project is told apart from it", async () => {
  const session = await startSession();
  const targeting = await session.sandbox.targeting("Sports");
  const [nearlyFull, small] = [ulid(1), ulid(2)];
  await session.control("/seed", {
    options: [
      { _id: nearlyFull, targeting, name: "Nearly full", contexts: contextIds(CONTEXT_IDS_OF_AN_OPTION - 1) },
      { _id: small, targeting, name: "Small", contexts: ["a"] },
    ],
  });
  const items = [
    { _id: small, add: ["b"] },
    { _id: nearlyFull, add: ["c0", "new 1", "new 2"] },
  ];
  const own = await session.write("update_contexts", { items });
  expect(own.failures).toMatchObject([{ errorCode: "TARGETING_CONTEXT_LIMIT_EXCEEDED", indexes: [1] }]);
  expect(own.notes.join("\n")).toContain(
    `"Nearly full" (${nearlyFull}) holds 49,999 of at most 50,000 Context IDs: 1 more fits`,
  );
  expect(own.notes.join("\n")).toContain("reached first at item 2 (applied: 1 of 1 before it)");
  const others = [3, 4, 5].map((number) => ({
    _id: ulid(number),
    targeting,
    name: `Other ${number}`,
    contexts: contextIds(CONTEXT_IDS_OF_AN_OPTION - 1, `o${number}-`),
  }));
  await session.control("/seed", { options: others });
  const project = await session.write("update_contexts", { items: [{ _id: small, add: ["x", "y", "z"] }] });
  expect(project.status).toBe("failed");
  const told = project.notes.join("\n");
  expect(told).toContain(`"Small" (${small}) holds 2 of at most 50,000 Context IDs, so the limit that was reached is`);
  expect(told).toContain("that of the project: 200,000 Context IDs");
  expect(told).toContain('the options of "Sports" alone hold 199,998, so at most 2 more fit');
});

test("a new option for which the project has no room is deleted again, and the answer says so", async () => {
  const session = await startSession();
  const targeting = await session.sandbox.targeting("Travel");
  const counts = [49_999, 49_999, 49_999, 39_993];
  const options = counts.map((count, at) => ({
    ...{ _id: ulid(at + 1), targeting, name: `Old ${at}`, contexts: contextIds(count, `${at}-`) },
  }));
  await session.control("/seed", { options });
  const items = [{ name: "New", contexts: contextIds(10_030) }];
  const report = await session.write("bulk_add_options", { targetingId: targeting, items });
  expect(report.counts).toMatchObject({ items: 1, failed: 1 });
  const notes = report.notes.join("\n");
  expect(notes).toContain("1 new option was deleted again, because not all its Context IDs fit into the project");
  expect(notes).toContain('the options of "Travel" alone hold 189,990, so at most 10,010 more fit');
});

test("of an item that does not fit nothing stays, and what then fits is applied, with the numbers of whole items", async () => {
  const session = await startSession();
  const targeting = await session.sandbox.targeting("Fillers");
  const options = [1, 2, 3, 4, 5].map((number) => ({
    ...{ _id: ulid(number), targeting, name: `Fill ${number}`, contexts: ["z"] },
  }));
  await session.control("/seed", { options });
  const items = options.map(({ _id }, at) => ({ _id, add: contextIds(48_000, `${at}-`) }));
  const report = await session.write("update_contexts", { items });
  expect(report.counts).toMatchObject({ items: 5, succeeded: 4, failed: 1 });
  expect(report.failures).toMatchObject([
    {
      errorCode: "TARGETING_CONTEXT_LIMIT_EXCEEDED",
      message: expect.stringContaining("the item has 48,000 Context IDs"),
    },
  ]);
  const counts = new Map(report.results.map(({ _id, outcome }) => [_id, outcome === "succeeded" ? 48_001 : 1]));
  const listed = await session.client.callTool("list_options", { targetingId: targeting });
  expect(listed.structuredContent).toMatchObject({
    options: options.map(({ _id }) => ({ _id, contextCount: counts.get(_id) })),
  });
});
