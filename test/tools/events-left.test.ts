import { mkdtemp, readFile, realpath, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { tokensOf } from "../../src/answers/budget.ts";
import { getRun } from "../../src/tools/get-run.ts";
import { resumeRun } from "../../src/tools/resume-run.ts";
import { trackEvent } from "../../src/tools/track-event.ts";
import { trackEvents } from "../../src/tools/track-events.ts";
import { answerOf, eventTools } from "../support/event-tools.ts";

const click = (uid: string, element_id = "b") => ({ uid, eventName: "click", element_id });

test("says whose later events were sent, or would be, before one that failed", async () => {
  const { context } = await eventTools();
  const cart = { eventName: "add_to_cart", item_id: "i", price: 1, quantity: 1 };
  const bad = { uid: "eve", eventName: "purchase" };
  const events = [click("ann"), click("eve"), bad, { uid: "eve", ...cart }, click("ann"), click("eve")];
  const planned = await answerOf(trackEvents, { events, dryRun: true }, context);
  expect(planned.text).toContain(
    'Item 3 would fail, and 2 later events of uid "eve" would be sent before it. To keep the order of each user,',
  );
  const sent = await answerOf(trackEvents, { events }, context);
  const note = "were already sent: if item 3 is sent now, it arrives after them. If the order matters, do not send it.";
  expect(sent.text).toContain(`2 later events of uid "eve" ${note}`);
  const shown = await answerOf(getRun, { runId: String(sent.structured.runId) }, context);
  expect(shown.text).toContain(`2 later events of its user ${note}`);
  const many = ["a", "b", "c", "d"].flatMap((uid) => [{ ...bad, uid }, click(uid)]);
  const { text } = await answerOf(trackEvents, { events: many }, context);
  expect(text).toContain('4 later events of 4 users (uid "a", "b", "c", …) were already sent: if an earlier event of ');
  const last = await answerOf(trackEvents, { events: [click("eve"), bad] }, context);
  expect(last.text).not.toContain("later event");
});

test("what would fail is not to be sent by itself where later events of its user would be sent", async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "targeting-mcp-")));
  const { context } = await eventTools({ allowedDirs: [folder] });
  const plannedOf = async (name: string, events: readonly object[]) => {
    await writeFile(join(folder, name), events.map((event) => JSON.stringify(event)).join("\n"));
    const { text, structured } = await answerOf(trackEvents, { file: name, dryRun: true }, context);
    const save = { runId: String(structured.runId), saveTo: `saved-${name}` };
    return { text, saved: (await answerOf(getRun, save, context)).text };
  };
  const bad = { uid: "eve", eventName: "purchase" };
  const overtaken = await plannedOf("order.ndjson", [bad, click("eve")]);
  expect(overtaken.text).not.toContain("give it as file");
  expect(overtaken.text).toMatch(/As a file, with reasons: get_run \{.*\}\. Fix these events in the original file$/m);
  expect(overtaken.saved).toContain(
    "to keep the order of each user, fix these events in the original file, and send all",
  );
  const apart = await plannedOf("apart.ndjson", [bad, click("ann")]);
  expect(apart.text).toContain("Or save what failed, fix it, and give it as file: get_run");
  expect(apart.saved).toContain("fix these rows, and give the file to track_events");
});

