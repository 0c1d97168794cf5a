import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { expect } from "vitest";
import * as z from "zod";
import { type Answer, CLIENTS, type TestClient, type ToolResult, textOf } from "./clients.ts";
import { perFile } from "./ends.ts";
import { COMMAND, cleanEnvironment } from "./server-process.ts";
import { startService } from "./service.ts";

/** The most tokens that an answer about a write may have, data and text together. */
const REPORT_TOKENS = 2500;

const count = z.int().min(0);
const failure = z.strictObject({
  count: z.int().min(1),
  outcome: z.enum(["skipped", "failed", "notApplied", "unknown"]),
  indexes: z.array(count).min(1).max(20),
  lines: z.array(count).min(1).max(20).optional(),
  ref: z.string().optional(),
  errorCode: z.string(),
  statusCode: z.int().optional(),
  detail: z.record(z.string(), z.unknown()).optional(),
  details: z
    .array(z.looseObject({ index: count }))
    .max(20)
    .optional(),
  message: z.string().min(10),
  remedy: z.string().min(5),
});
const side = z.union([
  z.string(),
  z.strictObject({
    name: z.string().optional(),
    parent: z.string().nullable().optional(),
    parentName: z.string().nullable().optional(),
  }),
]);
const result = z.strictObject({
  index: count,
  child: count.optional(),
  grandchild: count.optional(),
  outcome: z.enum(["succeeded", "alreadyDone", "skipped", "failed", "notApplied", "unknown", "pending"]),
  _id: z.string().optional(),
  name: z.string().optional(),
  errorCode: z.string().optional(),
  did: z.enum(["created", "changed", "deleted", "same"]).optional(),
  from: side.optional(),
  to: side.optional(),
  exposeChildren: z.strictObject({ from: z.boolean(), to: z.boolean() }).optional(),
  added: count.optional(),
  removed: count.optional(),
  alreadyThere: count.optional(),
  absent: count.optional(),
  line: count.optional(),
});

/** The result of a tool that writes, copied by hand from the documentation of the tools. */
const reportSchema = z.strictObject({
  environment: z.enum(["live", "sandbox"]),
  runId: z.string().optional(),
  tool: z.string(),
  status: z.enum([
    "succeeded",
    "partial",
    "failed",
    "unknown",
    "running",
    "interrupted",
    "cancelled",
    "planned",
    "needs_confirmation",
  ]),
  counts: z.strictObject({
    items: count,
    succeeded: count,
    alreadyDone: count,
    skipped: count.optional(),
    failed: count,
    notApplied: count,
    unknown: count,
    pending: count,
  }),
  requests: z.strictObject({ planned: count, sent: count, resent: count, waitedMs: count }).optional(),
  failures: z.array(failure).max(25).default([]),
  failuresOmitted: count.optional(),
  results: z.array(result).max(50).default([]),
  resultsOmitted: count.optional(),
  resultsUri: z.string().optional(),
  approval: z
    .strictObject({
      decision: z.enum(["approved", "declined", "not_needed"]),
      channel: z.enum(["client", "view", "page", "token"]).optional(),
      by: z.string().min(1).optional(),
    })
    .optional(),
  totals: z.strictObject({ targetingId: z.string(), name: z.string(), optionCount: count }).optional(),
  notes: z.array(z.string()).default([]),
  plan: z.array(z.looseObject({ operation: z.string(), items: count, bytes: count })).optional(),
  planOmitted: count.optional(),
  confirmation: z
    .strictObject({
      token: z.string().optional(),
      effect: z.string(),
      expiresAt: z.iso.datetime(),
      channel: z.enum(["client", "token"]).optional(),
    })
    .optional(),
  verdicts: z.array(z.looseObject({ index: count, predicted: z.string() })).optional(),
  nextSteps: z.array(z.string()).default([]),
});
export type Report = z.infer<typeof reportSchema>;

/** Returns the rows of a report in the order of the call's items. In an answer, failures come first. */
export function inCallOrder({ results }: Report): Report["results"] {
  const placeOf = ({ index, child = -1, grandchild = -1 }: Report["results"][number]) =>
    (index * 1000 + child + 1) * 1000 + grandchild + 1;
  return results.toSorted((one, other) => placeOf(one) - placeOf(other));
}

/** Returns the tokens of the data and the text of a result together (o200k), the most that a host shows the model. */
export function tokensOfResult(given: ToolResult): number {
  return countTokens(JSON.stringify(given.structuredContent)) + countTokens(textOf(given));
}

