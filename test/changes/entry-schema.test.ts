import { expect, test } from "vitest";
import { CHANGE_FORM, requestItems } from "../../src/changes/change-run.ts";
import { RunState } from "../../src/changes/change-state.ts";
import { StepMaker } from "../../src/changes/rows/steps.ts";
import { objectResults } from "../support/object-results.ts";

const T = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const O = "01BX5ZZKBKACTAV9WEVGEMMVRZ";
const MADE = "01BX5ZZKBKACTAV9WEVGEMMVS0";
const weight = '"weight":{"items":1,"options":1,"groupItems":0,"contextIds":1,"bytes":77}';

/** A journal of an earlier version, which stored the items as JSON text. */
const KEPT = [
  `{"t":"rows","index":0,"line":2,"items":[{"targeting":"${T}","name":"One","contexts":["a"]},{"targeting":"${T}","name":"Two"}]}`,
  '{"t":"objects","objects":[{"index":2,"line":4,"name":"Group"},{"index":3,"line":5,"name":"Child"},{"index":4,"name":"T"},{"index":5,"_id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}]}',
  `{"t":"steps","steps":[{"id":2,"operation":"addOptions","objects":[2,3],"json":"{\\"name\\":\\"Group\\",\\"type\\":\\"collection\\",\\"contexts\\":[\\"g\\"],\\"children\\":[{\\"name\\":\\"Child\\"}],\\"exposeChildren\\":true}","bindings":[{"field":"targeting","id":"${T}"}],${weight}},` +
    `{"id":3,"operation":"updateOptions","objects":[2],"json":"{\\"name\\":\\"N\\",\\"parent\\":null,\\"contexts\\":{\\"add\\":[\\"x\\"],\\"remove\\":[\\"y\\"]}}","bindings":[{"field":"_id","object":2}],${weight},"after":[2]},` +
    `{"id":4,"operation":"createTargetings","objects":[4],"json":"{\\"name\\":\\"T\\",\\"options\\":[{\\"name\\":\\"A\\",\\"contexts\\":[\\"a\\"]}]}","bindings":[],${weight}},` +
    `{"id":5,"operation":"renameTargetings","objects":[5],"json":"{\\"name\\":\\"New\\"}","bindings":[{"field":"_id","id":"${T}"}],${weight},"prepares":true,"formerName":"Old"},` +
    `{"id":6,"operation":"deleteOptions","objects":[5],"json":"","bindings":[{"field":"_id","id":"${O}"}],${weight},"undoes":{"code":"X"}}]}`,
  '{"t":"settled","settlements":[]}',
  '{"t":"planned","requests":3,"at":5}',
  '{"t":"send","steps":[0,1],"at":6,"again":false}',
  `{"t":"answer","at":7,"changes":[],"made":{"from":0,"ids":["${O}",null]}}`,
  '{"t":"send","steps":[2],"at":8,"again":false,"machine":"one","ahead":{"lowest":-3,"highest":700}}',
  `{"t":"answer","at":9,"changes":[{"step":2,"to":"done","_id":"${MADE}","childIds":[null]}],"steps":[{"id":7,"operation":"deleteTargetings","objects":[5],"json":"","bindings":[{"field":"_id","id":"${T}"}],${weight}}]}`,
  '{"t":"stop","cause":"interrupted","at":10}',
  '{"t":"resume","at":11}',
];

test("a journal of the version before is read, and each line of it is written as it was", () => {
  const state = new RunState();
  for (const line of KEPT) {
    const entry = CHANGE_FORM.entry.parse(JSON.parse(line));
    const written = Buffer.concat(CHANGE_FORM.line(entry).map((piece) => Buffer.from(piece))).toString();
    expect(JSON.parse(written)).toEqual(JSON.parse(line));
    state.apply(entry);
  }
  expect(objectResults(state)).toEqual([
    { index: 0, line: 2, name: "One", outcome: "succeeded", did: "created", _id: O },
    { index: 1, line: 3, name: "Two", outcome: "succeeded", did: "created" },
    { index: 2, line: 4, name: "Group", outcome: "pending", _id: MADE },
    { index: 3, line: 5, name: "Child", outcome: "succeeded", did: "created" },
    { index: 4, name: "T", outcome: "pending" },
    { index: 5, _id: T, outcome: "pending" },
  ]);
  expect(state.ready()).toEqual([5, 3, 4, 6]);
  const text = (...steps: number[]): string => Buffer.from(requestItems(state, steps, false).json).toString();
  expect(text(0, 1)).toBe(`[{"targeting":"${T}","name":"One","contexts":["a"]},{"targeting":"${T}","name":"Two"}]`);
  expect(text(1, 2)).toBe(
    `[{"targeting":"${T}","name":"Two"},{"targeting":"${T}","name":"Group","type":"collection","contexts":["g"],"children":[{"name":"Child"}],"exposeChildren":true}]`,
  );
  expect(text(3)).toBe(`[{"_id":"${MADE}","name":"N","parent":null,"contexts":{"add":["x"],"remove":["y"]}}]`);
  expect(text(4)).toBe('[{"name":"T","options":[{"name":"A","contexts":["a"]}]}]');
  expect(text(5)).toBe(`[{"_id":"${T}","name":"New"}]`);
  expect(text(6, 7)).toBe(`["${O}","${T}"]`);
  expect(text(1, 0)).toBe(`[{"targeting":"${T}","name":"Two"},{"targeting":"${T}","name":"One","contexts":["a"]}]`);
});

test.each([
  ["an item that is no JSON", '{"name":', "addOptions"],
  ["an item of another operation", '{"parent":null}', "addOptions"],
  ["a delete with an item", '{"name":"N"}', "deleteOptions"],
])("a line is damaged that holds %s", (_, json, operation) => {
  const step = { id: 0, operation, objects: [0], json, bindings: [] };
  const line = { t: "steps", steps: [{ ...step, weight: JSON.parse(`{${weight}}`).weight }] };
  expect(CHANGE_FORM.entry.safeParse(line).success).toBe(false);
});

test("a step may not leave without the ID of what it needs", () => {
  const step = StepMaker.after({ length: 0 }).updateOption({ object: 0 }, { name: "New" }, { objects: [0] });
  const state = new RunState();
  state.apply({ t: "objects", objects: [{ index: 0 }] });
  state.apply({ t: "steps", steps: [step] });
  expect(() => requestItems(state, [0], false)).toThrow(RangeError);
});