test("an event that fails is shown with its other mistakes, so that one correction is enough", async () => {
  const { context } = await eventTools();
  const items = [{ item_id: "a", price: "9.99" }, { itemId: "b" }];
  const events = [{ uid: "ann", eventName: "purchase", tx_id: 5, items, coupon: "X" }, click("eve")];
  for (const dryRun of [true, false]) {
    const { text } = await answerOf(trackEvents, { events, dryRun }, context);
    expect(text).toContain('an entry of items needs "item_id"');
    const [others = ""] = /^item 1, other findings: .*$/m.exec(text) ?? [];
    expect(others.split(" | ").map((one) => /(\S+) \(/.exec(one)?.[1])).toEqual([
      "tx_id",
      "items[0].price",
      "items[1].itemId",
      "coupon",
    ]);
  }
});

test("an event without a result is recognised after a run of any size, in a call of any size and in a file", async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "targeting-mcp-")));
  const { context, control } = await eventTools({ allowedDirs: [folder] });
  const events = Array.from({ length: 1100 }, (_, at) => click(`u-${at % 10}`, `e-${at}`));
  await control("/faults", { faults: [{ on: "trackEvent", kind: "reset", applied: true }] });
  const first = await answerOf(trackEvents, { events }, context);
  expect(first.structured).toMatchObject({ counts: { unknown: 1, succeeded: 1099 } });
  const unknown = { runId: String(first.structured.runId), outcome: "unknown", includeInput: true } as const;
  const lost = /"element_id":"e-(\d+)"/.exec((await answerOf(getRun, unknown, context)).text)?.[1];
  const place = Number(lost) + 1;
  const again = "an identical event was sent less than 10 minutes ago, and the result is unknown";
  const one = answerOf(trackEvent, events[place - 1] ?? click(""), context);
  await expect(one).rejects.toThrow(`${again}; nothing was sent`);
  const most = answerOf(trackEvents, { events: events.slice(0, 1000) }, context);
  await expect(most).rejects.toThrow(`${again} (item ${place} of this call); nothing was sent`);
  const rows = events.map(({ uid, element_id }) => `${uid},click,${element_id}`);
  await writeFile(join(folder, "log.csv"), ["uid,eventName,element_id", ...rows].join("\n"));
  const file = answerOf(trackEvents, { file: "log.csv" }, context);
  await expect(file).rejects.toThrow(`${again} (line ${place + 1} of this call); nothing was sent`);
  const other = await answerOf(trackEvents, { events: [click("u-1", "new")] }, context);
  expect(other.structured).toMatchObject({ counts: { succeeded: 1 } });
});

test("the same call joins its own run, also where another run has an unknown result of other events", async () => {
  const { context, control } = await eventTools();
  const lose = (nth: number) =>
    control("/faults", { faults: [{ on: "trackEvent", nth, kind: "reset", applied: true }] });
  const events = [click("a"), click("b"), click("c")];
  await lose(1);
  const first = await answerOf(trackEvents, { events }, context);
  expect(first.structured).toMatchObject({ counts: { unknown: 1, succeeded: 2 } });
  await lose(1);
  const [ownLost] = z
    .tuple([z.looseObject({ index: z.number() })])
    .rest(z.unknown())
    .parse(first.structured.results);
  const other = events.filter((_, index) => index !== ownLost.index).slice(0, 1);
  expect((await answerOf(trackEvents, { events: other }, context)).structured).toMatchObject({
    counts: { unknown: 1 },
  });
  const again = await answerOf(trackEvents, { events }, context);
  expect(again.structured).toMatchObject({ runId: first.structured.runId });
  expect(again.text).toContain("An identical call was made before and this is its run; nothing was sent now");
});

test("a dry run of a call that was made before says what this call would still send", async () => {
  const { context, control } = await eventTools();
  await control("/faults", { faults: [{ on: "trackEvent", kind: "reset", applied: true, times: 2 }] });
  const events = [...Array.from({ length: 8 }, (_, at) => click(`u-${at}`)), click("u-0", "c")];
  const { structured } = await answerOf(trackEvents, { events }, context);
  expect(structured).toMatchObject({ counts: { succeeded: 7, unknown: 2 } });
  const before = `The same call was made before (run ${String(structured.runId)}): without dryRun, it`;
  const resend = await answerOf(trackEvents, { events, dryRun: true, onUnknown: "resend" }, context);
  expect(resend.text).toMatch(/^Dry run; nothing was sent\. Would send 2 of 9 events; 7 already sent\. /);
  expect(resend.text).toContain(`${before} continues that run, and sends only what is left.`);
  expect(resend.text).not.toContain("later event");
  expect(resend.text).toContain("Next: the same call without dryRun sends 2 events");
  const report = await answerOf(trackEvents, { events, dryRun: true }, context);
  expect(report.text).toMatch(/ Would send no event; 7 already sent, 2 unknown /);
  expect(report.text).toContain(`${before} returns that run, and sends nothing.`);
  expect(report.text).toContain('Next: the same call with onUnknown "resend" may record 2 events twice');
  const sent = await answerOf(trackEvents, { events, onUnknown: "resend" }, context);
  expect(sent.structured).toMatchObject({ runId: structured.runId, counts: { succeeded: 9 }, requests: { resent: 2 } });
  const after = await answerOf(trackEvents, { events, dryRun: true }, context);
  expect(after.text).toContain("Would send 9 events.");
});

