import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { FIDELITY_DOC, fidelityTable, heldRules } from "./fidelity.ts";
import { RULES } from "./rules.ts";

test("every rule of the documents is held by exactly one test, and every such test is of a listed rule", () => {
  const ids = RULES.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect([...heldRules().keys()].toSorted()).toEqual(ids.toSorted());
});

test("docs/reference/sandbox-rules.md says what the tests hold: run npx tsx scripts/sandbox-fidelity.ts", () => {
  expect(readFileSync(FIDELITY_DOC, "utf8")).toBe(fidelityTable());
});
