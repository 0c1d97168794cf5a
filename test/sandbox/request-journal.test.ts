import { expect, test } from "vitest";
import { requestJournal } from "../../src/sandbox/request-journal.ts";

test("the last 10,000 requests are kept, and older ones counted", () => {
  const journal = requestJournal();
  for (let bytes = 0; bytes < 25_000; bytes += 1) {
    const request = { at: "", method: "POST", path: "/event", status: 200, applied: true, bytes, items: null };
    journal.add({ ...request, operation: "trackEvent" });
  }
  const { requests, dropped } = journal.read();
  expect(requests).toHaveLength(10_000);
  expect(requests[0]?.bytes).toBe(15_000);
  expect(dropped).toBe(15_000);
});
