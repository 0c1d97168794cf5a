import fc from "fast-check";
import { expect, test } from "vitest";
import { OrderedIds } from "../../src/sandbox/rules/store.ts";

test("the list stays sorted, without repeats, and pages like an array, whatever is added and removed", () => {
  const id = fc.integer({ min: 0, max: 2500 }).map((value) => String(value).padStart(6, "0"));
  const change = fc.record({ id, add: fc.boolean() });
  fc.assert(
    fc.property(
      fc.array(change, { maxLength: 4000, size: "max" }),
      fc.nat(2600),
      fc.nat(1200),
      (changes, offset, limit) => {
        const list = new OrderedIds();
        const model = new Set<string>();
        for (const { id: changed, add } of changes) {
          if (add) list.add(changed);
          else list.remove(changed);
          if (add) model.add(changed);
          else model.delete(changed);
        }
        const sorted = [...model].toSorted();
        expect([...list]).toEqual(sorted);
        expect(list.size).toBe(sorted.length);
        expect(list.page(offset, limit)).toEqual(sorted.slice(offset, offset + limit));
      },
    ),
    { seed: 20_261, numRuns: 60 },
  );
});
