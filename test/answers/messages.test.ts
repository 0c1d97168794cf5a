import { describe, expect, test } from "vitest";
import { failureRow, groupFailures, messageFor } from "../../src/answers/failures.ts";
import { withoutResume } from "../../src/answers/message-words.ts";
import { requestFailure } from "../../src/answers/request-messages.ts";
import { RejectedError } from "../../src/api/errors.ts";
import { requestReason } from "../../src/changes/api-reasons.ts";
import type { Step } from "../../src/changes/rows/entries.ts";
import { StepMaker, sentFields } from "../../src/changes/rows/steps.ts";
import { OWN_CODES, type Reason, reason } from "../../src/runs/outcome.ts";
import { rowsOf } from "../support/rows.ts";

const ID = "01JABCDEFGHJKMNPQRSTVWXYZ0";
const OTHER = "01JABCDEFGHJKMNPQRSTVWXYZ1";

/**
 * The reasons of management-api 7.2 and 7.3, repeated here by hand: each code with its status, its operations and its
 * detail.
 */
const API_REASONS = rowsOf("api-reasons.ndjson", import.meta.dirname, reason);
/** Our own reasons, repeated here by hand, with every form of their details. */
const OWN_REASONS = rowsOf("own-reasons.ndjson", import.meta.dirname, reason);

/**
 * Words of things that an agent or a person can use: a tool, an argument, a setting, or a place in the console. Every
 * remedy must have one.
 */
const ACTION =
  /\b(call|give|set|choose|remove|delete|make|say|leave|take|end|check|change|fix|put|spread|try|look|create|add|write|use|type|widen|open|list_options|allowed|a context id has|copy|existing groups|similar names)\b/i;

test("a cycle of taken names is followed once, and blames no item for it", () => {
  const [length, inCycle] = [3000, 1500];
  let reads = 0;
  const taken = (object: number): Reason => ({
    code: object === 0 ? "INVALID_NAME" : "TARGETING_CATEGORY_NAME_DUPLICATE",
    operation: "updateOptions",
    // The later half is a cycle. The first half is a chain that ends with an invalid name.
    detail: { existingId: `id ${object === inCycle ? length - 1 : object - 1}` },
  });
  const counts = { items: length, succeeded: 0, alreadyDone: 0, failed: length, notApplied: 0, unknown: 0, pending: 0 };
  const groups = groupFailures({
    objects: { length, at: (object) => ({ index: object, name: `name ${object}` }) },
    requests: { planned: 0, sent: 0, resent: 0, waitedMs: 0 },
    stopped: undefined,
    updatedAt: 0,
    counts: () => counts,
    standing: () => "failed",
    idOf: (object) => `id ${object}`,
    reason: (object) => {
      reads += 1;
      return taken(object);
    },
  });
  expect(groups.map(({ errorCode, count, remedy }) => [errorCode, count, remedy.includes("Fix item 1,")])).toEqual([
    ["TARGETING_CATEGORY_NAME_DUPLICATE", length - inCycle, false],
    ["TARGETING_CATEGORY_NAME_DUPLICATE", inCycle - 1, true],
    ["INVALID_NAME", 1, false],
  ]);
  expect(reads).toBeLessThan(10 * length);
});

