import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { fileAt } from "../../scripts/packaging/generated.ts";
import { demoOutput, PICTURE, pictureOf } from "../../scripts/packaging/picture.ts";

test("the README's picture is what the demo prints: else run npm run docs", async () => {
  expect(readFileSync(fileAt(PICTURE), "utf8")).toBe(pictureOf(await demoOutput()));
});