/** Checks the answer of a tool that writes against the rules for all such answers. Returns its data. */
export function checkedReport(given: ToolResult): Report {
  const report = reportSchema.parse(given.structuredContent);
  const { items, skipped = 0, ...outcomes } = report.counts;
  const sum = [skipped, ...Object.values(outcomes)].reduce((total, one) => total + one, 0);
  expect(sum, "the counts add up").toBe(items);
  expect(tokensOfResult(given)).toBeLessThanOrEqual(REPORT_TOKENS);
  const good = outcomes.succeeded + outcomes.alreadyDone + skipped;
  if (["succeeded", "partial", "failed", "unknown"].includes(report.status)) {
    expect(report.status).toBe(statusOf(items, good, outcomes.unknown));
    expect(outcomes.pending).toBe(0);
  }
  expect(given.isError ?? false).toBe(report.status === "failed" || (report.status === "unknown" && good === 0));
  checkText(report, textOf(given));
  return report;
}

/**
 * Returns the status that a finished run with these counts must have. `good` counts items that succeeded, were already
 * done or were skipped.
 */
function statusOf(items: number, good: number, unknown: number): string {
  if (good === items) return "succeeded";
  if (good > 0) return "partial";
  return unknown > 0 ? "unknown" : "failed";
}

/** Checks that text and data contain the same facts, because hosts show the model only one of them. */
function checkText(report: Report, text: string): void {
  const { environment, runId = "", counts, failures, plan = [], confirmation, nextSteps } = report;
  const said = [
    environment,
    runId,
    ...nextSteps,
    ...report.notes.map((note) => note.slice(1)),
    report.totals?.name ?? "",
  ];
  const { items: _all, pending: _open, ...outcomes } = counts;
  // The request for an item with an unknown result may have been applied, so the text must not say that nothing was.
  if (outcomes.unknown > 0) expect(text).not.toMatch(/^No \w+ was /);
  const together = countedTogether(text);
  for (const count of Object.values(outcomes)) {
    if (count !== undefined && count > 0 && count !== together) said.push(counted(count));
  }
  // The text omits from remedies the advice to call resume_run, because a `Next:` line contains the complete call.
  for (const { errorCode, message, remedy } of failures) {
    said.push(
      errorCode,
      ...message.split(": "),
      remedy.replace(/ ?(?:Then c|C)all resume_run with this runId\.(?: It [^.]*\.)?/, "").trim(),
    );
  }
  for (const { items, bytes } of plan) said.push(`${counted(items)} `, `${counted(bytes)} byte`);
  if (confirmation !== undefined) {
    const [sentence = ""] = confirmation.effect.split("\n");
    said.push(confirmation.token ?? "", sentence, confirmation.expiresAt.slice(11, 16));
  }
  for (const left of [report.failuresOmitted, report.planOmitted]) {
    if (left !== undefined && left > 0) said.push(`${counted(left)} more`);
  }
  for (const one of said) expect(text).toContain(one.trim());
  checkResults(report, text);
}

/** Returns the sum of the two numbers in "Created 3 targetings with 5 options"; 0 if the text has no such sentence. */
function countedTogether(text: string): number {
  const [, ...numbers] = /Created ([\d,]+) targetings? with ([\d,]+) options?/.exec(text) ?? [];
  return numbers.reduce((sum, number) => sum + Number(number.replaceAll(",", "")), 0);
}

/**
 * Checks that up to 20 created objects of a kind are listed with their IDs, and that failures name the positions of
 * their items.
 */
function checkResults({ results, counts }: Report, text: string): void {
  const places = placesIn(text);
  for (const { index, line, outcome } of results) {
    if (outcome === "pending" || outcome === "succeeded" || outcome === "alreadyDone") continue;
    if (!text.includes(", …)")) expect(places, `place of ${index}`).toContain(line ?? index + 1);
  }
  const done = results.filter(({ outcome }) => outcome === "succeeded" || outcome === "alreadyDone");
  if (counts.succeeded + counts.alreadyDone > 20) return;
  for (const { index, line, _id = "" } of done) {
    expect(places, `place of ${index}`).toContain(line ?? index + 1);
    if (/^[0-9A-Z]*$/.test(_id)) expect(text).toContain(_id);
  }
}

