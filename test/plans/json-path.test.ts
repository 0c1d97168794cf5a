import { expect, test } from "vitest";
import { jsonPathAt } from "../../src/plans/file/json-nodes.ts";

const text = JSON.stringify({
  version: 1,
  options: [{ name: 'a"],' }, { nam: [1, { "x:y": null }] }, "last"],
  end: {},
});

test.each([
  ['{"version"', ""],
  ['"version"', "version"],
  ["1,", "version"],
  ['{"name"', "options[0]"],
  ['"name"', "options[0].name"],
  ['"a\\"],"', "options[0].name"],
  ['"nam"', "options[1].nam"],
  ['{"x:y"', "options[1].nam[1]"],
  ["null", "options[1].nam[1].x:y"],
  ['"last"', "options[2]"],
  ["{}", "end"],
])("the path of %s is %s", (part, path) => {
  expect(jsonPathAt(text, text.indexOf(part))).toBe(path);
});
