// Runs the official conformance suite, under Node 24 (it needs 22), against the shipped command and against the same
// HTTP code with the fixtures that the suite calls by name. Needs the package registry: `npm run conformance`.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12";
const REVISIONS = ["2025-11-25", "2026-07-28"] as const;

/** What must pass without fixtures: everything about the protocol itself. */
const WITHOUT_FIXTURES: Readonly<Record<(typeof REVISIONS)[number], readonly string[]>> = {
  "2025-11-25": [
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
    "server-session-lifecycle",
  ],
  "2026-07-28": [
    "tools-list",
    "resources-list",
    "prompts-list",
    "server-sse-multiple-streams",
    "sep-2164-resource-not-found",
    "dns-rebinding-protection",
    "caching",
    "input-required-result-unsupported-methods",
    "http-header-validation",
  ],
};

interface Verdict {
  readonly scenario: string;
  readonly passed: boolean;
  /** Not part of what a revision requires. */
  readonly unscored: boolean;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

function start(args: readonly string[]): ChildProcess {
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-"));
  const env = { ...process.env, TARGETING_MCP_STATE_DIR: folder, TARGETING_MCP_SESSIONS: "on" };
  return spawn(process.execPath, [...args], { env, stdio: "ignore" });
}

async function reachable(url: string): Promise<void> {
  for (;;) {
    const answered = await fetch(url).then(
      () => true,
      () => false,
    );
    if (answered) return;
    await delay(100);
  }
}

async function suite(url: string, revision: string): Promise<readonly Verdict[]> {
  const results = mkdtempSync(join(tmpdir(), "conformance-"));
  const call = ["conformance", "server", "--url", url, "--requirements", revision, "-o", results];
  const child = spawn("npx", ["-y", "-p", "node@24", "-p", SUITE, ...call], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  await once(child, "close");
  const summary = output.slice(output.indexOf("=== SUMMARY"));
  const unscored = new Set([...summary.matchAll(/^\s+[✓✗] (\S+) \([a-z-]+\)$/gm)].map(([, scenario]) => scenario));
  const lines = [...summary.matchAll(/^([✓✗]) ([\w-]+): \d+ passed/gm)];
  if (lines.length === 0) throw new Error(`the suite gave no summary:\n${output}`);
  return lines.map(([, mark, scenario = ""]) => ({
    scenario,
    passed: mark === "✓",
    unscored: unscored.has(scenario),
  }));
}

const SERVERS = [
  {
    name: "the shipped command",
    args: (port: number) => ["dist/main.js", "http", "--port", `${port}`],
    required: (revision: (typeof REVISIONS)[number], { scenario }: Verdict) =>
      WITHOUT_FIXTURES[revision].includes(scenario),
  },
  {
    name: "with fixtures",
    args: (port: number) => ["--import", "tsx", "test/conformance/server.ts", `${port}`],
    required: (_revision: (typeof REVISIONS)[number], { unscored }: Verdict) => !unscored,
  },
];

for (const { name, args, required } of SERVERS) {
  const port = await freePort();
  const server = start(args(port));
  await reachable(`http://127.0.0.1:${port}/healthz`);
  for (const revision of REVISIONS) {
    const verdicts = (await suite(`http://127.0.0.1:${port}/mcp`, revision)).filter((one) => required(revision, one));
    const failed = verdicts.filter(({ passed }) => !passed).map(({ scenario }) => scenario);
    console.log(`${name}, ${revision}: ${verdicts.length - failed.length} of ${verdicts.length} ${failed.join(" ")}`);
    if (failed.length > 0) process.exitCode = 1;
  }
  server.kill();
}
