import { describe, expect, test } from "vitest";
import { messageFor } from "../../src/answers/failures.ts";
import { requestFailure } from "../../src/answers/request-messages.ts";
import { RejectedError } from "../../src/api/errors.ts";
import type { Step } from "../../src/changes/rows/entries.ts";
import { StepMaker, sentFields } from "../../src/changes/rows/steps.ts";
import { requestReason } from "../../src/changes/state/api-reasons.ts";
import { OWN_CODES, type Reason } from "../../src/runs/outcome.ts";

const ID = "01JABCDEFGHJKMNPQRSTVWXYZ0";
const OTHER = "01JABCDEFGHJKMNPQRSTVWXYZ1";

/** Management-api 7.2 and 7.3, by hand: each code with its status, where it can come from, and its detail. */
const API_REASONS: readonly Reason[] = [
  {
    code: "AD_PRODUCT_TARGETING_POLICY_LIMIT_EXCEEDED",
    statusCode: 400,
    operation: "addOptions",
    detail: { limit: 500, count: 503, products: [ID, OTHER] },
  },
  {
    code: "TARGETING_CATEGORY_LIMIT_EXCEEDED",
    statusCode: 400,
    operation: "addOptions",
    detail: { targeting: ID, limit: 100_000 },
  },
  { code: "TARGETING_CATEGORY_LOCKED", statusCode: 400, operation: "updateOptions" },
  { code: "TARGETING_CATEGORY_NOT_SUPPORTED", statusCode: 400, operation: "updateOptions", sent: ["name"] },
  {
    code: "TARGETING_CATEGORY_TREE_ITEMS_LIMIT_EXCEEDED",
    statusCode: 400,
    operation: "deleteOptions",
    detail: { limit: 150, count: 151 },
  },
  {
    code: "TARGETING_COLLECTION_CONTEXT_DUPLICATED",
    statusCode: 400,
    operation: "addOptions",
    detail: {
      conflicts: [
        {
          value: "goal",
          collection: { _id: ID, name: "Ball games" },
          targeting: { _id: OTHER, name: "Sports fans" },
        },
        { value: "net", collection: {} },
        { value: "ball", collection: { _id: ID } },
        { value: "shoe" },
      ],
    },
  },
  { code: "TARGETING_CONTEXT_LIMIT_EXCEEDED", statusCode: 400, operation: "updateOptions" },
  { code: "TARGETING_LOCKED", statusCode: 400, operation: "deleteTargetings" },
  { code: "PROJECT_NOT_FOUND", statusCode: 404, operation: "addOptions" },
  { code: "TARGETING_CATEGORY_NOT_FOUND", statusCode: 404, operation: "addOptions" },
  { code: "TARGETING_CATEGORY_NOT_FOUND", statusCode: 404, operation: "updateOptions" },
  { code: "TARGETING_NOT_FOUND", statusCode: 404, operation: "deleteTargetings" },
  {
    code: "CONTEXT_TARGETING_WRITE_IN_PROGRESS",
    statusCode: 409,
    operation: "addOptions",
    detail: { retryAfterMs: 1500 },
  },
  {
    code: "TARGETING_CATEGORY_NAME_DUPLICATE",
    statusCode: 409,
    operation: "addOptions",
    detail: { existingIds: [ID, OTHER] },
  },
  {
    code: "TARGETING_CATEGORY_NAME_DUPLICATE",
    statusCode: 409,
    operation: "updateOptions",
    detail: { duplicateOfIndex: 7 },
  },
  { code: "TARGETING_NAME_DUPLICATE", statusCode: 409, operation: "renameTargetings", detail: { existingId: ID } },
  { code: "TARGETING_NAME_DUPLICATE", statusCode: 409, operation: "createTargetings" },
  { code: "UNCATCHED", statusCode: 500, operation: "addOptions" },
];

