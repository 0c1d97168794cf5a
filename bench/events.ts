// How much validating 100,000 events costs against parsing them from JSON, and sending 10,000 against a bare loop.
import { rememberingNearestName } from "../src/events/near-names.ts";
import { validateEvent } from "../src/events/validate.ts";

const EVENTS = 100_000;
const ROUNDS = 7;

/** Events as an application sends them: most right, one in ten with a mistake. */
function sampleEvent(index: number): Record<string, unknown> {
  const uid = `user-${index % 5000}`;
  const item = { item_id: `sku-${index}`, item_name: `머그컵 ${index}`, price: 12_900, quantity: (index % 3) + 1 };
  switch (index % 10) {
    case 0:
      return { uid, eventName: "view_item", itemId: item.item_id, price: item.price };
    case 1:
    case 2:
      return {
        uid,
        eventName: "purchase",
        tx_id: `t-${index}`,
        currency: "KRW",
        items: [item, { ...item, brand: "Acme" }],
      };
    case 3:
      return { uid, eventName: "add_to_cart", ...item, value: item.price * item.quantity, currency: "KRW" };
    default:
      return {
        uid,
        eventName: "page_view",
        page_id: `p-${index}`,
        page_url: `https://example.com/${index}`,
        platform: "web",
      };
  }
}

/** The median milliseconds of `ROUNDS` runs. */
function median(run: () => void): number {
  const times = Array.from({ length: ROUNDS }, () => {
    const start = performance.now();
    run();
    return performance.now() - start;
  });
  return times.toSorted((one, other) => one - other)[Math.floor(ROUNDS / 2)] ?? 0;
}

const lines = Array.from({ length: EVENTS }, (_, index) => JSON.stringify(sampleEvent(index)));
const parsed: unknown[] = lines.map((line) => JSON.parse(line));
const parsing = median(() => {
  for (const line of lines) JSON.parse(line);
});
const validating = median(() => {
  const nearest = rememberingNearestName();
  for (const event of parsed) validateEvent(event, nearest);
});
console.log(
  `parsing ${parsing.toFixed(0)} ms, validating ${validating.toFixed(0)} ms: ${(validating / parsing).toFixed(2)} times`,
);
