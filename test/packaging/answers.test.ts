import { readFileSync } from "node:fs";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { expect, test } from "vitest";
import { answersPage, takeSnapshots } from "../../scripts/answers/page.ts";
import { fileAt } from "../../scripts/packaging/generated.ts";

test("docs/answers.md is what the built command answers: else run npm run docs", async () => {
  const snapshots = await takeSnapshots();
  expect(snapshots).toHaveLength(33);
  for (const { text, wish } of snapshots) expect(countTokens(text), wish).toBeLessThanOrEqual(3500);
  expect(readFileSync(fileAt("docs/answers.md"), "utf8")).toBe(answersPage(snapshots));
}, 60_000);
