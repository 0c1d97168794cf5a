import { expect, test } from "vitest";
import { largestAnswers, MAX_ANSWER_TOKENS } from "../../bench/largest-answers.ts";
import { everyTool } from "../../src/tools/registry.ts";

const TOOLS = await everyTool();

test("the largest answer of every tool stays within what it may cost", async () => {
  const answers = await largestAnswers();
  expect(answers.map(({ tool }) => tool)).toEqual(TOOLS.map(({ name }) => name));
  for (const { tool, reads, tokens } of answers) {
    expect(tokens, tool).toBeGreaterThan(50);
    expect(tokens, tool).toBeLessThanOrEqual(reads ? 3500 : 2500);
  }
  expect(MAX_ANSWER_TOKENS).toEqual({ reads: 3500, others: 2500 });
});
