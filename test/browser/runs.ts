import type { RunCounts, RunDetail, RunRow } from "../../src/web/wire.ts";

// Runs as a server may send them, with names that other people wrote.

export const MARKUP = '<img src=x onerror="alert(1)"><script>alert(2)</script>';
const BIDI = "safe\u202Egnp.exe";
const NONE: RunCounts = { items: 0, succeeded: 0, alreadyDone: 0, failed: 0, notApplied: 0, unknown: 0, pending: 0 };
const STARTED = Date.UTC(2026, 4, 1, 9, 30);

/** Makes a run with these values. */
function run(runId: string, about: Partial<RunRow> & Pick<RunRow, "title">): RunRow {
  const times = { startedAt: STARTED, updatedAt: STARTED };
  const known: RunRow = {
    runId,
    title: "",
    tool: "bulk_add_options",
    status: "succeeded",
    counts: NONE,
    noun: "option",
    actions: [],
    caller: "local",
    ...times,
  };
  return { ...known, ...about };
}

/** A run that waits for approval, with names of all kinds. */
export const WAITING: RunDetail = {
  run: run("01WAITING", {
    title: "Delete 25 options from Spring",
    client: "Claude Code",
    tool: "delete_options",
    status: "needs_confirmation",
    caller: "token:ci",
    project: "shop",
    targeting: { _id: "01T", name: "Spring" },
    actions: ["approve", "decline"],
    waiting: {
      digest: "d",
      act: "Delete 25 options",
      counts: { created: 0, changed: 0, deleted: 25 },
      effect: "Deletes 3 options of Spring with 14 Context IDs",
      parts: [
        {
          title: "Options deleted",
          kind: "deleted",
          count: 25,
          objects: [
            { name: "Sneakers", says: "12 Context IDs" },
            { name: MARKUP, says: "2 Context IDs" },
            { name: BIDI },
            { name: "n".repeat(200_000) },
          ],
        },
      ],
      undo: {
        title: "It can be undone for 30 days, with new IDs",
        notes: [
          "Names and Context IDs come back with undo_run.",
          "What ad products and campaigns refer to does not come back.",
        ],
      },
      expiresAt: STARTED + 86_400_000,
    },
  }),
  story: [],
  failures: [],
  downloads: [],
};

/** A run that waits, but can no longer be approved. */
export const STALE: RunDetail = {
  ...WAITING,
  run: {
    ...WAITING.run,
    runId: "01STALE",
    startedAt: STARTED - 1000,
    disabled: { approve: "Changed since it was planned: ask the agent to plan it again." },
    waiting: {
      digest: "d",
      act: "Delete 25 options",
      counts: { created: 0, changed: 0, deleted: 25 },
      effect: "Deletes 1 option",
      parts: [],
      expiresAt: STARTED,
      stale: ["Sneakers: 12 Context IDs were planned for, 14 are there."],
    },
  },
};

/** A waiting run whose server has ended. */
export const ENDED: RunDetail = {
  ...WAITING,
  run: {
    ...WAITING.run,
    runId: "01ENDED",
    startedAt: STARTED - 2000,
    disabled: {
      approve:
        "Nothing can execute this here: it is of another project or environment, or no server runs for it. " +
        "Ask the agent to make the change again.",
    },
    waiting: {
      digest: "d",
      act: "Delete 25 options",
      counts: { created: 0, changed: 0, deleted: 25 },
      effect: "Deletes 1 option",
      parts: [],
      expiresAt: STARTED,
      ended: true,
    },
  },
};

/** A run that is being executed. */
export const RUNNING: RunDetail = {
  run: run("01RUNNING", {
    title: "Add 1,000 options to Spring",
    status: "running",
    startedAt: STARTED - 3000,
    targeting: { name: MARKUP },
    counts: { ...NONE, items: 1000, succeeded: 400, pending: 600 },
    requests: { planned: 10, sent: 4, resent: 0, waitedMs: 0 },
    actions: ["cancel"],
  }),
  story: [],
  failures: [],
  downloads: [],
};

/** A finished run in which something failed, with downloads and a plan. */
export const PARTIAL: RunDetail = {
  run: run("01PARTIAL", {
    title: "Applied spring.yaml to Spring: 2 options added, 3 options changed, 1 option deleted",
    did: { created: 2, changed: 1, deleted: 1 },
    tool: "apply_plan",
    noun: "change",
    status: "partial",
    startedAt: STARTED - 4000,
    targeting: { name: "Spring" },
    counts: { ...NONE, items: 6, succeeded: 4, failed: 2 },
    requests: { planned: 3, sent: 3, resent: 1, waitedMs: 150 },
    decided: "Approved on the page by ann",
    isDecidedOnPage: true,
    actions: ["undo", "resume"],
    disabled: { resume: "No server could drive it." },
    undoUntil: STARTED + 86_400_000,
  }),
  undo: "Undo restores 3 of 4 as they were and 1 under a new ID",
  story: [],
  failures: [
    {
      ...{ outcome: "failed", count: 2, places: "lines 3-4", examples: ["bad_3"] },
      ...{ message: "the name is taken", remedy: "Choose another name." },
    },
  ],
  downloads: ["results", "rejects", "removed"],
  plan: {
    conflicts: [{ name: "Jeans", field: "name", base: "Jeans", file: "Denim", service: "Jeans 2026" }],
    drift: [{ name: "Hats", says: "has changed since the file was saved." }],
  },
};
