import { describe, expect, test } from "vitest";
import * as z from "zod";
import { effectText, effectWords } from "../../src/answers/approvals.ts";
import {
  fullest,
  pageBudget,
  readCursor,
  renderAnswer,
  sizeOf,
  takeRows,
  tokensOf,
  writeCursor,
} from "../../src/answers/budget.ts";
import { fenced, quoteUntrusted, redactorFor } from "../../src/answers/fence.ts";
import { nextStepsOf } from "../../src/answers/next-steps.ts";
import { allowFolderRemedy } from "../../src/answers/request-messages.ts";
import { headline } from "../../src/answers/run-headline.ts";
import { renderReport } from "../../src/answers/run-report.ts";
import { resultRow } from "../../src/answers/run-results.ts";
import { resultSheetText } from "../../src/answers/sheets.ts";
import type { Loss } from "../../src/changes/plan/plan.ts";

describe("foreign text", () => {
  test.each([
    ["Sports ~%&+- 스포츠 123", '"Sports ~%&+- 스포츠 123"'],
    ['say "hi" \\', '"say \\"hi\\" \\\\"'],
    ["line\nbreak\ttab", '"line\\u{A}break\\u{9}tab"'],
    ["\u202Eright to left\u2066", '"\\u{202E}right to left\\u{2066}"'],
    ["zero\u200Bwidth\uFEFF\u00AD", '"zero\\u{200B}width\\u{FEFF}\\u{AD}"'],
    ["\u2028\u0085\u007F\u3164", '"\\u{2028}\\u{85}\\u{7F}\\u{3164}"'],
    ["\u{E0041}tag", '"\\u{E0041}tag"'],
    ["\uD800", '"\\u{D800}"'],
  ])("%j is shown as %s", (text, expected) => {
    expect(quoteUntrusted(text)).toBe(expected);
  });

  test("long text is cut, saying so", () => {
    expect(quoteUntrusted("가".repeat(350))).toBe(`"${"가".repeat(300)}" (and 50 more characters)`);
  });

  test("each fence has a tag of its own", () => {
    const one = fenced(["a", "b"]);
    expect(one).toMatch(/^<(untrusted-[0-9a-f]{4})>\na\nb\n<\/\1>$/);
    expect(fenced(["a", "b"])).not.toBe(one);
  });
});

test.each([
  ["pending", '"Shoes" (2 to add, 1 to remove)'],
  ["failed", '"Shoes" (2 to add, 1 to remove)'],
  ["succeeded", '"Shoes" (2 added, 1 removed)'],
] as const)("a row of a run says what was changed, and of an object that is %s what was not", (outcome, words) => {
  expect(resultRow({ index: 0, name: "Shoes", outcome, added: 2, removed: 1 }).line).toContain(words);
});

test("requests for which an answer has no room are not called more than those it shows", () => {
  const request = { operation: "addOptions", items: 218, contextIds: 424, bytes: 9000 } as const;
  const counts = { items: 1, succeeded: 0, alreadyDone: 0, failed: 0, notApplied: 0, unknown: 0, pending: 1 };
  const planned = (notes: readonly string[]) =>
    renderReport({
      environment: "sandbox",
      runId: "01J0000000000000000000000A",
      tool: "bulk_add_options",
      status: "planned",
      counts,
      plan: Array.from({ length: 44 }, () => request),
      failures: [],
      results: [],
      notes,
    }).text;
  expect(planned([])).toMatch(/^\d+ more requests in targeting:/m);
  expect(planned(["long ".repeat(2400)])).toMatch(/^44 requests in targeting:/m);
});

