import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { hold } from "../support/hold.ts";
import { browserOfTest, personAt } from "../support/page-person.ts";
import { COMMAND, cleanEnvironment, startCommand } from "../support/server-process.ts";
import { optionItems } from "../support/service.ts";
import { checkedReport, startSession } from "../support/writing.ts";

const detail = z.looseObject({
  run: z.looseObject({
    status: z.string(),
    actions: z.array(z.string()),
    disabled: z.record(z.string(), z.string()).optional(),
    decided: z.string().optional(),
  }),
  failures: z.array(z.looseObject({ message: z.string(), remedy: z.string(), places: z.string() })),
  downloads: z.array(z.string()),
  saved: z.looseObject({ path: z.string() }).optional(),
  undo: z.string().optional(),
  changes: z.looseObject({ rows: z.array(z.looseObject({ kind: z.string() })) }).optional(),
});

type Person = Awaited<ReturnType<typeof personAt>>;

async function detailOf(person: Person, runId: string) {
  const answer = await fetch(`${person.origin}/page/runs/${runId}`, { headers: person.headers });
  return detail.parse(await answer.json());
}

const known = new Set<string>();

/**
 * Waits until the page shows a run that waits and that no earlier test has seen. The page gets changes twice a second.
 */
async function newlyWaiting(person: Person) {
  const found = () => person.runs().find(({ runId, waiting }) => waiting !== undefined && !known.has(runId));
  await expect.poll(found).toBeDefined();
  const run = found();
  if (run === undefined) throw new Error("no run waits");
  known.add(run.runId);
  return run;
}