test("get_run shows the cells of rows that were refused while they were read", async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "targeting-mcp-")));
  const { context } = await eventTools({ allowedDirs: [folder] });
  await writeFile(join(folder, "log.csv"), "uid,eventName,tx_id\nu,purchase,1.23E+15\nu,click,\nu,purchase,T-1");
  for (const dryRun of [true, false]) {
    const { structured } = await answerOf(trackEvents, { file: "log.csv", dryRun }, context);
    const asked = { runId: String(structured.runId), outcome: "failed", includeInput: true } as const;
    const shown = await answerOf(getRun, asked, context);
    expect(shown.text).toContain('line 2: {"uid":"u","eventName":"purchase","tx_id":"1.23E+15"}');
    expect(shown.text).toContain('line 3: {"uid":"u","eventName":"click"}');
  }
});

test("an event that the key was refused for is not applied, and the resumed run sends it first", async () => {
  const { context, control, sandbox } = await eventTools();
  await control("/faults", { faults: [{ on: "trackEvent", kind: "status", status: 401 }] });
  const events = ["1", "2", "3"].map((page_id) => ({ uid: "h", eventName: "page_view", page_id }));
  const refused = await answerOf(trackEvents, { events }, context);
  expect(refused.text).toMatch(/^No event was sent: all 3 not applied\. /);
  expect(refused.text).toMatch(
    /EVENTS_ENDED, 3 items \(1-3\).*: no event can be sent: .*EVENT_APP_KEY.* Then call resume_run/,
  );
  expect(refused.structured).toMatchObject({ requests: { sent: 1 } });
  const resumed = await answerOf(resumeRun, { runId: String(refused.structured.runId) }, context);
  expect(resumed.structured).toMatchObject({ counts: { succeeded: 3 } });
  expect(sandbox.events().map(({ text }) => JSON.parse(text).page_id)).toEqual(["1", "2", "3"]);
});

test("events with an unknown result are saved as a file to send, of a list and of a sheet", async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "targeting-mcp-")));
  const { context, control } = await eventTools({ allowedDirs: [folder] });
  await writeFile(join(folder, "log.csv"), "uid,eventName,element_id\nd,click,b\ne,click,b\nf,click,b");
  for (const given of [{ events: ["a", "b", "c"].map((uid) => click(uid)) }, { file: "log.csv" }]) {
    await control("/faults", { faults: [{ on: "trackEvent", kind: "reset", applied: true, times: 2 }] });
    const lost = await answerOf(trackEvents, given, context);
    const asked = { runId: String(lost.structured.runId), outcome: "unknown" } as const;
    const name = `unknown-${asked.runId}.ndjson`;
    const saved = await answerOf(getRun, { ...asked, saveTo: name }, context);
    expect(saved.text).toMatch(
      /^Saved 2 events with an unknown result, .*\nNext: look for them with inspect_events, remove /,
    );
    const lines = (await readFile(join(folder, name), "utf8")).trim().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toEqual([click(expect.any(String)), click(expect.any(String))]);
  }
});

test("a dry run with many kinds of failures shows each reason whole, and those below one heading together", async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "targeting-mcp-")));
  const { context } = await eventTools({ allowedDirs: [folder] });
  const rows = [
    ...["u,purchase,1.23E+15,,,", "u,page_veiw,,,,", "u,View Item,,i,,", "u,add_to_cart,,i,1,", "u,refund,,,,"],
    ...["u,view_item,,,,", ",app_open,,,,", 'u,view_item,,i,"1,037",', "u,add_to_cart,,i,1,two", "u,purchase,T,,,"],
  ];
  const many = Array.from({ length: 30 }, (_, at) => rows.map((row) => row.replace(/^u/, `스웨터-${at}`))).flat();
  await writeFile(join(folder, "log.csv"), ["uid,eventName,tx_id,item_id,price,quantity", ...many].join("\n"));
  const { text, structured } = await answerOf(trackEvents, { file: "log.csv", dryRun: true }, context);
  expect(tokensOf(JSON.stringify(structured)) + tokensOf(text)).toBeLessThan(2500);
  const lines = text.split("\n");
  const heading = lines.findIndex((line) => line.startsWith("EVENT_IGNORED, 150 lines:"));
  for (const reason of lines.slice(heading + 1, heading + 6)) {
    expect(reason).toMatch(/^30 lines \(\d+, .*…\): .*\(event-tracking-api 7\)\. (?:Send|Add) .*\.$/);
  }
  expect(text).toContain('"uid" is missing (event-tracking-api 2.1). Add "uid".');
});

