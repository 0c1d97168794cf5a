import { expect, test } from "vitest";
import { requestJournal } from "../../src/sandbox/logs.ts";

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

test("long paths are forgotten sooner, so that memory stays bounded", () => {
  const journal = requestJournal();
  const path = `/context-targeting/${"x".repeat(16_000)}`;
  for (let bytes = 0; bytes < 19_200; bytes += 1) {
    const request = { at: "", method: "GET", path, status: 404, applied: false, bytes, items: null };
    journal.add({ ...request, operation: "getTargeting" });
  }
  const { requests, dropped } = journal.read();
  expect(requests.length + dropped).toBe(19_200);
  expect(requests.at(-1)).toMatchObject({ path, bytes: 19_199 });
  expect(requests.reduce((sum, one) => sum + one.path.length, 0)).toBeLessThan(4 * 1_048_576);
  expect(requests.length).toBeGreaterThan(100);
});