describe("pages", () => {
  test("rows end before the limit, but never without one", () => {
    const rows = Array.from({ length: 1000 }, (_, index) => `row number ${index}`);
    const budget = pageBudget();
    const { left } = budget;
    const taken = takeRows(rows, String, budget);
    expect(taken.length).toBeGreaterThan(100);
    expect(tokensOf(JSON.stringify(taken)) * 2).toBeLessThan(3500);
    expect(left - budget.left).toBeGreaterThan(3000);
    expect(takeRows(["x".repeat(100_000)], String, pageBudget())).toHaveLength(1);
    expect(takeRows(["x".repeat(100_000)], String, { left: 100 })).toEqual([]);
    expect(takeRows([], String, pageBudget())).toEqual([]);
  });

  test("what else is in the answer leaves less room for rows", () => {
    const rows = Array.from({ length: 1000 }, (_, index) => `row number ${index}`);
    const taken = (beside?: string) => takeRows(rows, String, pageBudget({ beside })).length;
    expect(taken("x".repeat(3000))).toBeLessThan(taken());
  });

  test("an answer has no field without a value and no line without words, and its fullest form that fits", () => {
    const answer = (rows: number) =>
      renderAnswer({ rows: Array.from({ length: rows }, () => "row"), note: undefined }, [
        `${rows} rows`,
        false,
        undefined,
      ]);
    expect(answer(1)).toEqual({ structured: { rows: ["row"] }, text: "1 rows", isError: false });
    expect(fullest([50, 20, 5], answer, sizeOf, 60).structured.rows).toHaveLength(20);
    expect(fullest([50, 20, 5], answer, sizeOf, 1).structured.rows).toHaveLength(5);
  });

  test("a cursor goes on with the same question only", () => {
    const position = z.strictObject({ top: z.int().min(0) });
    const query = { targetingId: "T", search: undefined };
    const cursor = writeCursor(query, { top: 50 });
    expect(readCursor(cursor, query, position)).toEqual({ top: 50 });
    expect(readCursor(cursor, { targetingId: "U" }, position)).toBeUndefined();
    expect(readCursor(writeCursor(query, { top: -1 }), query, position)).toBeUndefined();
    for (const bad of ["", "x", "!!!", "bnVsbA", "W10"]) expect(readCursor(bad, query, position)).toBeUndefined();
  });
});

describe("secrets", () => {
  const redactor = redactorFor(['abc"def/ghi', "abcd", "xyz"]);

  test("are replaced in text, as they are and encoded", () => {
    expect(redactor.text('key abc"def/ghi, json abc\\"def/ghi, address abc%22def%2Fghi')).toBe(
      "key [redacted], json [redacted], address [redacted]",
    );
  });

  test("are replaced everywhere in data", () => {
    expect(redactor.record({ a: ["abcd", { b: "x abcd y" }], abcd: 1, n: null })).toEqual({
      a: ["[redacted]", { b: "x [redacted] y" }],
      "[redacted]": 1,
      n: null,
    });
  });

  test("are found in JSON within JSON, and in addresses of either case", () => {
    const json = JSON.stringify({ body: JSON.stringify({ key: 'abc"def/ghi' }) });
    for (const text of [json, JSON.stringify({ text: json }), "a=abc%22def%2fghi&b"]) {
      expect(redactor.text(text)).not.toMatch(/def/);
      expect(redactor.holds({ deep: [{ text }] })).toBe(true);
    }
  });

  test("are replaced in bytes, and what holds none is left as it is", () => {
    const redactor = redactorFor(["sk-비밀-0123456789", "abcd1234efgh"]);
    const clean = (text: string) => redactor.bytes(Buffer.from(text)).toString("utf8");
    expect(clean('{"관심사":"sk-비밀-0123456789"}')).toBe('{"관심사":"[redacted]"}');
    expect(clean("x=abcd1234efgh&y=한")).toBe("x=[redacted]&y=한");
    const harmless = Buffer.from([0xff, 0xfe, 0x41]);
    expect(redactor.bytes(harmless)).toBe(harmless);
  });

  test("a text of three letters is no secret", () => {
    expect(redactor.text("xyz")).toBe("xyz");
  });

  test("one that may be a word is replaced where it stands alone, and no call is refused for it", () => {
    const { text, holds } = redactorFor(["test", "targeting", "k3y.5"]);
    expect(text('tests "test" testing-test, the targetingId, key=k3y.5, k3y.55')).toBe(
      'tests "[redacted]" testing-test, the targetingId, key=[redacted], k3y.55',
    );
    expect(text("a targeting")).toBe("a [redacted]");
    expect(holds({ name: "test", targeting: ["targeting"] })).toBe(false);
    expect(holds({ name: "k3y.5" })).toBe(true);
    expect(holds({ name: "k3y.55" })).toBe(false);
  });

  test("a real key counts wherever it stands", () => {
    const { text, holds } = redactorFor(["sk_live_0123", "abcdefghijklmnopqrst"]);
    expect(text("xsk_live_01234 and abcdefghijklmnopqrstuvw")).toBe("x[redacted]4 and [redacted]uvw");
    expect(holds(["xsk_live_01234"])).toBe(true);
    expect(holds({ abcdefghijklmnopqrstuvw: 1 })).toBe(true);
  });
});

