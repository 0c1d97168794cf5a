import { expect, test } from "vitest";
import { tryOrders } from "./orders.ts";

/** How many cases of each kind are tried. `npm run test:orders` tries 100,000. */
const COUNT = Number(process.env.TARGETING_MCP_TEST_ORDERS ?? 2000);
const SEED = Number(process.env.TARGETING_MCP_TEST_SEED ?? 1);

test.each(["random", "tight"] as const)(
  "changes of %s trees are sent in an order that breaks no rule",
  (kind) => {
    const { cases, requests, wrong } = tryOrders(kind, SEED, COUNT);
    process.stdout.write(`${kind}, from seed ${SEED}: ${cases} cases, ${requests} requests\n`);
    expect(wrong.slice(0, 20)).toEqual([]);
    expect(cases).toBeGreaterThan(COUNT / 2);
  },
  3_600_000,
);
