import { expect, test } from "vitest";
import { thousands } from "../../src/platform/text.ts";

test.each([
  [0, "0"],
  [-7, "-7"],
  [999, "999"],
  [1000, "1,000"],
  [-12_345, "-12,345"],
  [200_000, "200,000"],
  [1_234_567, "1,234,567"],
])("%d is written as %s", (count, written) => {
  expect(thousands(count)).toBe(written);
});