async function download(person: Person, runId: string, file: string) {
  const answer = await fetch(`${person.origin}/page/runs/${runId}/${file}`, { headers: person.headers });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

/** A session for all tests. Its person has already opened the page. */
const shared = perFile(async (given: { live?: boolean } = {}) => {
  const browser = browserOfTest();
  const folder = await mkdtemp(join(tmpdir(), "targeting-files-"));
  const session = await startSession({ ...given, env: { ...browser.env, TARGETING_MCP_ALLOWED_DIRS: folder } });
  // The server opens the page only when a run waits for approval.
  const first = await session.sandbox.targeting("First");
  const answer = session.client.callTool("delete_targeting", { ids: [first] });
  const person = await personAt(await browser.address());
  await person.press((await newlyWaiting(person)).runId, "decline");
  await answer;
  return { ...session, browser, person, folder };
});

let made = 0;

/** Creates a targeting with a group and two options, and approves on the page that two of them are deleted. */
async function deleted(given: { live?: boolean } = {}) {
  const session = await shared(given);
  const { browser, person } = session;
  made += 1;
  const targetingId = await session.sandbox.targeting(`Sports fans ${made}`);
  const items = [
    { name: "Shoes", contexts: [`s${made}`], children: [{ name: "Running", contexts: ["r1", "r2"] }] },
    { name: "Hats", contexts: ["h"] },
  ];
  await session.write("bulk_add_options", { targetingId, items });
  const answer = session.client.callTool("delete_options", { targetingId, names: ["Running", "Hats"] });
  const { runId } = await newlyWaiting(person);
  expect((await person.press(runId, "approve")).status).toBe(200);
  expect(checkedReport(await answer)).toMatchObject({
    status: "succeeded",
    approval: { decision: "approved", channel: "page" },
  });
  return { ...session, person, browser, targetingId, runId };
}

const changed = z.looseObject({
  rows: z.array(
    z.looseObject({ before: z.looseObject({ name: z.string(), contextIds: z.array(z.string()).optional() }) }),
  ),
  total: z.number(),
  removed: z.number(),
  findsNames: z.boolean().optional(),
});

const BOOTS = "01HZZZZZZZZZZZZZZZZZZZZZB0";

/** Returns the changes that a waiting run would make, filtered by a search. */
async function changesOf(person: Person, runId: string, search = "") {
  const answer = await fetch(`${person.origin}/page/runs/${runId}/changes?search=${search}`, {
    headers: person.headers,
  });
  return changed.parse(await answer.json());
}

const CHECK =
  "Campaigns and ad products lose this targeting at once. Only the web console shows which ones use it. " +
  "But while an approved campaign uses one of its options, the service refuses to delete it.";

describe("a deletion that waits", () => {
  test("names its targeting, which nobody read before, and finds each Context ID that goes", async () => {
    const { client, control, sandbox, person } = await shared();
    const targetingId = await sandbox.targeting("Unseen targeting");
    const contexts = Array.from({ length: 9 }, (_, at) => `sku-${at}`);
    await control("/seed", {
      options: [
        { _id: BOOTS, targeting: targetingId, name: "Boots", contexts },
        { targeting: targetingId, name: "Caps", contexts: ["cap"] },
      ],
    });
    const answer = client.callTool("delete_options", { ids: [BOOTS] });
    const { runId, title, waiting } = await newlyWaiting(person);
    expect(title).toBe("Delete Boots from Unseen targeting");
    // The page shows as figures what is deleted and which share of the targeting it is.
    expect(waiting).toMatchObject({ effect: "", contextIds: 9, magnitude: { count: 1, whole: 2, verb: "deleted" } });
    expect(await changesOf(person, runId, "SKU-8")).toMatchObject({
      rows: [{ before: { name: "Boots", count: 9, contextIds: ["sku-8", "sku-0", "sku-1", "sku-2", "sku-3"] } }],
      removed: 9,
    });
    expect(await changesOf(person, runId, "cap")).toMatchObject({ total: 0 });
    await person.press(runId, "decline");
    await answer;
    const row = () => person.runs().find((run) => run.runId === runId);
    await expect.poll(() => row()?.decided).toMatch(/^Declined on the page by /);
  });

  test("has the names of a few deletions in its title, as a list", async () => {
    const { client, control, sandbox, person } = await shared();
    const targeting = await sandbox.targeting("Listed targeting");
    const options = ["Boots", "Caps", "Hats"].map((name, at) => ({
      _id: `01HZZZZZZZZZZZZZZZZZZZZZW${at}`,
      targeting,
      name,
    }));
    await control("/seed", { options: options.map((one) => ({ ...one, contexts: [] })) });
    const answer = client.callTool("delete_options", { ids: options.map(({ _id }) => _id) });
    const { runId, title } = await newlyWaiting(person);
    expect(title).toBe("Delete options Boots, Caps and Hats from Listed targeting");
    await person.press(runId, "decline");
    await answer;
  });

  test("has their number in its title if the names together are long", async () => {
    const { client, control, sandbox, person } = await shared();
    const targeting = await sandbox.targeting("Long names");
    const options = ["가", "나", "다"].map((letter, at) => ({
      ...{ _id: `01HZZZZZZZZZZZZZZZZZZZZZN${at}`, targeting },
      ...{ name: letter.repeat(36), contexts: [] },
    }));
    await control("/seed", { options });
    const titles: unknown[] = [];
    for (const count of [3, 1]) {
      const answer = client.callTool("delete_options", { ids: options.slice(0, count).map(({ _id }) => _id) });
      const { runId, title } = await newlyWaiting(person);
      titles.push(title);
      await person.press(runId, "decline");
      await answer;
    }
    expect(titles).toEqual(["Delete 3 options from Long names", `Delete ${"가".repeat(36)} from Long names`]);
  });

  test("is read again for the next request if the service did not answer", async () => {
    const { client, control, sandbox, person } = await shared();
    const targeting = await sandbox.targeting("Unread targeting");
    const _id = "01HZZZZZZZZZZZZZZZZZZZZZV0";
    await control("/seed", { options: [{ _id, targeting, name: "Boots", contexts: ["sku-1"] }] });
    const answer = client.callTool("delete_options", { ids: [_id] });
    const { runId } = await newlyWaiting(person);
    await control("/faults", { faults: [{ on: "read", kind: "status", status: 403, times: 1000 }] });
    expect(await changesOf(person, runId)).toMatchObject({ findsNames: true });
    await fetch(`${sandbox.url}/_sandbox/faults`, { method: "DELETE" });
    await expect.poll(() => changesOf(person, runId)).toMatchObject({ rows: [{ before: { contextIds: ["sku-1"] } }] });
    await person.press(runId, "decline");
    await answer;
  });

  test("is downloaded as a list with all Context IDs, which a spreadsheet does not run", async () => {
    const { client, control, sandbox, person } = await shared();
    const targeting = await sandbox.targeting("신발");
    const contexts = Array.from({ length: 9 }, (_, at) => `sku-${at}`);
    const [SHOES, BELTS] = ["01HZZZZZZZZZZZZZZZZZZZZZT0", "01HZZZZZZZZZZZZZZZZZZZZZT1"] as const;
    const options = [
      { _id: SHOES, targeting, name: "Shoes, red", contexts },
      { _id: BELTS, targeting, name: "Belts", contexts: ["=1+1"] },
    ];
    await control("/seed", { options });
    const answer = client.callTool("delete_options", { ids: [SHOES, BELTS] });
    const { runId, waiting } = await newlyWaiting(person);
    expect(waiting?.undo).toMatchObject({
      title: "Undo within 30 days restores 1 of 2 options: same Context IDs, new option ID",
      notes: ['Not restored: "Shoes, red", because the service does not accept its name.'],
    });
    const { status, headers, text } = await download(person, runId, "list");
    expect(status).toBe(200);
    const [, name = ""] = /filename\*=UTF-8''(\S+)$/.exec(headers.get("content-disposition") ?? "") ?? [];
    expect(decodeURIComponent(name)).toBe("Delete options Shoes, red and Belts from 신발.csv");
    expect(text.replace("\uFEFF", "").trim().split("\r\n")).toEqual([
      "Change,Group,Name,New name,Context IDs removed,Context IDs added,Note",
      `Deleted,,"Shoes, red",,${contexts.join("|")},,`,
      "Deleted,,Belts,,'=1+1,,",
    ]);
    expect((await fetch(`${person.origin}/page/runs/${runId}/list`)).status).toBe(401);
    await person.press(runId, "approve");
    await answer;
    // The finished run shows the same sentence about its undo as the approval did.
    await expect
      .poll(async () => (await detailOf(person, runId)).undo)
      .toBe("Undo restores 1 of 2 objects under a new ID; 1 cannot be restored");
  });

  test("of moves and renamings names the groups", async () => {
    const { client, control, sandbox, person } = await shared();
    const targeting = await sandbox.targeting("Moved sale");
    const [SHOES = "", COATS = "", BOOTS = "", PARKA = "", SANDALS = ""] = ["0", "1", "2", "3", "4"].map(
      (end) => `01HZZZZZZZZZZZZZZZZZZZZZM${end}`,
    );
    const options = [
      { _id: SHOES, targeting, name: "Shoes", type: "collection" },
      { _id: COATS, targeting, name: "Coats", type: "collection" },
      { _id: BOOTS, targeting, name: "Boots", parent: SHOES },
      { _id: SANDALS, targeting, name: "Sandals", parent: SHOES },
      { _id: PARKA, targeting, name: "Parka", parent: COATS },
    ];
    await control("/seed", { options });
    const items = [
      { _id: BOOTS, parent: COATS },
      { _id: PARKA, name: "Parkas" },
    ];
    const { runId = "" } = checkedReport(await client.callTool("update_options", { items }));
    const { how } = (await detailOf(person, runId)).run;
    expect(how).toMatchObject({ renamed: 1, moved: 1, added: 0 });
    await expect.poll(() => person.runs().find((run) => run.runId === runId)?.how).toEqual(how);
    const row = { kind: "changed", group: "Coats" };
    expect((await changesOf(person, runId)).rows).toEqual([
      expect.objectContaining({
        ...{ ...row, before: expect.objectContaining({ name: "Boots", within: "Shoes" }) },
        after: expect.objectContaining({ name: "Boots", within: "Coats" }),
      }),
      expect.objectContaining({ ...row, after: expect.objectContaining({ name: "Parkas" }) }),
    ]);
    // The server has not read the names of these groups, so the options have no heading.
    const contexts = { items: [BOOTS, SANDALS].map((_id) => ({ _id, add: ["new"] })) };
    const added = checkedReport(await client.callTool("update_contexts", contexts));
    const { rows } = await changesOf(person, added.runId ?? "");
    expect(rows.map(({ group }) => group)).toEqual([undefined, undefined]);
    const listed = () => person.runs().find((run) => run.runId === runId);
    expect(listed()).toMatchObject({ names: { changed: ["Boots", "Parkas"] } });
    const ended = Number(listed()?.updatedAt);
    await person.press(runId, "undo");
    const undo = await newlyWaiting(person);
    await person.press(undo.runId, "approve");
    await expect.poll(() => listed()?.undoneBy).toBe(undo.runId);
    // The undo changed this run later, but not the time when it ended.
    expect(listed()?.endedAt).toBe(ended);
    expect((await detailOf(person, runId)).run.endedAt).toBe(ended);
    expect(listed()?.updatedAt).toBeGreaterThan(ended);
    await person.press(undo.runId, "undo");
    await person.press((await newlyWaiting(person)).runId, "approve");
    await expect.poll(() => listed()?.undoneBy).toBeUndefined();
  });

  test("of options of several groups says how many of which group, and how many wait in another request", async () => {
    const { client, control, sandbox, person } = await shared();
    const targeting = await sandbox.targeting("Counted sale");
    const id = (end: string) => `01HZZZZZZZZZZZZZZZZZZZZZ${end}`;
    const groups = ["C0", "C1"].map((end, at) => ({
      ...{ _id: id(end), targeting, name: `Group ${at}`, type: "collection" },
    }));
    const options = ["D0", "D1", "D2", "D3", "D4", "D5"].map((end, at) => {
      return { _id: id(end), targeting, name: `Option ${at}`, parent: id(at < 2 ? "C0" : "C1") };
    });
    await control("/seed", { options: [...groups, ...options] });
    const first = client.callTool("delete_options", { ids: ["D0", "D2", "D3"].map(id) });
    const { runId } = await newlyWaiting(person);
    const second = client.callTool("delete_options", { ids: ["D3", "D4"].map(id) });
    const other = await newlyWaiting(person);
    const also = (of: string) => person.runs().find((run) => run.runId === of)?.waiting?.also;
    await expect.poll(() => also(runId)).toEqual({ runId: other.runId, what: '"Option 3" is also' });
    expect(also(other.runId)).toEqual({ runId, what: '"Option 3" is also' });
    await expect.poll(async () => (await changesOf(person, runId)).isReading).toBeUndefined();
    expect((await changesOf(person, runId)).groups).toEqual([
      { name: "Group 1", count: 2 },
      { name: "Group 0", count: 1 },
    ]);
    for (const one of [runId, other.runId]) await person.press(one, "decline");
    await Promise.all([first, second]);
    const whole = client.callTool("delete_targeting", { ids: [targeting] });
    const one = await newlyWaiting(person);
    const more = client.callTool("delete_targeting", { ids: [targeting, await sandbox.targeting("Other sale")] });
    const two = await newlyWaiting(person);
    await expect.poll(() => also(one.runId)).toEqual({ runId: two.runId, what: "The targeting is also" });
    expect(also(two.runId)).toEqual({ runId: one.runId, what: '"Counted sale" is also' });
    for (const { runId: of } of [one, two]) await person.press(of, "decline");
    await Promise.all([whole, more]);
  });

  test("of a group says which sub-options stay and move to the top level", async () => {
    const { client, control, sandbox, person } = await shared();
    const targeting = await sandbox.targeting("Grouped sale");
    const [GROUP, OTHER] = ["01HZZZZZZZZZZZZZZZZZZZZZG0", "01HZZZZZZZZZZZZZZZZZZZZZG1"] as const;
    const options = [
      { _id: GROUP, targeting, name: "Clothing", type: "collection" },
      ...["Jackets", "Jeans"].map((name) => ({ targeting, name, parent: GROUP })),
      { _id: OTHER, targeting, name: "Bags" },
      { targeting, name: "Belts" },
    ];
    await control("/seed", { options });
    const answer = client.callTool("delete_options", { ids: [GROUP, OTHER] });
    const { runId, title, waiting } = await newlyWaiting(person);
    expect(title).toBe("Delete group Clothing and option Bags from Grouped sale");
    expect(waiting).toMatchObject({
      consequence: "2 sub-options stay, with their Context IDs: they move to the top level.",
      check: "Sandbox: campaigns here are not real.",
      ...{
        effect: "",
        act: "Delete 1 group and 1 option",
        undo: {
          title: "Undo within 30 days: new group and option IDs, 2 sub-options back in the group",
          notes: [],
        },
      },
    });
    await expect.poll(async () => (await changesOf(person, runId)).isReading).toBeUndefined();
    const { rows, freed, unchanged } = await changesOf(person, runId);
    expect(rows.map(({ before }) => [before.name, before.says])).toEqual([
      ["Clothing", "group without its 2 sub-options"],
      ["Bags", undefined],
    ]);
    expect([freed, unchanged]).toEqual([{ count: 2, names: ["Jackets", "Jeans"] }, 1]);
    const { text } = await download(person, runId, "list");
    const [, ...lines] = text.trimEnd().split("\r\n");
    const end = ',,,,"to the top level, because its group is deleted"';
    expect(lines.slice(2)).toEqual([`Moved,,Jackets${end}`, `Moved,,Jeans${end}`]);
    await person.press(runId, "approve");
    await answer;
    // The sub-options are still named, but do not count as changes of the run.
    const { freed: moved, ...done } = await changesOf(person, runId);
    expect([moved, done.total, done.unchanged]).toEqual([{ count: 2, names: ["Jackets", "Jeans"] }, 2, 1]);
    expect((await detailOf(person, runId)).undo).toBe("Undo restores all 2 under new IDs, with 2 sub-options inside");
    expect((await person.press(runId, "undo")).status).toBe(200);
    const back = await newlyWaiting(person);
    expect(back.waiting?.effect).toContain("2 will be undone exactly, 2 will be undone with new IDs");
    expect(back.title).toBe(
      'Undo "Deleted 1 group and 1 option from Grouped sale": restore 1 group and 1 option, move 2 options to Clothing',
    );
    expect(back.waiting?.act).toBe("Undo: restore 1 group and 1 option, move 2 options");
    expect(back.isUndo).toBe(true);
    expect(back.waiting?.consequence).toBe(
      "2 restored objects get new IDs: campaigns and ad products that use the old IDs stay disconnected.",
    );
    expect(JSON.stringify(back.waiting?.undo)).not.toContain("restored option");
    expect((await detailOf(person, back.runId)).changes?.rows).toEqual(
      expect.arrayContaining(
        ["Jackets", "Jeans"].map((name) =>
          expect.objectContaining({
            ...{ kind: "changed", before: expect.objectContaining({ name, within: null }) },
            after: expect.objectContaining({ name, within: "Clothing" }),
          }),
        ),
      ),
    );
    expect(await detailOf(person, back.runId)).toMatchObject({
      plan: { differs: expect.arrayContaining([expect.stringMatching(/^"Bags" \S+: gets a new ID/)]) },
    });
    await person.press(back.runId, "approve");
    // The list of runs and the details of a run show the same.
    const row = (id: string) => person.runs().find((run) => run.runId === id);
    await expect.poll(() => row(back.runId)).toMatchObject({ status: "succeeded" });
    const [deleted, undid] = ["Deleted 1 group and 1 option from Grouped sale", "1 group and 1 option restored"];
    for (const [id, wanted, noun] of [
      [runId, deleted, "object"],
      [back.runId, `Undid "${deleted}": ${undid}, 2 options moved to Clothing`, "change"],
    ] as const) {
      expect(row(id)).toMatchObject({ title: wanted, noun, has: "groups" });
      expect((await detailOf(person, id)).run).toMatchObject({ title: wanted, noun, has: "groups" });
    }
  });

  test.each([
    [
      2,
      '2 requested options stay: "Group 0" keeps "Cap 0" and "Group 1" keeps "Cap 1", since a group cannot be empty.',
    ],
    [
      4,
      '4 requested options stay: "Group 0" keeps "Cap 0", "Group 1" keeps "Cap 1", "Group 2" keeps "Cap 2" and 1 more, ' +
        "since a group cannot be empty.",
    ],
  ])("that would empty %i groups says once which sub-options stay", async (count, stays) => {
    const { client, control, sandbox, person } = await shared();
    const targeting = await sandbox.targeting(`${count} kept groups`);
    const id = (letter: string, at: number) => `01HZZZZZZZZZZZZZZZZZZZ${letter}${count}0${at}`;
    const groups = Array.from({ length: count }, (_, at) => [
      { _id: id("G", at), targeting, name: `Group ${at}`, type: "collection" },
      { _id: id("C", at), targeting, name: `Cap ${at}`, parent: id("G", at) },
    ]);
    await control("/seed", { options: [...groups.flat(), { _id: id("B", 0), targeting, name: "Belts" }] });
    const ids = [...groups.map((_, at) => id("C", at)), id("B", 0)];
    const answer = client.callTool("delete_options", { ids });
    const { runId, waiting } = await newlyWaiting(person);
    expect(waiting).toMatchObject({ stays: expect.stringContaining(stays) });
    // The list repeats no group whose sub-option is named already.
    const note = { title: "Groups that keep their last sub-option", count };
    expect(waiting?.parts).toContainEqual(expect.objectContaining(note));
    const notes = waiting?.parts.filter(({ isNote }) => isNote) ?? [];
    expect(notes.map(({ title }) => title)).toEqual(count > 3 ? [note.title] : []);
    await person.press(runId, "decline");
    await answer;
  });

  test("of a whole targeting lists every option with its Context IDs", async () => {
    const { client, control, sandbox, person } = await shared({ live: true });
    const targeting = await sandbox.targeting("Winter Sale");
    const options = [
      { targeting, name: "Boots", contexts: ["b1", "b2"] },
      { targeting, name: "Caps", contexts: ["cap"] },
    ];
    await control("/seed", { options });
    const answer = client.callTool("delete_targeting", { ids: [targeting] });
    const { runId, title, waiting } = await newlyWaiting(person);
    expect(title).toBe("Delete the targeting Winter Sale and its 2 options");
    expect(waiting).toMatchObject({
      ...{ magnitude: { count: 2, what: "1 targeting and 2 options" }, optionsInside: 2 },
      check: CHECK,
      undo: {
        title: "Undo within 30 days: same Context IDs, new targeting and option IDs; campaigns are not reconnected",
      },
      parts: [{ title: "Targetings deleted" }, { title: "Options deleted with their targeting", kind: "inside" }],
    });
    expect(waiting).not.toHaveProperty("consequence");
    // The page shows the names of options before their Context IDs are read.
    const release = await hold(sandbox.url, "listOptions");
    const early = await changesOf(person, runId);
    await release();
    expect(early).toMatchObject({ total: 3, isReading: true });
    expect(early.rows.map(({ before }) => before.name).toSorted()).toEqual(["Boots", "Caps", "Winter Sale"]);
    await expect.poll(async () => (await changesOf(person, runId)).isReading).toBeUndefined();
    const { rows, removed, findsNames } = await changesOf(person, runId);
    expect(rows.map(({ before }) => [before.name, before.contextIds])).toEqual(
      expect.arrayContaining([
        ["Boots", ["b1", "b2"]],
        ["Caps", ["cap"]],
        ["Winter Sale", undefined],
      ]),
    );
    expect([removed, findsNames]).toEqual([3, undefined]);
    await person.press(runId, "approve");
    await answer;
    const row = () => person.runs().find((run) => run.runId === runId);
    await expect.poll(() => row()).toMatchObject({ status: "succeeded", actions: ["undo"] });
    expect(row()?.decided).toMatch(/^Approved on the page by /);
    expect((await detailOf(person, runId)).undo).toBe("Undo restores all 3 under new IDs");
  });

  test("of a whole targeting counts all that it contained, and earlier runs keep the targeting's name", async () => {
    const { client, write, sandbox, person } = await shared();
    const targetingId = await sandbox.targeting("Winter Sale 2025");
    const items = [
      { name: "Aisle", contexts: ["a"], children: [{ name: "Shelf", contexts: ["s"] }] },
      { name: "Caps", contexts: ["cap"] },
    ];
    await write("bulk_add_options", { targetingId, items });
    const added = () => person.runs().find(({ tool, targeting }) => tool === "bulk_add_options" && isOf(targeting));
    const isOf = (targeting: unknown) => JSON.stringify(targeting ?? {}).includes(targetingId);
    await expect.poll(added).toBeDefined();
    const answer = client.callTool("delete_targeting", { ids: [targetingId] });
    const { runId } = await newlyWaiting(person);
    await person.press(runId, "approve");
    await answer;
    const row = () => person.runs().find((run) => run.runId === runId);
    await expect.poll(() => row()?.status).toBe("succeeded");
    expect(row()).toMatchObject({
      title: "Deleted the targeting Winter Sale 2025 with 1 group and 2 options",
      did: { created: 0, changed: 0, deleted: 4 },
      counts: { items: 4, succeeded: 4 },
      noun: "object",
    });
    const named = {
      title: "Added 1 group and 2 options to Winter Sale 2025",
      targeting: { _id: targetingId, name: "Winter Sale 2025" },
    };
    expect(added()).toMatchObject(named);
    expect((await detailOf(person, added()?.runId ?? "")).run).toMatchObject(named);
  });
});

describe("a run on the page", () => {
  test("of failures that stand far apart it says how many more there are than it names", async () => {
    const { client, person, targetingId } = await deleted();
    const items = Array.from({ length: 114 }, (_, at) => ({ name: at % 2 === 0 ? `bad_${at}` : `Good ${at}` }));
    const report = checkedReport(await client.callTool("bulk_add_options", { targetingId, items }));
    expect(report.counts).toMatchObject({ succeeded: 57, failed: 57 });
    const { failures } = await detailOf(person, report.runId ?? "");
    expect(failures).toHaveLength(1);
    expect(failures[0]?.places).toBe(
      `items ${items.flatMap(({ name }, at) => (name.startsWith("bad") ? [at + 1] : [])).join(", ")}`,
    );
  });

  test("lists its requests, with those that were sent again and those of which items failed", async () => {
    const { client, control, sandbox, person } = await shared();
    const targetingId = await sandbox.targeting("Requested");
    await control("/seed", { options: [{ targeting: targetingId, name: "Good 1500" }] });
    await control("/faults", { faults: [{ on: "write", times: 1, kind: "busy", retryAfterMs: 50 }] });
    const items = Array.from({ length: 1600 }, (_, at) => ({ name: `Good ${at}` }));
    const { runId = "", counts } = checkedReport(
      await client.callTool("bulk_add_options", { targetingId, items, onExisting: "fail" }),
    );
    expect(counts).toMatchObject({ succeeded: 1599, failed: 1 });
    const list = await download(person, runId, "requests?from=0");
    const { rows, total } = z
      .object({ rows: z.array(z.object({ what: z.string(), result: z.string() })), total: z.number() })
      .parse(JSON.parse(list.text));
    expect([total, rows.length]).toEqual([2, 2]);
    expect(rows[0]?.result).toMatch(/^answered with status 409; sent again after \d+\.\d s$/);
    expect(rows[1]).toEqual({ what: "Add options: 1,600 items", result: "1 item failed" });
    expect(JSON.parse((await download(person, runId, "requests?from=1")).text).rows).toHaveLength(total - 1);
  });

  test("calls a request done only if its answer says so", async () => {
    const { client, control, sandbox, person } = await shared();
    const targetingId = await sandbox.targeting("Unanswered");
    const resultsOf = async (tool: string, call: object) => {
      const { runId = "" } = checkedReport(await client.callTool(tool, { targetingId, ...call }));
      const rows = z.object({ rows: z.array(z.object({ result: z.string() })) });
      return rows.parse(JSON.parse((await download(person, runId, "requests")).text)).rows.map(({ result }) => result);
    };
    const again = expect.stringMatching(/^no answer; sent again after \d+\.\d s$/);
    await control("/faults", { faults: [{ on: "write", times: 1, kind: "reset" }] });
    expect(await resultsOf("bulk_add_options", { items: [{ name: "Hats" }] })).toEqual([again, "done"]);
    const group = { items: [{ name: "Aisle", children: [{ name: "Hats" }] }], onExisting: "fail" };
    expect(await resultsOf("bulk_add_options", group)).toEqual(["1 item not applied"]);
  });

  test("that saved a file says where the file is and what it contains", async () => {
    const { client, person, folder, targetingId } = await deleted();
    const saveTo = join(folder, `saved ${targetingId}.csv`);
    const { structuredContent } = await client.callTool("list_options", { targetingId, saveTo });
    const { runId } = z.looseObject({ runId: z.string() }).parse(structuredContent);
    const { saved, downloads } = await detailOf(person, runId);
    expect([saved, downloads]).toEqual([{ path: saveTo, says: "1 option, 1 Context ID" }, []]);
    expect((await download(person, runId, "results")).status).toBe(404);
  });

  test("the sheet of an import is downloaded with its results, in the form in which it came", async () => {
    const { person, folder, sandbox, client } = await shared();
    const targetingId = await sandbox.targeting("Price list");
    await writeFile(join(folder, "prices.tsv"), "Option\tOwner\nSummer Shoes\tAnn\nBad_name\tBen\n");
    const made = await client.callTool("bulk_add_options", { targetingId, file: "prices.tsv" });
    const { runId } = z.object({ runId: z.string() }).parse(made.structuredContent);
    expect((await detailOf(person, runId)).downloads).toEqual(["sheet", "results", "rejects"]);
    const { status, headers, text } = await download(person, runId, "sheet");
    expect([status, headers.get("content-disposition")]).toEqual([200, 'attachment; filename="prices-results.tsv"']);
    const [header, done, failed] = text.split("\r\n");
    expect(header?.replace("\uFEFF", "")).toBe("Option\tOwner\tOption ID\tAction\tResult\tProblem\tHow to fix");
    expect(done).toMatch(/^Summer Shoes\tAnn\t\w{26}\tAdd\tDone\t\t$/);
    expect(failed).toMatch(/^Bad_name\tBen\t\tAdd\tFailed\t"?The name /);
    expect((await fetch(`${person.origin}/page/runs/${runId}/sheet`)).status).toBe(401);
  });

  test("what a run did is downloaded, and what belongs to nobody here is not there", async () => {
    const { person, runId } = await deleted();
    const { run, downloads } = await detailOf(person, runId);
    expect(run).toMatchObject({ status: "succeeded", actions: ["undo"] });
    expect(run.decided).toContain("on the page");
    expect(downloads).toEqual(["results", "removed"]);
    const results = await download(person, runId, "results");
    expect(results.headers.get("content-disposition")).toBe(`attachment; filename="${runId}-results.ndjson"`);
    expect(results.headers.get("x-content-type-options")).toBe("nosniff");
    const rows = results.text.trim().split("\n");
    expect(rows.map((row): unknown => JSON.parse(row))).toMatchObject([
      { index: 0, name: "Running", outcome: "succeeded" },
      { index: 1, name: "Hats", outcome: "succeeded" },
    ]);
    expect((await download(person, runId, "removed")).text).toContain('"r2"');
    for (const file of ["rejects", "plan", "journal", "input"]) {
      expect((await download(person, runId, file)).status).toBe(404);
    }
    expect((await download(person, "01ARZ3NDEKTSV4RRFFQ69G5FAV", "results")).status).toBe(404);
  });

  test("failures come with their remedies, and rejected rows as a file", async () => {
    const session = await deleted();
    const { person, targetingId } = session;
    const { runId = "" } = await session.write("bulk_add_options", {
      targetingId,
      items: [
        { name: "Shoes", contexts: ["x"] },
        { name: "New", contexts: ["n"] },
      ],
    });
    const { run, failures } = await detailOf(person, runId);
    expect(run.status).toBe("partial");
    expect(failures).toMatchObject([{ places: "item 1", message: expect.any(String) }]);
    expect(failures[0]?.remedy.length).toBeGreaterThan(5);
  });

  test("Undo plans the way back, which is approved on the page, and brings back what was deleted", async () => {
    const session = await deleted();
    const { person, runId, targetingId } = session;
    expect((await detailOf(person, runId)).undo).toBe("Undo restores all 2 under new IDs");
    expect((await person.press(runId, "undo")).status).toBe(200);
    const back = await newlyWaiting(person);
    expect(back).toMatchObject({ tool: "undo_run", actions: ["approve", "decline"] });
    expect(back.requestedBy).toMatch(/^you \(.+\)$/);
    expect(back.waiting?.effect).toMatch(/^Undoes an earlier run in "[^"]+": 2 will be undone with new IDs/);
    // The summary says that the IDs are new, and the table names the options. So no list below repeats both.
    expect(back.waiting?.consequence).toContain("2 restored options get new IDs");
    expect(back.waiting?.parts).toMatchObject([{ title: "Will be undone with new IDs", count: 2 }]);
    expect(back.waiting?.parts.filter(({ isNote }) => isNote)).toEqual([]);
    const { changes, downloads } = await detailOf(person, back.runId);
    expect(downloads).toEqual(["plan"]);
    expect(changes?.rows).toMatchObject([
      { kind: "created", group: "Shoes", after: { name: "Running", count: 2 } },
      { kind: "created", group: null, after: { name: "Hats", count: 1 } },
    ]);
    const whole: unknown = JSON.parse((await download(person, back.runId, "plan")).text);
    expect(whole).toMatchObject({ version: 1, exitCode: 2 });
    expect((await person.press(back.runId, "approve")).status).toBe(200);
    await expect.poll(async () => (await detailOf(person, back.runId)).run.status).toBe("succeeded");
    const there = await session.client.callTool("list_options", { targetingId, all: true });
    expect(JSON.stringify(there.structuredContent)).toMatch(/Running.*Hats|Hats.*Running/);
    expect(await detailOf(person, back.runId)).toMatchObject({
      run: { actions: ["undo"] },
      undo: "Undo deletes the 2 restored options",
    });
    expect((await person.press(back.runId, "approve")).status).toBe(409);
  });

  test("the table of an undo has the groups and options in the order in which they were", async () => {
    const { client, person, sandbox, write } = await shared();
    const targetingId = await sandbox.targeting("In order");
    const items = [
      { name: "Bags" },
      { name: "Shoes", children: [{ name: "Sneakers" }, { name: "Boots" }] },
      { name: "Aprons" },
      { name: "Hats", children: [{ name: "Wool" }, { name: "Caps" }] },
    ];
    await write("bulk_add_options", { targetingId, items });
    const namesOf = async (runId: string) => {
      const list = z.object({ rows: z.array(z.record(z.string(), z.unknown())) });
      const { rows } = list.parse(JSON.parse((await download(person, runId, "changes?limit=50")).text));
      const side = z.object({ name: z.string() });
      return rows.map(({ before, after }) => side.parse(before ?? after).name);
    };
    const names = ["Bags", "Shoes", "Sneakers", "Boots", "Aprons", "Hats", "Wool", "Caps"];
    const answer = client.callTool("delete_options", { targetingId, names });
    const { runId } = await newlyWaiting(person);
    const order = ["Shoes", "Sneakers", "Boots", "Hats", "Wool", "Caps", "Bags", "Aprons"];
    expect(await namesOf(runId)).toEqual(order);
    expect((await person.press(runId, "approve")).status).toBe(200);
    await answer;
    expect(await namesOf(runId)).toEqual(order);
    expect((await person.press(runId, "undo")).status).toBe(200);
    const back = await newlyWaiting(person);
    expect(await namesOf(back.runId)).toEqual(order);
    expect((await person.press(back.runId, "approve")).status).toBe(200);
    await expect.poll(async () => (await detailOf(person, back.runId)).run.status).toBe("succeeded");
    expect(await namesOf(back.runId)).toEqual(order);
  });

  test("Undo is offered again once the undo of a run was undone itself", async () => {
    const session = await deleted();
    const { person, runId, targetingId } = session;
    const undone = async (id: string) => {
      expect((await person.press(id, "undo")).status).toBe(200);
      const { runId: by } = await newlyWaiting(person);
      expect((await person.press(by, "approve")).status).toBe(200);
      await expect.poll(async () => (await detailOf(person, by)).run.status).toBe("succeeded");
      return by;
    };
    const back = await undone(runId);
    expect((await detailOf(person, runId)).run.actions).toEqual([]);
    expect((await person.press(runId, "undo")).status).toBe(409);
    await undone(back);
    expect(await detailOf(person, runId)).toMatchObject({
      run: { actions: ["undo"] },
      undone: { says: "Undone", by: back, rest: "that run was undone later" },
    });
    await undone(runId);
    const there = await session.client.callTool("list_options", { targetingId, all: true });
    expect(JSON.stringify(there.structuredContent)).toMatch(/Running.*Hats|Hats.*Running/);
  });

  test("a way back that no longer fits is stale, and is not approved", async () => {
    const session = await deleted();
    const { person, runId, targetingId } = session;
    await person.press(runId, "undo");
    const back = await newlyWaiting(person);
    await session.write("bulk_add_options", { targetingId, items: [{ name: "Hats", contexts: ["mine"] }] });
    expect((await person.press(back.runId, "approve")).status).toBe(409);
    await expect
      .poll(() =>
        person
          .runs()
          .find((run) => run.runId === back.runId)
          ?.waiting?.stale?.join(),
      )
      .toContain("Hats");
    expect((await person.press(back.runId, "decline")).status).toBe(200);
  });

  test("without the project's key nothing is undone; read-only shows no buttons", async () => {
    const session = await deleted({ live: true });
    const { runId, environment } = session;
    const other = browserOfTest();
    startCommand(["page"], { ...environment, ...other.env, TARGETING_MCP_PROJECT: "another" });
    const there = await personAt(await other.address());
    const lacks = /^This page lacks the address or the key of this run's project\. Start targeting-mcp page with/;
    const undo = expect.stringMatching(lacks);
    expect((await detailOf(there, runId)).run).toMatchObject({ actions: ["undo"], disabled: { undo } });
    const refused = await there.press(runId, "undo");
    expect([refused.status, await refused.json()]).toEqual([409, { message: undo }]);
    // The server still runs and waits, which the page must not deny.
    const waiting = session.client.callTool("delete_targeting", { ids: [session.targetingId] });
    const own = await newlyWaiting(session.person);
    const approve = () => there.runs().find((run) => run.runId === own.runId)?.disabled?.approve;
    await expect.poll(approve).toMatch(lacks);
    expect((await session.person.press(own.runId, "decline")).status).toBe(200);
    await waiting;
    const reading = browserOfTest();
    startCommand(["page"], { ...environment, ...reading.env, TARGETING_MCP_READ_ONLY: "true" });
    const reader = await personAt(await reading.address());
    expect((await detailOf(reader, runId)).run.actions).toEqual([]);
    expect((await reader.press(runId, "undo")).status).toBe(403);
  });

  test("a run goes by live, and Cancel stops it, also from another process", async () => {
    const session = await deleted({ live: true });
    const { environment, targetingId } = session;
    const other = browserOfTest();
    startCommand(["page"], { ...environment, ...other.env });
    const there = await personAt(await other.address());
    const [first, others] = [
      await hold(session.sandbox.url, "addOptions", { times: 1 }),
      await hold(session.sandbox.url, "addOptions", { nth: 2 }),
    ];
    const items = optionItems(20_000);
    const answer = session.client.callTool("bulk_add_options", { targetingId, items });
    const running = () => there.runs().find(({ tool, status }) => tool === "bulk_add_options" && status === "running");
    await expect.poll(() => running()?.counts.succeeded).toBe(0);
    await first();
    await expect.poll(() => running()?.counts.succeeded).toBe(5000);
    const run = running();
    expect(run?.actions).toEqual(["cancel"]);
    expect((await there.press(run?.runId ?? "", "cancel")).status).toBe(200);
    await others();
    expect(checkedReport(await answer).status).toBe("cancelled");
    await expect.poll(() => there.runs().find(({ runId }) => runId === run?.runId)?.status).toBe("cancelled");
  });
});

describe("what goes to the page besides changes", () => {
  /** Creates a deletion that was interrupted more than ten minutes ago, and starts a server that finds it. */
  async function cutShort() {
    const session = await deleted({ live: true });
    const { targetingId, environment, person } = session;
    const group = { name: "Group", contexts: [`of ${targetingId}`], children: optionItems(300) };
    await session.write("bulk_add_options", { targetingId, items: [group] });
    const release = await hold(session.sandbox.url, "deleteOptions");
    const names = optionItems(300).map(({ name }) => name);
    const answer = session.client.callTool("delete_options", { targetingId, names });
    const run = await newlyWaiting(person);
    await session.writesSent();
    await person.press(run.runId, "approve");
    await expect.poll(() => session.writesSent()).toContain("deleteOptions");
    expect((await person.press(run.runId, "cancel")).status).toBe(200);
    await release();
    expect(checkedReport(await answer).status).toBe("cancelled");
    const file = join(environment.TARGETING_MCP_STATE_DIR ?? "", "runs", run.runId, "run.json");
    const header = z.looseObject({ createdAt: z.number() }).parse(JSON.parse(await readFile(file, "utf8")));
    await writeFile(file, JSON.stringify({ ...header, createdAt: header.createdAt - 600_000 }));
    await expect.poll(() => person.runs().find(({ runId }) => runId === run.runId)?.status).toBe("cancelled");
    return { ...session, cut: run.runId };
  }

  test("resume_run of an old deletion waits there for a yes, and goes on with it", async () => {
    const { client, person, cut } = await cutShort();
    const answer = client.callTool("resume_run", { runId: cut });
    const approval = await newlyWaiting(person);
    expect(approval).toMatchObject({ tool: "resume_run", actions: ["approve", "decline"] });
    expect(approval.waiting?.effect).toMatch(/^It was interrupted: \d+ deletions may not be done yet\./);
    expect(approval.waiting?.parts).toEqual([expect.objectContaining({ title: "May not be done yet" })]);
    expect((await person.press(approval.runId, "approve")).status).toBe(200);
    expect(checkedReport(await answer)).toMatchObject({
      runId: cut,
      status: "succeeded",
      approval: { decision: "approved", channel: "page" },
    });
    const later = await client.callTool("get_run", { runId: approval.runId });
    expect(later.structuredContent).toMatchObject({ runId: cut, approval: { decision: "approved", channel: "page" } });
    expect((await person.press(approval.runId, "approve")).status).toBe(409);
  });

  test("a no to resume_run sends nothing more, and Resume run on the page is a yes of its own", async () => {
    const { client, person, cut } = await cutShort();
    const answer = client.callTool("resume_run", { runId: cut });
    const approval = await newlyWaiting(person);
    expect((await person.press(approval.runId, "decline")).status).toBe(200);
    expect(checkedReport(await answer)).toMatchObject({
      status: "cancelled",
      approval: { decision: "declined", channel: "page" },
    });
    expect((await person.press(cut, "resume")).status).toBe(200);
    await expect.poll(async () => (await detailOf(person, cut)).run.status).toBe("succeeded");
    expect((await detailOf(person, cut)).run.decided).toContain("on the page");
  });

  test("live event tests are sent once a person agreed there", async () => {
    const { client, person, control } = await deleted({ live: true });
    const made = await client.callTool("generate_event_tests", { eventNames: ["purchase"] });
    const { suiteId } = z.looseObject({ suiteId: z.string() }).parse(made.structuredContent);
    const sent = async () => z.object({ total: z.number() }).parse(await control("/events")).total;
    const answer = client.callTool("run_event_tests", { suiteId, target: "configured" });
    const approval = await newlyWaiting(person);
    expect(approval.waiting?.effect).toMatch(/sends \d+ test events to the LIVE event API/);
    expect(approval.waiting?.parts).toEqual([expect.objectContaining({ title: "Event names sent" })]);
    expect(await sent()).toBe(0);
    expect((await person.press(approval.runId, "approve")).status).toBe(200);
    expect((await answer).structuredContent).toMatchObject({
      suiteId,
      target: "configured",
      approval: { decision: "approved", channel: "page" },
    });
    const count = await sent();
    expect(count).toBeGreaterThan(0);
    expect((await person.press(approval.runId, "approve")).status).toBe(409);
    expect(await sent()).toBe(count);
    const told = await client.callTool("get_run", { runId: approval.runId });
    expect(told.structuredContent).toMatchObject({
      status: "succeeded",
      approval: { decision: "approved", channel: "page" },
    });
  });

  test.for(["ask", "strict"])(
    "a deletion whose planning outlasts its call comes there once it is planned, %s",
    async (confirm) => {
      const browser = browserOfTest();
      const session = await startSession({
        live: true,
        env: { ...browser.env, TARGETING_MCP_WAIT_MS: "1000", TARGETING_MCP_CONFIRM: confirm },
      });
      const { client, sandbox } = session;
      const targetingId = await sandbox.targeting("Sports fans");
      await sandbox.options(targetingId, [{ name: "Shoes", contexts: ["s"] }]);
      const release = await hold(sandbox.url, "listOptions");
      const told = checkedReport(await client.callTool("delete_options", { targetingId, names: ["Shoes"] }));
      expect(told.status).toBe("running");
      await release();
      const person = await personAt(await browser.address());
      const run = await newlyWaiting(person);
      expect(run).toMatchObject({ runId: told.runId, actions: ["approve", "decline"] });
      const waiting = checkedReport(await client.callTool("get_run", { runId: told.runId }));
      expect(waiting.status).toBe("needs_confirmation");
      expect(waiting.confirmation?.token).toBeUndefined();
      expect((await person.press(run.runId, "approve")).status).toBe(200);
      const done = async () => checkedReport(await client.callTool("get_run", { runId: told.runId }));
      await expect
        .poll(done)
        .toMatchObject({ status: "succeeded", approval: { decision: "approved", channel: "page" } });
    },
  );
});

test("a dry run of events is not among the runs, and its own page offers nothing to do", async () => {
  const { client, person } = await shared();
  const events = [
    { uid: "u", eventName: "app_open" },
    { uid: "u", eventName: "purchase" },
  ];
  const send = async (args: object) => {
    const { structuredContent } = await client.callTool("track_events", { events, ...args });
    return z.looseObject({ runId: z.string() }).parse(structuredContent).runId;
  };
  const [dryRun, sent] = [await send({ dryRun: true }), await send({})];
  await expect.poll(() => person.runs().some(({ runId }) => runId === sent)).toBe(true);
  expect(person.runs().some(({ runId }) => runId === dryRun)).toBe(false);
  const { run } = await detailOf(person, dryRun);
  expect(run).toMatchObject({ status: "planned", title: "Send 2 events", actions: [] });
});

describe("the sandbox of a server, on the page of its runs", () => {
  const hello = z.looseObject({ views: z.array(z.string()), environment: z.looseObject({ kind: z.string() }) });

  test("its events, targetings and faults are there, and come from the sandbox's own page", async () => {
    const browser = browserOfTest();
    const env = cleanEnvironment({ ...browser.env, TARGETING_MCP_SANDBOX_PORT: "0", TARGETING_MCP_WAIT_MS: "500" });
    const client = await CLIENTS["2026 client, legacy"]({ args: [COMMAND], env });
    let made = checkedReport(await client.callTool("create_targetings", { items: [{ name: "Spring" }] }));
    while (made.status === "running") made = checkedReport(await client.callTool("get_run", { runId: made.runId }));
    await client.callTool("delete_targeting", { ids: [made.results[0]?._id] });
    const person = await personAt(await browser.address());
    await newlyWaiting(person);
    const first = hello.parse(person.seen.find(({ kind }) => kind === "hello"));
    expect(first).toMatchObject({
      views: ["overview", "approvals", "runs", "targetings", "events", "faults"],
      environment: { kind: "sandbox", address: expect.stringMatching(/^127\.0\.0\.1:\d+$/) },
    });
    await client.callTool("track_event", { uid: "shopper-1", eventName: "app_open" });
    await expect
      .poll(() =>
        person.seen.some((message) => message.kind === "events" && JSON.stringify(message).includes("shopper-1")),
      )
      .toBe(true);
    const read = (path: string, headers: Record<string, string> = person.headers) =>
      fetch(`${person.origin}${path}`, { headers });
    expect(await (await read("/page/events?filter=app_open")).text()).toContain("shopper-1");
    expect((await read("/page/events", {})).status).toBe(401);
    const add = (headers: Record<string, string>) =>
      fetch(`${person.origin}/page/faults`, {
        method: "POST",
        headers: { "content-type": "application/json", ...person.headers, ...headers },
        body: JSON.stringify({ operation: "write", kind: "busy", times: 1 }),
      });
    expect((await add({})).status).toBe(403);
    expect((await add({ origin: "http://127.0.0.1:9" })).status).toBe(403);
    expect((await add({ origin: person.origin })).status).toBe(200);
    await expect
      .poll(() => person.seen.some((message) => message.kind === "faults" && JSON.stringify(message).includes("busy")))
      .toBe(true);
  });

  test("a live server without one shows its runs alone", async () => {
    const { person } = await shared({ live: true });
    const first = hello.parse(person.seen.find(({ kind }) => kind === "hello"));
    expect(first).toMatchObject({ views: ["overview", "approvals", "runs"], environment: { kind: "live" } });
  });
});

describe("what is shown of a run beside its row", () => {
  const list = z.looseObject({ total: z.number(), rows: z.array(z.looseObject({})) });

  test("each change with both sides, each problem by itself, who requested it with what, and how it went", async () => {
    const { person, client, sandbox, folder } = await shared({ live: true });
    const targetingId = await sandbox.targeting("Brands");
    await client.callTool("get_targeting", { targetingId });
    await writeFile(join(folder, "brands.csv"), "name,contextId\nShoes,c1\nA!,c2\nBags,c3\n");
    const imported = await client.callTool("bulk_add_options", { targetingId, file: join(folder, "brands.csv") });
    const { runId } = z.looseObject({ runId: z.string() }).parse(imported.structuredContent);
    await expect.poll(() => person.runs().find((run) => run.runId === runId)?.status).toBe("partial");
    expect(person.runs().find((run) => run.runId === runId)).toMatchObject({
      title: "Imported brands.csv into Brands: 2 of 3 rows",
      ...{ fileName: "brands.csv", client: "test-client", did: { created: 2, changed: 0, deleted: 0 } },
    });
    const read = async (path: string) =>
      (await fetch(`${person.origin}/page/runs/${runId}${path}`, { headers: person.headers })).json();
    expect(list.parse(await read("/changes")).rows).toEqual([
      { kind: "created", group: null, after: { name: "Shoes", count: 1, contextIds: ["c1"] } },
      { kind: "created", group: null, after: { name: "Bags", count: 1, contextIds: ["c3"] } },
    ]);
    expect(list.parse(await read("/changes?search=c3"))).toMatchObject({ total: 1 });
    expect(list.parse(await read("/failures")).rows).toMatchObject([
      { outcome: "failed", place: "line 3", value: "A!", problem: expect.stringContaining("not allowed") },
    ]);
    expect((await detailOf(person, runId)).failures).toMatchObject([
      { count: 1, cause: 'name contains "!"', places: "line 3" },
    ]);
    expect(await read("/failures?of=unknown")).toEqual({ rows: [], total: 0 });
    expect(await read("")).toMatchObject({
      ...{ story: [{ title: "Requested" }], run: { status: "partial", counts: { items: 3, failed: 1 } } },
      undo: "Undo deletes the 2 new options",
    });
  });

  test("a row that could not be read is listed with the name of its option, and options with several rows once", async () => {
    const { person, client, sandbox, folder } = await shared({ live: true });
    const targetingId = await sandbox.targeting("Hats");
    const failuresOf = async (rows: readonly string[]) => {
      const file = join(folder, "hats.csv");
      await writeFile(file, `name,contextId\n${rows.join("\n")}\n`);
      const { structuredContent } = await client.callTool("bulk_add_options", { targetingId, file });
      const { runId } = z.looseObject({ runId: z.string() }).parse(structuredContent);
      const answer = await fetch(`${person.origin}/page/runs/${runId}/failures`, { headers: person.headers });
      return list.extend({ note: z.string().optional() }).parse(await answer.json());
    };
    expect(await failuresOf(["Caps,c1", "Berets,4.71E+12"])).toEqual({
      total: 1,
      rows: [
        expect.objectContaining({ place: "line 3", value: "Berets", problem: expect.stringContaining('"4.71E+12"') }),
      ],
    });
    const merged = await failuresOf(["A_,a-1", "A_,a-2", "Bonnets,b-1", "Bonnets,4.71E+12", "C_,c-1", "A_,a-3"]);
    expect(merged.rows.map(({ place, value }) => `${place}: ${value}`)).toEqual([
      "line 2: A_",
      "line 5: Bonnets",
      "line 6: C_",
    ]);
    expect(merged.note).toBe(
      "2 options (4 rows of the file) and 1 row that could not be read. An option with several rows is listed once, at its first row.",
    );
  });

  test("rows that failed are grouped by what is wrong with them, in a few words each, the largest group first", async () => {
    const { person, client, sandbox, folder } = await shared({ live: true });
    const targetingId = await sandbox.targeting("Brands");
    const inGroups = ["Garden", "Kitchen"].flatMap((group) =>
      Array.from({ length: 22 }, (_, at) => `${group} ${at},${group},g-${at}`),
    );
    const long = "An extraordinarily long name of a brand ";
    const names = [1, 2, 3].map((at) => `${long}${at},,l-${at}`);
    const both = [1, 2].map((at) => `${long}_${at},,b-${at}`);
    const rows = [...inGroups, ...names, ...both, "A_,,a-1", "Round,,4.71E+12"];
    await writeFile(join(folder, "brands.csv"), `name,group,contextId\n${rows.join("\n")}\n`);
    const imported = await client.callTool("bulk_add_options", { targetingId, file: join(folder, "brands.csv") });
    const { runId } = z.looseObject({ runId: z.string() }).parse(imported.structuredContent);
    await expect.poll(() => person.runs().find((run) => run.runId === runId)?.status).toBe("failed");
    const { failures, reading } = await detailOf(person, runId);
    const blank = /^7 rows with a blank "group" below a filled one: read without a group/;
    expect(reading).toContainEqual(expect.stringMatching(blank));
    expect(failures).toMatchObject([
      { count: 44, cause: "group does not exist", places: "lines 2-45" },
      { count: 3, cause: "name over 36 characters", places: "lines 46-48" },
      { count: 2, cause: 'name over 36 characters, contains "_"', places: "lines 49-50" },
      { count: 1, cause: 'name contains "_"', places: "line 51" },
      { count: 1, cause: "Context ID rounded by a spreadsheet", places: "line 52" },
    ]);
  });
});