describe("what undo restores of deleted objects", () => {
  const option = (name: string): Loss => ({ kind: "option", name, _id: "01J00000000000000000000001", count: 0 });

  test.each([
    [["Shoes"], "Undo brings it back under a new ID, so campaigns and ad products lose it."],
    [["Shoes", "Hats"], "Undo brings them back under new IDs, so campaigns and ad products lose them."],
    [
      ["Shoes", "bad_name"],
      "Undo brings them back under new IDs, so campaigns and ad products lose them. 1 does not come back: the service does not accept its name.",
    ],
    [["bad_name"], "Undo cannot bring it back: the service does not accept its name."],
    [["bad_name", "x"], "Undo cannot bring them back: the service does not accept their names."],
  ])("of %j", (names, words) => {
    expect(effectWords(names.map(option)).sentence.endsWith(words)).toBe(true);
  });
});

test.each([
  [11, "Option 4, Option 5, Option 6"],
  [12, "Option 4, … 2 more …, Option 7"],
])("of %i names, the answer omits none or several", (count, words) => {
  const objects = Array.from({ length: count }, (_, at) => ({ name: `Option ${at}`, says: "" }));
  const effect = { sentence: "", note: "", parts: [{ title: "Options deleted", count, objects }] };
  expect(effectText(effect).replaceAll('"', "")).toContain(words);
});

test.each(["list_options", "get_option", "get_run"])("%s that still saves a file says so", (tool) => {
  const counts = { items: 1, pending: 1, succeeded: 0, alreadyDone: 0, failed: 0, notApplied: 0, unknown: 0 };
  const run = { environment: "sandbox", runId: "RUN", tool, status: "running", counts } as const;
  expect(headline({ ...run, failures: [], results: [] })).toBe("The file is still being written. Run RUN, sandbox.");
});

test("a folder that is not allowed is to be allowed, or the data given, or saveTo left out", () => {
  const refused = { client: "codex-mcp-client", path: "/etc/report.xml", allowedDirs: ["/data"] };
  expect(allowFolderRemedy({ ...refused, isForSaving: true }, ":")).toMatch(/ restarts Codex\. Or leave saveTo out\.$/);
  expect(allowFolderRemedy({ ...refused, isForSaving: false }, ":")).toMatch(/ Or give the data in the call\.$/);
});

test("an interrupted run of events says to look for what may have been sent before it is resumed", () => {
  const counts = { items: 9, pending: 4, succeeded: 3, alreadyDone: 0, failed: 0, notApplied: 0, unknown: 2 };
  const about = { environment: "sandbox", runId: "RUN", tool: "track_events", status: "interrupted" } as const;
  const lost = {
    outcome: "unknown",
    errorCode: "EVENT_ANSWER_LOST",
    message: "",
    remedy: "",
    isOfFirst: false,
  } as const;
  const places = { count: 2, indexes: [3, 4], places: [], placesOmitted: false, examples: [], byLine: false } as const;
  const run = { ...about, counts, failures: [{ ...lost, ...places, isUnsure: true }], results: [] };
  expect(headline(run)).toMatch(/^Interrupted; sent 3 of 9 events; 2 unknown \(may have been sent\), 4 pending\. /);
  const [look, resume] = nextStepsOf(run);
  expect(look).toMatch(/^get_run .* before you send any of them again, and before you resume the run$/);
  expect(resume).toMatch(/^resume_run /);
});

test("the text about a sheet with results says when to resume the run first, and when to do only one of the two", () => {
  const about = { savedTo: "r.xlsx", isOver: true, again: "bulk_add_options {}", isAppliedAgain: false, isPart: false };
  const stopped = { ...about, results: new Map([["Not applied", 2]]), isStopped: true };
  expect(resultSheetText(stopped)).toContain("either with resume_run or with this file, not with both.\nRows that");
  expect(resultSheetText({ ...stopped, isStopped: false })).not.toContain("resume_run");
  const unknown = resultSheetText({ ...stopped, results: new Map([["Unknown", 1]]), unresolved: "R" });
  expect(unknown).toContain('\nNext: resume_run {"runId":"R"} finds out which unknown rows were applied');
});
