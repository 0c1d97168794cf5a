import { readFileSync } from "node:fs";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { expect, test } from "vitest";
import { answersPage, takeSnapshots } from "../../scripts/answers/page.ts";
import { SAID, withSaid } from "../../scripts/answers/said.ts";
import { fileAt } from "../../scripts/packaging/generated.ts";

test("docs/answers.md is what the built command answers: else run npm run docs", async () => {
  const snapshots = await takeSnapshots();
  expect(snapshots).toHaveLength(33);
  for (const { text, wish } of snapshots) expect(countTokens(text), wish).toBeLessThanOrEqual(3500);
  expect(readFileSync(fileAt("docs/answers.md"), "utf8")).toBe(answersPage(snapshots));
});

test("the README's requests come back with what the built command answers: else run npm run docs", async () => {
  const snapshots = await takeSnapshots(SAID, "sample");
  expect(snapshots).toHaveLength(8);
  const readme = readFileSync(fileAt("README.md"), "utf8");
  expect(readme).toBe(withSaid(readme, snapshots));
});
