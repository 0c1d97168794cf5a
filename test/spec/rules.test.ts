import { describe, expect, test } from "vitest";
import { contextIdProblem, trimContextId } from "../../src/spec/context-ids.ts";
import { codePoints, nameProblem } from "../../src/spec/names.ts";
import { routesWith } from "../../src/spec/routes.ts";
import { isUlid, ulidSource, ulidTime } from "../../src/spec/ulid.ts";

describe("names (management-api 8.3)", () => {
  test.each(["AB", "봄 세일", "ㄱㅎ", "a~b%c&d+e-f", "0".repeat(36), "가".repeat(36)])("%s is valid", (name) => {
    expect(nameProblem(name)).toBeUndefined();
  });

  test.each([
    ["", "tooShort"],
    ["A", "tooShort"],
    ["0".repeat(37), "tooLong"],
    [" AB", "outerSpace"],
    ["AB ", "outerSpace"],
    ["spring_sale", "characters"],
    ["v1.0", "characters"],
    ["[AB]", "characters"],
    ["日本", "characters"],
    ["A\u200bB", "characters"],
    ["AB\n", "characters"],
    ["\u1100\u1161", "characters"],
    ["A😀", "characters"],
  ])("%j is not: %s", (name, rule) => {
    expect(nameProblem(name)?.rule).toBe(rule);
  });

  test("lengths are code points", () => {
    expect([codePoints("가나"), codePoints("😀"), codePoints("\ud800")]).toEqual([2, 1, 1]);
  });
});

describe("Context IDs (management-api 8.1)", () => {
  test.each([
    ["a".repeat(256), undefined],
    ["a".repeat(257), "tooLong"],
    ["가".repeat(85), undefined],
    ["가".repeat(86), "tooLong"],
    ["", "empty"],
    ["\ud800", "halfCharacter"],
  ])("%j", (contextId, rule) => {
    expect(contextIdProblem(contextId)?.rule).toBe(rule);
  });

  test("surrounding white space does not count", () => {
    expect(trimContextId(" \t a b \n")).toBe("a b");
  });
});

describe("ULIDs", () => {
  test.each([
    ["01ARZ3NDEKTSV4RRFFQ69G5FAV", true],
    ["81ARZ3NDEKTSV4RRFFQ69G5FAV", false],
    ["01ARZ3NDEKTSV4RRFFQ69G5FA", false],
    ["01ARZ3NDEKTSV4RRFFQ69G5FAI", false],
  ])("%s: %s", (text, valid) => {
    expect(isUlid(text)).toBe(valid);
  });

  test("hold their time, and grow within a millisecond", () => {
    const next = ulidSource(
      () => 1_469_918_176_385,
      () => 0.999,
    );
    const made = Array.from({ length: 50 }, next);
    expect(made.every((ulid) => isUlid(ulid) && ulidTime(ulid) >= 1_469_918_176_385)).toBe(true);
    expect(made.toSorted()).toEqual(made);
    expect(new Set(made).size).toBe(50);
  });
});

describe("routes", () => {
  test("an operator's route counts instead of the assumed one", () => {
    const routes = routesWith({ addOptions: "POST /v2/{targetingId}/options" });
    expect(routes.addOptions).toMatchObject({ method: "POST", path: "/v2/{targetingId}/options" });
    expect(routes.createTargetings.path).toBe("/context-targeting/bulk/create");
  });

  test.each([{ addOption: "PUT /x" }, { addOption: "POST x" }, { addSomething: "POST /x" }])(
    "%j is refused by name",
    (overrides) => {
      expect(() => routesWith(overrides)).toThrow(/"add(Option|Something)"/);
    },
  );
});
