import { expect, test } from "vitest";
import { RowNames } from "../../src/bulk/plan/row-names.ts";

test("of 200,000 names, some of which have one hash, each is found, and no other", () => {
  const nameOf = (object: number): string => `이름 ${object}`;
  const names = new RowNames(nameOf);
  const found: (number | undefined)[] = [];
  for (let object = 0; object < 200_000; object += 1) {
    if (names.get(nameOf(object)) !== undefined) found.push(object);
    names.add(nameOf(object), object);
  }
  expect(found).toEqual([]);
  for (let object = 0; object < 200_000; object += 1) {
    if (names.get(nameOf(object)) !== object) found.push(object);
  }
  expect(found).toEqual([]);
});
