import { expect, test } from "vitest";
import { GivenIds } from "../../src/bulk/given-ids.ts";

const id = (n: number): string => `01M7ZSB48HW78KRF1V3D${String(n).padStart(6, "0")}`;
const some = (from: number, count: number) => Array.from({ length: count }, (_, at) => id(from + at));

test("every object has the ID that it was given, in whatever order and parts", () => {
  const ids = new GivenIds();
  ids.giveAll(10, some(10, 5));
  ids.giveAll(0, some(0, 3));
  ids.giveAll(15, [id(15), null, id(17)]);
  ids.giveAll(18, ["short", id(19)]);
  ids.give(5, "any");
  const given = Array.from({ length: 21 }, (_, object) => ids.at(object));
  expect(given).toEqual([
    ...some(0, 3),
    ...[undefined, undefined, "any", undefined, undefined, undefined, undefined],
    ...some(10, 6),
    ...[undefined, id(17), "short", id(19), undefined],
  ]);
});

test("what is given again inside of others leaves those their IDs", () => {
  const ids = new GivenIds();
  ids.giveAll(0, some(0, 4));
  ids.giveAll(1, [id(91)]);
  ids.giveAll(3, some(93, 3));
  expect([0, 1, 2, 3, 4, 5].map((object) => ids.at(object))).toEqual([id(0), id(91), id(2), id(93), id(94), id(95)]);
});