/** Returns the positions that a text names, such as `item 3`, `items 1-20, 25, 25.1` or `30 lines (2-31)`. */
function placesIn(text: string): readonly number[] {
  const lists = [...text.matchAll(/(?:items?|lines?) \(?(\d[\d.]*(?:-\d+)?(?:, \d[\d.]*(?:-\d+)?)*)/g)].map(
    ([, list = ""]) => list,
  );
  return lists.flatMap((list) =>
    list.split(", ").flatMap((range) => {
      const [from = 0, to = from] = range.split("-").map((place) => Number.parseInt(place, 10));
      return Array.from({ length: to - from + 1 }, (_, at) => from + at);
    }),
  );
}

/** Formats a number as answers do. */
function counted(count: number): string {
  return count.toLocaleString("en-US");
}

const journal = z.object({
  requests: z.array(z.looseObject({ operation: z.string().nullable(), method: z.string(), bytes: z.number() })),
});

/** How a client connects; a key of `CLIENTS`. */
export type Connect = (typeof CLIENTS)[keyof typeof CLIENTS];

interface SessionOptions {
  readonly connect?: Connect;
  readonly answer?: Answer;
  readonly env?: Readonly<Record<string, string>>;
  readonly live?: boolean;
}

/**
 * Starts a client, the built command and a sandbox, which serves as the live service if `live`. They end with the test.
 */
export async function startSession(given: SessionOptions = {}) {
  const { connect = CLIENTS["2026 client, legacy"], answer, env = {}, live = false } = given;
  const sandbox = await startService();
  const { TARGETING_MCP_MODE: _, ...addresses } = sandbox.live;
  const address = live ? addresses : { TARGETING_MCP_SANDBOX_URL: sandbox.url };
  const environment = cleanEnvironment({ ...address, ...env });
  const client = await connect({ args: [COMMAND], env: environment, ...(answer && { answer }) });
  return { sandbox, client, environment, ...overSandbox(sandbox.url, client) };
}

/**
 * Returns a function that starts sessions. All tests of a file that request the same settings share one session. The
 * sandbox is emptied for each test, but the server still remembers earlier runs and names. Must be called once per
 * file, outside of tests. The sessions end with the file.
 */
export function warmSessions(): (
  given?: SessionOptions & { /** A session of its own. */ readonly fresh?: true },
) => ReturnType<typeof startSession> {
  let answering: Answer | undefined;
  const answerNow: Answer = (message, form) => {
    if (answering === undefined) throw new Error("no client is set up to answer the question");
    return answering(message, form);
  };
  const kept = perFile(async (era: keyof typeof CLIENTS, asks: boolean, more: Pick<SessionOptions, "env" | "live">) =>
    startSession({ ...more, connect: CLIENTS[era], ...(asks && { answer: answerNow }) }),
  );
  return async ({ fresh, ...given } = {}) => {
    if (fresh) return startSession(given);
    const { connect = CLIENTS["2026 client, legacy"], answer, env = {}, live = false } = given;
    answering = answer;
    const session = await kept(eraOf(connect), answer !== undefined, { env, live });
    await session.control("/reset", {});
    return { ...session, ...overSandbox(session.sandbox.url, session.client) };
  };
}

/** Returns the key in `CLIENTS` of a way to connect. */
function eraOf(connect: Connect): keyof typeof CLIENTS {
  const eras = ["2026 client, modern", "2026 client, legacy", "2025 client"] as const;
  const era = eras.find((one) => CLIENTS[one] === connect);
  if (era === undefined) throw new Error("there is no client of this kind");
  return era;
}

function overSandbox(url: string, client: TestClient) {
  const control = async (path: string, body?: unknown): Promise<unknown> => {
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const answer = await fetch(`${url}/_sandbox${path}`, init);
    if (!answer.ok) throw new Error(`the sandbox refused ${path}: ${await answer.text()}`);
    return answer.json();
  };
  let seen = 0;
  return {
    control,
    /** Calls a tool that writes, and checks its report against the rules for all of them. */
    async write(name: string, args: Record<string, unknown>): Promise<Report> {
      return checkedReport(await client.callTool(name, args));
    },
    /** Returns the write operations that have arrived since the last call of this function. */
    async writesSent(): Promise<readonly (string | null)[]> {
      const { requests } = journal.parse(await control("/requests"));
      const fresh = requests.slice(seen);
      seen = requests.length;
      return fresh.filter(({ method }) => method !== "GET").map(({ operation }) => operation);
    },
  };
}
