import { expect, test } from "vitest";
import { forPeople } from "../../../src/web/people-words.ts";

test.each([
  ["Call resume_run with this runId.", "Press Resume run."],
  [
    "Set TARGETING_API_KEY to a valid one, then resume_run.",
    "Set TARGETING_API_KEY to a valid one, then press Resume run.",
  ],
  ["Check the ID; list_options shows them.", "For the agent: Check the ID; list_options shows them."],
  ["Choose another name.", "Choose another name."],
])("people are told which button to press, and what their agent can do: %s", (told, shown) => {
  expect(forPeople(told)).toBe(shown);
});
