import { describe, expect, test } from "vitest";
import { nameProblemWords } from "../../src/platform/text.ts";
import {
  codePoints,
  contextIdProblem,
  isUlid,
  nameProblem,
  trimContextId,
  ulidSource,
  ulidTime,
} from "../../src/spec/names-and-contexts.ts";
import { routesWith } from "../../src/spec/routes.ts";

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
    ["A😀", "characters"],
  ])("%j is not: %s", (name, rule) => {
    expect(nameProblem(name)?.rules).toEqual([rule]);
  });

  test("every rule that a name breaks is told, and every character", () => {
    expect(nameProblem(` a/b_${"c".repeat(40)}/`)).toEqual({
      rules: ["characters", "tooLong", "outerSpace"],
      length: 46,
      characters: ["/", "_"],
    });
    expect(nameProblem("_")).toEqual({ rules: ["characters", "tooShort"], length: 1, characters: ["_"] });
  });

  test("decomposed Hangul is told as such, and measured as it is once composed", () => {
    const sale = "봄 세일";
    expect(nameProblem(sale.normalize("NFD"))).toEqual({ rules: ["decomposed"], length: 4 });
    expect(nameProblem("가".repeat(36).normalize("NFD"))).toEqual({ rules: ["decomposed"], length: 36 });
    expect(nameProblem(`${sale}_`.normalize("NFD"))).toMatchObject({ rules: ["characters", "decomposed"] });
    expect(nameProblem("\u1100\u1100")).toMatchObject({ rules: ["characters"], characters: ["\u1100"] });
  });

  test("words for it escape what cannot be seen, with its code point", () => {
    const words = (name: string) => nameProblemWords(nameProblem(name) ?? { rules: [], length: 0 });
    expect(words("a/b_c")).toBe('has 2 characters that are not allowed: "/", "_"');
    expect(words("Ab\u200b\u00a0\u3000x")).toBe(
      'has 3 characters that are not allowed: "\\u{200B}" (U+200B), "\\u{A0}" (U+00A0), "\\u{3000}" (U+3000)',
    );
    expect(words('"\t')).toBe('has 2 characters that are not allowed: "\\"", "\\u{9}" (U+0009)');
    expect(words("e\u0301 sale")).toBe('has 1 character that is not allowed: "\\u{301}" (U+0301)');
    expect(words("봄 세일".normalize("NFD"))).toBe("contains decomposed Hangul; convert it to NFC");
    expect(words(` a/${"b".repeat(40)}`)).toBe(
      'has 1 character that is not allowed: "/"; it has 43 characters (at most 36); it begins or ends with a space',
    );
    expect(words(String.fromCodePoint(...Array.from({ length: 50 }, (_, at) => 0x4e00 + at)))).toMatch(
      /^has 50 characters that are not allowed: "一", .* and 10 more; it has 50 characters \(at most 36\)$/,
    );
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
