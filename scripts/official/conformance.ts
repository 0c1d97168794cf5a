// Runs the official conformance suite against the shipped command, and against the same HTTP code with the fixtures
// that the suite calls by name: `npm run conformance`, or `npm run conformance tasks` for tasks alone. Needs the
// package registry.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { inFolder, underNode24, withServer } from "./node24.ts";

const SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12";
const REVISIONS = ["2025-11-25", "2026-07-28"] as const;
type Revision = (typeof REVISIONS)[number];

const COMMAND = ["dist/main.js", "http", "--port", "0"];
const FIXTURES = ["--import", "tsx", "test/conformance/server.ts"];
const SESSIONS = { TARGETING_MCP_SESSIONS: "on" };

/** The servers to check, by their names in the list of known failures. */
const SERVERS = {
  shipped: { args: COMMAND, env: {} },
  shippedWithSessions: { args: COMMAND, env: SESSIONS },
  fixtures: { args: FIXTURES, env: {} },
  fixturesWithSessions: { args: FIXTURES, env: SESSIONS },
} as const;

/** The server for the tasks extension. No revision of the protocol requires its scenarios, so each is run by name. */
const TASK_SERVER = ["--import", "tsx", "test/conformance/task-server.ts"];
const TASK_SCENARIOS = [
  "tasks-lifecycle",
  "tasks-capability-negotiation",
  "tasks-wire-fields",
  "tasks-request-state-removal",
  "tasks-mrtr-input",
  "tasks-request-headers",
  "tasks-dispatch-and-envelope",
  "tasks-status-notifications",
  "tasks-required-task-error",
  "tasks-mrtr-composition",
] as const;

/** The scenarios that cannot pass, by server and revision, each with its reason. */
const reasons = z.record(z.string(), z.string().min(10));
const baselineFile = z.strictObject({
  shipped: z.strictObject({ "2025-11-25": reasons, "2026-07-28": reasons }),
  shippedWithSessions: z.strictObject({ "2025-11-25": reasons, "2026-07-28": reasons }),
  fixtures: z.strictObject({ "2025-11-25": reasons, "2026-07-28": reasons }),
  fixturesWithSessions: z.strictObject({ "2025-11-25": reasons, "2026-07-28": reasons }),
  tasks: reasons,
});
const baseline = baselineFile.parse(JSON.parse(readFileSync("test/conformance/baseline.json", "utf8")));

interface Verdict {
  readonly scenario: string;
  readonly passed: boolean;
}

/** Returns the results of the scenarios that the revision requires. */
async function required(url: string, revision: Revision): Promise<readonly Verdict[]> {
  const { stdout } = await inFolder((folder) =>
    underNode24(SUITE, ["conformance", "server", "--url", url, "--requirements", revision, "-o", folder]),
  );
  const summary = stdout.slice(stdout.indexOf("=== SUMMARY"));
  const unscored = new Set([...summary.matchAll(/^\s+[✓✗] (\S+) \([a-z-]+\)$/gm)].map(([, scenario]) => scenario));
  const verdicts = [...summary.matchAll(/^([✓✗]) (\S+): \d+ passed/gm)].map(([, mark, scenario = ""]) => ({
    scenario,
    passed: mark === "✓",
  }));
  const scored = verdicts.filter(({ scenario }) => !unscored.has(scenario));
  if (scored.length === 0) throw new Error(`the conformance suite printed no summary:\n${stdout}`);
  return scored;
}

/** Returns the errors: failures that are not in the baseline, and lines of the baseline that no longer apply. */
function wrongIn(verdicts: readonly Verdict[], known: Readonly<Record<string, string>>): readonly string[] {
  const failures = verdicts.filter(({ passed, scenario }) => !passed && !Object.hasOwn(known, scenario));
  const stale = Object.keys(known).filter(
    (name) => !verdicts.some(({ scenario, passed }) => scenario === name && !passed),
  );
  return [
    ...failures.map(({ scenario }) => `${scenario} fails`),
    ...stale.map((scenario) => `${scenario} does not fail any more: take it out of test/conformance/baseline.json`),
  ];
}

/**
 * Prints what passes and what is wrong. If something is wrong, repeats all checks once: the suite waits only one second
 * for some answers, which may be too short while other checks run.
 */
async function report(
  name: string,
  check: () => Promise<readonly Verdict[]>,
  known: Readonly<Record<string, string>>,
): Promise<void> {
  const first = await check();
  const verdicts = wrongIn(first, known).length === 0 ? first : await check();
  const wrong = wrongIn(verdicts, known);
  const passed = verdicts.filter((one) => one.passed).length;
  const excused = Object.keys(known).length;
  const again = verdicts === first ? "" : `, at the second try (at the first: ${wrongIn(first, known).join("; ")})`;
  console.log(`${name}: ${passed} of ${verdicts.length} passed, ${excused} expected failures${again}`);
  for (const one of wrong) console.log(`  ${one}`);
  if (wrong.length > 0) process.exitCode = 1;
}

const checks = z.array(z.looseObject({ id: z.string(), status: z.string() }));

/** Runs the scenarios for tasks. Returns the result of each check. */
async function taskChecks(url: string): Promise<readonly Verdict[]> {
  const found: Verdict[] = [];
  for (const scenario of TASK_SCENARIOS) {
    await inFolder(async (folder) => {
      await underNode24(SUITE, ["conformance", "server", "--url", url, "--scenario", scenario, "-o", folder]);
      const [result = ""] = readdirSync(folder);
      const list = checks.parse(JSON.parse(readFileSync(join(folder, result, "checks.json"), "utf8")));
      found.push(...list.map(({ id, status }) => ({ scenario: id, passed: status === "SUCCESS" })));
    });
  }
  return found;
}

/** Checks the tasks of the built command. */
async function lookAtTasks(): Promise<void> {
  await withServer(TASK_SERVER, {}, (url) => report("tasks", () => taskChecks(url), baseline.tasks));
}

/** Checks one server, in every revision. */
async function look(name: keyof typeof SERVERS): Promise<void> {
  const { args, env } = SERVERS[name];
  await withServer(args, env, async (url) => {
    for (const revision of REVISIONS) {
      await report(`${name}, ${revision}`, () => required(url, revision), baseline[name][revision]);
    }
  });
}

// The first server is checked alone, because its check installs the suite. The checks mostly wait, so the others run in
// parallel.
if (process.argv[2] === "tasks") await lookAtTasks();
else {
  await look("shipped");
  await Promise.all([
    lookAtTasks(),
    ...(["shippedWithSessions", "fixtures", "fixturesWithSessions"] as const).map(look),
  ]);
}