describe("each code has its own sentence and remedy", () => {
  test("the words", async () => {
    const told = [...API_REASONS, ...OWN_REASONS].map((reason) => {
      const { message, remedy } = messageFor(reason);
      return [`${reason.code} ${JSON.stringify(reason.detail ?? {})}`, `  ${message}`, `  ${remedy}`].join("\n");
    });
    await expect(`${told.join("\n\n")}\n`).toMatchFileSnapshot("messages.txt");
  });

  test("where a next step names resume_run, no sentence about it is left without a subject", () => {
    for (const reason of OWN_REASONS) {
      const left = withoutResume(messageFor(reason).remedy);
      expect(left, reason.code).not.toMatch(/resume_run|^It (?:sends|finishes)/);
    }
  });

  test("no two are the same, none is the one for unknown codes, and each says what to do", () => {
    const words = [...API_REASONS, ...OWN_REASONS].map((reason) => ({ reason, ...messageFor(reason) }));
    expect(new Set(words.map(({ message }) => message)).size).toBe(words.length);
    for (const { reason, message, remedy } of words) {
      expect(remedy, reason.code).toMatch(ACTION);
      expect(remedy).not.toContain("not in the documents of the API:");
      expect(`${message} ${remedy}`).not.toMatch(/undefined|null|NaN|\[object|\?[,;)]|(^|\s)\?/);
      expect(`${message} ${remedy}`).not.toContain("\u202E");
    }
  });

  test("people read which button to press or which command to type, and no name of a tool or an argument of one", async () => {
    const forAgents =
      /\b(?:[a-z]+_[a-z_]+|runId|onExisting|onlyEmpty|onUnknown|targetingId|make the call|(?:the|another) call)\b/;
    const differ = [...API_REASONS, ...OWN_REASONS].flatMap((reason) => {
      const agent = messageFor(reason);
      const [page, terminal, sheet] = [
        messageFor(reason, "page"),
        messageFor(reason, "terminal"),
        messageFor(reason, "sheet"),
      ];
      for (const { remedy } of [page, terminal, sheet]) expect(remedy).not.toMatch(forAgents);
      expect(sheet.remedy).not.toMatch(/Press|targeting-mcp (?:apply|runs)/);
      const texts = { agent: agent.remedy, page: page.remedy, terminal: terminal.remedy, sheet: sheet.remedy };
      return new Set(Object.values(texts)).size === 1
        ? []
        : [[reason.code, ...Object.entries(texts).map(([who, text]) => `  ${who}: ${text}`)]];
    });
    await expect(`${differ.map((lines) => lines.join("\n")).join("\n\n")}\n`).toMatchFileSnapshot(
      "people-messages.txt",
    );
  });

  test("no code of ours is without an example here", () => {
    expect(new Set(OWN_REASONS.map(({ code }) => code))).toEqual(new Set(Object.keys(OWN_CODES)));
  });

  test.each([
    ["AD_PRODUCT_TARGETING_POLICY_LIMIT_EXCEEDED", ["500", "503", ID, OTHER]],
    ["TARGETING_CATEGORY_LIMIT_EXCEEDED", ["100,000", ID]],
    ["TARGETING_CATEGORY_TREE_ITEMS_LIMIT_EXCEEDED", ["150", "151"]],
    ["TARGETING_COLLECTION_CONTEXT_DUPLICATED", ['"goal"', '"Ball games"', '"Sports fans"', '"net"', ID, "1 more"]],
    ["TARGETING_CATEGORY_NAME_DUPLICATE", [ID, OTHER]],
    ["TARGETING_NAME_DUPLICATE", [ID]],
  ])("%s tells the values of its detail", (code, values) => {
    const reason = API_REASONS.find((one) => one.code === code);
    const { message } = messageFor(reason ?? { code });
    for (const value of values) expect(message).toContain(value);
  });

  test("a code that no document has is quoted, with its status, and prototype names are such codes", () => {
    for (const code of ["SOMETHING_NEW", "constructor", "__proto__", "toString"]) {
      expect(messageFor({ code, statusCode: 418 }).message).toContain(`"${code}" (status 418)`);
    }
  });

  test("a detail of any shape breaks nothing", () => {
    const odd = [null, 0, "x", [], {}, [null], [[]], { a: 1 }, Number.NaN, true];
    const fields = ["existingId", "existingIds", "duplicateOfIndex", "conflicts", "products", "limit", "count"];
    for (const { code, operation } of API_REASONS) {
      for (const value of odd) {
        const detail = Object.fromEntries(fields.map((field) => [field, value]));
        const { message, remedy } = messageFor({ code, detail, ...(operation && { operation }) });
        expect(`${message} ${remedy}`).not.toMatch(/\[object|undefined/);
      }
    }
  });
});

describe("the nine cases of 7.4", () => {
  const make = new StepMaker(() => 0);
  const fields = { objects: [0] };
  const update = (changes: Parameters<StepMaker["updateOption"]>[1]): Step =>
    make.updateOption({ id: ID }, changes, fields);
  const words = (step: Step): string => {
    const { operation } = step;
    return messageFor({ code: "TARGETING_CATEGORY_NOT_SUPPORTED", operation, sent: sentFields(step) }).message;
  };
  const add = (item: Parameters<StepMaker["addOption"]>[0], parent?: string): Step =>
    make.addOption(item, { targeting: { id: ID }, ...(parent !== undefined && { parent: { id: parent } }) }, fields);

  test.each([
    ["a new option that does not fit its type", add({ name: "Ball", type: "collection" }), ["cases 1 to 3"]],
    ["a new sub-option", add({ name: "Ball" }, OTHER), ["case 4"]],
    ["a move", update({ parent: OTHER }), ["case 4", "case 5", "case 6"]],
    ["a detach", update({ parent: null }), ["case 5", "case 6"]],
    ["a move with a setting of groups", update({ parent: OTHER, exposeChildren: true }), ["case 5", "case 2"]],
    ["a setting of groups", update({ exposeChildren: true }), ["case 2"]],
    ["Context IDs taken away", update({ contexts: { remove: ["a"] } }), ["case 7"]],
    ["Context IDs set to none", update({ contexts: { set: [] } }), ["case 7"]],
    ["Context IDs added", update({ contexts: { add: ["a"] } }), ["case 9"]],
    ["Context IDs set", update({ contexts: { set: ["a"] } }), ["case 9"]],
    ["Context IDs exchanged", update({ contexts: { add: ["a"], remove: ["b"] } }), ["case 9"]],
    ["a new name", update({ name: "Ball" }), ["case 9"]],
    ["a delete", make.deleteOption({ id: ID }, true, fields), ["case 6"]],
  ])("%s", (_case, step, cases) => {
    expect(words(step).match(/cases? \d( to \d)?/g)).toEqual(cases);
  });

  test("list options of a regular option (case 8)", () => {
    const error = rejected("TARGETING_CATEGORY_NOT_SUPPORTED");
    expect(requestFailure(error).remedy).toContain("only an option group");
  });
});

function rejected(errorCode: string): RejectedError {
  return new RejectedError({
    operation: "listOptions",
    route: "GET /x",
    kind: "business",
    statusCode: 400,
    errorCode,
    detail: {},
    messages: [],
  });
}

test("a read refused with a name of the prototype's is an unknown code, not a crash", () => {
  for (const code of ["constructor", "toString", "__proto__"]) {
    expect(requestFailure(rejected(code)).message).toBe(`the service refused the request (status 400 "${code}")`);
    expect(requestReason("addOptions", rejected(code))).toMatchObject({ code });
  }
});

test("each of several objects is named only with what differs from the message, in words", () => {
  const lost = (detail: Record<string, unknown>) => ({ code: "NO_ANSWER", detail });
  const first = lost({
    because: "NO_ANSWER",
    reason: "the answer does not have the form of the API",
    setBy: "TARGETING_API_URL",
  });
  const other = lost({ because: "NO_ANSWER", reason: "the service answered with status 502" });
  expect(eachLine([first, lost({}), lost({})])).toBeUndefined();
  expect(eachLine([first, lost({}), other])).toBe("Each: item 3 (the service answered with status 502)");
});

test("an ellipsis never replaces a single place", () => {
  const lines = (count: number): string => {
    const [row] = groupFailures({
      objects: { length: count, at: (index) => ({ index, line: 8 + 4 * index }) },
      requests: { planned: 1, sent: 1, resent: 0, waitedMs: 0 },
      stopped: { cause: "finished" },
      updatedAt: 0,
      counts: () => ({ pending: 0, succeeded: 0, alreadyDone: 0, failed: count, notApplied: 0, unknown: 0 }),
      standing: () => "failed",
      reason: () => ({ code: "EMPTY_GROUP" }),
      idOf: () => undefined,
    }).map((group) => failureRow(group, { details: 0, places: 1, isBare: true }));
    return row?.lines.join() ?? "";
  };
  expect(lines(2)).toContain("EMPTY_GROUP, 2 lines (8, 12): ");
  expect(lines(3)).toContain("EMPTY_GROUP, 3 lines (8, …): ");
});

/** Returns the line about each object, if several objects failed with these reasons. */
function eachLine(reasons: readonly Reason[]): string | undefined {
  const counts = { pending: 0, succeeded: 0, alreadyDone: 0, failed: 0, notApplied: 0, unknown: reasons.length };
  const [group, ...more] = groupFailures({
    objects: { length: reasons.length, at: (index) => ({ index }) },
    requests: { planned: 1, sent: 1, resent: 0, waitedMs: 0 },
    stopped: { cause: "finished" },
    updatedAt: 0,
    counts: () => counts,
    standing: () => "unknown",
    reason: (object) => reasons[object],
    idOf: () => undefined,
  });
  if (group === undefined || more.length > 0) throw new Error("one group");
  return failureRow(group, { details: 20 }).lines.find((line) => line.startsWith("Each: "));
}