test("get_run shows the groups of events with questionable results that the first answer had no room for", async () => {
  const { context } = await eventTools();
  const item = { uid: "u", eventName: "view_item", item_id: "i" };
  const odd = ["price", "item_name", "brand", "item_category", "platform", "ref", "camp"].map((name, at) => [name, at]);
  const events = [
    ...odd.map(([name]) => ({ ...item, [name ?? ""]: ["x"] })),
    ...["sign_up", "push_clicks", "page_view", "click", "view_item", "purchase", "view_content", "add_to_cart"].flatMap(
      (eventName, at) => [
        { uid: `가나${at}`, eventName },
        { uid: `가나${at}`, eventName: `${eventName}s 없는 이름` },
      ],
    ),
  ];
  const { text, structured } = await answerOf(trackEvents, { events, dryRun: true }, context);
  const runId = String(structured.runId);
  expect(text).toMatch(
    new RegExp(`^\\d+ more groups? of events, by their expected result: get_run \\{"runId":"${runId}"\\}\\.$`, "m"),
  );
  const shown = await answerOf(getRun, { runId }, context);
  for (const [name] of odd) expect(shown.text).toContain(`"${name}" is`);
  expect(shown.text).not.toContain("more group");
  expect(tokensOf(JSON.stringify(shown.structured)) + tokensOf(shown.text)).toBeLessThan(3500);
});

test("files without events, and arguments that do not fit a file, are refused with what to do", async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "targeting-mcp-")));
  const { context, sandbox } = await eventTools({ allowedDirs: [folder] });
  for (const name of ["zero.json", "zero.ndjson"]) await writeFile(join(folder, name), "");
  await writeFile(join(folder, "one.csv"), "uid,eventName\nu,app_open");
  const send = (given: z.input<ReturnType<typeof trackEvents.input>>) => answerOf(trackEvents, given, context);
  await expect(send({ file: "zero.json" })).rejects.toThrow("the file is empty");
  for (const dryRun of [true, false]) {
    await expect(send({ file: "zero.ndjson", dryRun })).rejects.toThrow("the file contains no events");
  }
  await expect(send({ file: "one.csv", sheet: "2" })).rejects.toThrow('"one.csv" is a text file and has no sheets');
  expect(sandbox.events()).toHaveLength(0);
  expect((await send({ file: "one.csv", sheet: 1 })).isError).toBe(false);
});

test("the failed events of a call's own list cannot be saved, and the answer says how to see them", async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "targeting-mcp-")));
  const { context } = await eventTools({ allowedDirs: [folder] });
  const { structured } = await answerOf(trackEvents, { events: [{ uid: "u", eventName: "click" }] }, context);
  const saving = answerOf(getRun, { runId: String(structured.runId), saveTo: "failed.ndjson" }, context);
  await expect(saving).rejects.toMatchObject({
    message: "the events of this run were given in the call, so no file with their results can be saved",
    remedy: `get_run {"runId":"${structured.runId}","outcome":"failed","includeInput":true} shows the failed events.`,
  });
});

test("what the service says about a refused event is shown, with the setting that is in use", async () => {
  const { context, control } = await eventTools();
  await control("/faults", { faults: [{ on: "trackEvent", kind: "status", status: 400 }] });
  const { text } = await answerOf(trackEvents, { events: [click("u")] }, context);
  expect(text).toMatch(
    /refused the request \(status 400\), and says ".+": the event was not recorded\. Change the event/,
  );
});

test("an answer with cut reasons says where they are whole", async () => {
  const { context } = await eventTools();
  const long = (at: number) => ({ ...click("u"), [`a_long_name_of_a_parameter_${at}`]: "x".repeat(3000) });
  const textOf = async (events: object[]) => (await answerOf(trackEvents, { events, dryRun: true }, context)).text;
  const many = Array.from({ length: 25 }, (_, at) => long(at));
  const line = /^Some of these texts are cut \(…\)\. They are whole in targeting:\/\/runs\/\w+\/results\.$/m;
  expect(await textOf(many)).toMatch(line);
  expect(await textOf(many.slice(0, 2))).not.toMatch(line);
});
