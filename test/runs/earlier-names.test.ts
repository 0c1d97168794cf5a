import { expect, test } from "vitest";
import { journalEntry } from "../../src/changes/rows/entries.ts";
import { EVENT_FORM } from "../../src/events/run/run-kind.ts";
import { keptSummary } from "../../src/runs/lifecycle.ts";

const reason = { code: "BUSY" };

test("what earlier versions kept as unattempted is read as not applied", () => {
  const settled = { t: "settled", object: 0, outcome: "unattempted", reason, attempts: 0, at: 1 };
  expect(EVENT_FORM.entry.parse(settled)).toEqual({ ...settled, outcome: "notApplied" });
  const answer = { t: "answer", at: 1, changes: [{ step: 0, to: "unattempted", reason }] };
  expect(journalEntry.parse(answer)).toEqual({ ...answer, changes: [{ step: 0, to: "notApplied", reason }] });
  const summary = {
    ...{ tool: "bulk_add_options", caller: "local", fingerprint: "f", status: "partial", open: true },
    ...{ startedAt: 1, updatedAt: 2, counts: { items: 3, succeeded: 1, unattempted: 2 } },
  };
  expect(keptSummary.parse(summary).counts).toEqual({ items: 3, succeeded: 1, notApplied: 2 });
});