/** Reasons of our own, by hand, with every form of their detail. */
const OWN_REASONS: readonly Reason[] = [
  { code: "INVALID_NAME", detail: { rules: ["tooShort"], length: 1 } },
  { code: "INVALID_NAME", detail: { rules: ["decomposed", "tooLong", "outerSpace"], length: 37 } },
  { code: "INVALID_NAME", detail: { rules: ["characters"], length: 3, characters: ["_", "/", "\u202E"] } },
  { code: "INVALID_NAME", detail: { rule: "outerSpace", length: 5 } },
  { code: "INVALID_ID", detail: { field: "parent", value: "x\n" } },
  { code: "INVALID_CONTEXT_ID", detail: { rule: "empty", bytes: 0, position: 3, count: 1, value: "" } },
  { code: "INVALID_CONTEXT_ID", detail: { rule: "tooLong", bytes: 257, position: 0, count: 2, value: "xxxx" } },
  ...[
    "childrenOfAtomic",
    "exposeChildrenOfAtomic",
    "parentAndParentName",
    "groupWithParent",
    "noChange",
    "ownParent",
    "noOption",
    "nameWithoutTargeting",
    "setWithAddOrRemove",
    "addAndRemove",
  ].map((problem) => ({ code: "INVALID_ITEM", detail: { problem } })),
  { code: "INVALID_ROW", detail: { problem: "damaged", what: "Context ID", value: "1.23E+15", damage: "scientific" } },
  { code: "INVALID_ROW", detail: { problem: "damaged", what: "name", value: "#N/A", damage: "formulaError" } },
  {
    code: "INVALID_ROW",
    detail: { problem: "damaged", what: "Context ID", value: "a\u200bb", damage: "invisible", characters: ["U+200B"] },
  },
  { code: "INVALID_ROW", detail: { problem: "notAList", value: "[a" } },
  { code: "INVALID_ROW", detail: { problem: "otherTargeting", value: "Summer" } },
  { code: "INVALID_ROW", detail: { problem: "action", value: "Pause" } },
  { code: "INVALID_ROW", detail: { problem: "actionElsewhere", action: "remove", does: "edit" } },
  { code: "INVALID_ROW", detail: { problem: "actionElsewhere", action: "edit", does: "add" } },
  { code: "INVALID_ROW", detail: { problem: "removeElsewhere" } },
  {
    code: "INVALID_ROW",
    detail: { problem: "otherName", value: "Football", name: "Soccer", _id: "01J0000000000000000000000A" },
  },
  { code: "INVALID_ROW", detail: { problem: "tooManyCells", columns: 2 } },
  { code: "INVALID_ROW", detail: { problem: "type", value: "group" } },
  { code: "INVALID_ROW", detail: { problem: "exposeChildren", value: "maybe" } },
  { code: "INVALID_ROW", detail: { problem: "op", value: "drop" } },
  { code: "INVALID_ROW", detail: { problem: "noOption" } },
  { code: "INVALID_ROW", detail: { problem: "noContextId" } },
  { code: "INVALID_ROW", detail: { problem: "rowsDisagree", column: "parentName" } },
  { code: "INVALID_ROW", detail: { problem: "spoilt", line: 7 } },
  { code: "INVALID_ROW", detail: { problem: "notJson" } },
  { code: "INVALID_ROW", detail: { problem: "noObject" } },
  { code: "INVALID_ROW", detail: { problem: "unknownField", field: "colour", valid: ["name"] } },
  { code: "INVALID_ROW", detail: { problem: "fieldType", field: "name", expected: "string" } },
  { code: "DUPLICATE_IN_INPUT", detail: { duplicateOfIndex: 4, field: "name" } },
  { code: "DUPLICATE_IN_INPUT", detail: { duplicateOfIndex: 4, field: "_id" } },
  { code: "NAME_NOT_FOUND", detail: { field: "parentName", value: "Ball", groups: ["Ball games", "Water"] } },
  { code: "NAME_NOT_FOUND", detail: { field: "name", value: "Ball" } },
  { code: "NAME_NOT_FOUND", detail: { field: "currentName", value: "Bal", near: ["Ball", "Balls"] } },
  { code: "NAME_NOT_FOUND", detail: { field: "currentName", of: "targetings", value: "Sprig", near: ["Spring"] } },
  { code: "NAME_NOT_FOUND", detail: { field: "currentName", of: "targetings", value: "Spring", now: "Summer" } },
  { code: "NAME_AMBIGUOUS", detail: { field: "currentName", of: "targetings", value: "Spring", ids: [ID, OTHER] } },
  { code: "EXISTS" },
  { code: "NOT_EMPTY", detail: { contextCount: 12, childCount: 3 } },
  { code: "NAME_AMBIGUOUS", detail: { field: "parentName", value: "Ball games", ids: [ID, OTHER] } },
  { code: "TOO_MANY_CONTEXT_IDS", detail: { count: 50_001, limit: 50_000 } },
  { code: "TOO_MANY_CONTEXT_IDS", detail: { bytes: 8_400_000, limitBytes: 8_388_608 } },
  { code: "ITEM_TOO_LARGE" },
  { code: "EMPTY_GROUP" },
  { code: "PLAN_STALE", detail: { field: "contexts", planned: 12, service: 14 } },
  { code: "NO_FREE_PLACE", detail: { limit: 100_000, there: 100_000 } },
  { code: "PLAN_STALE_ELSEWHERE" },
  { code: "UNDONE" },
  { code: "NEEDS_FAILED", detail: { needs: 0 } },
  { code: "NO_ANSWER", detail: { reason: "no answer in time" } },
  { code: "NOT_SENT", detail: { reason: "connection refused", network: "refused", setBy: "TARGETING_API_URL" } },
  { code: "BUSY", statusCode: 409 },
  { code: "RATE_LIMITED", statusCode: 429, detail: { retryAfterMs: 300_000 } },
  { code: "CANCELLED" },
  { code: "NOT_PLANNED", detail: { effect: "ambiguous", reason: "no answer in time" } },
  {
    code: "NOT_PLANNED",
    detail: { effect: "rejected", kind: "business", statusCode: 404, errorCode: "TARGETING_NOT_FOUND", route: "GET /" },
  },
  { code: "NOT_PLANNED", detail: { effect: "file", message: "the file is empty", remedy: "Give one with rows." } },
  {
    code: "FILE_UNREADABLE",
    detail: { effect: "file", message: "the file is empty", remedy: "Its first line names columns: uid." },
  },
  { code: "NOT_SAVED", detail: { effect: "notSent", reason: "connection refused" } },
  { code: "WITHDRAWN" },
  { code: "NOT_DECIDED" },
  { code: "DECLINED" },
  { code: "INTERRUPTED" },
  { code: "RUN_ENDED", detail: { because: "UNAUTHORIZED" } },
  { code: "PARTLY_APPLIED", detail: { because: "TARGETING_CONTEXT_LIMIT_EXCEEDED" } },
  { code: "OWNER_UNCLEAR", detail: { existingIds: [ID] } },
  { code: "STOPPED_BY_ERROR", detail: { error: "no space left on device" } },
  { code: "REJECTED", statusCode: 418, detail: { messages: ["teapot"] } },
  { code: "VALIDATION", statusCode: 400, detail: { messages: ["name must be shorter", "type is unknown"] } },
  { code: "UNAUTHORIZED", statusCode: 401 },
  { code: "FORBIDDEN", statusCode: 403 },
  {
    code: "WRONG_ROUTE",
    statusCode: 404,
    detail: { route: "POST /context-targeting/category/bulk/create", setBy: "TARGETING_API_URL" },
  },
  {
    code: "REDIRECTED",
    statusCode: 302,
    detail: {
      route: "POST /context-targeting/bulk/create",
      messages: ["https://login.example.com/"],
      setBy: "TARGETING_API_URL",
    },
  },
  { code: "FOREIGN_ANSWER", statusCode: 403, detail: { messages: ["Access denied"], setBy: "TARGETING_API_URL" } },
  { code: "TOO_LARGE", statusCode: 413 },
];

/** Remedies name something that an agent or a person can do: a tool, an argument, a setting, a place in the console. */
const ACTION =
  /\b(call|give|set|choose|remove|delete|make|say|leave|take|end|check|change|fix|put|spread|try|look|create|add|write|use|type|widen|open|list_options|allowed|a context id has|its groups|similar names)\b/i;

describe("each code has its own sentence and remedy", () => {
  test("the words", async () => {
    const told = [...API_REASONS, ...OWN_REASONS].map((reason) => {
      const { message, remedy } = messageFor(reason);
      return [`${reason.code} ${JSON.stringify(reason.detail ?? {})}`, `  ${message}`, `  ${remedy}`].join("\n");
    });
    await expect(`${told.join("\n\n")}\n`).toMatchFileSnapshot("messages.txt");
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
