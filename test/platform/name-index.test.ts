import { expect, test } from "vitest";
import { NameIndex } from "../../src/platform/by-key.ts";

test("a name is compared with similar ones by its first 256 letters alone, so that millions do not delay other calls", () => {
  const winter = { _id: "1", name: "Winter Boots" };
  const index = new NameIndex([winter, { _id: "2", name: "Hats" }]);
  expect(index.find(`winter boots${" x".repeat(200)}`)).toEqual({ kind: "unknown", candidates: [winter] });
  expect(index.find(`${"x".repeat(256)} winter boots`)).toEqual({ kind: "unknown", candidates: [] });
});
