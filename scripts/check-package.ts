// Checks what would be published: what the package holds, that it installs into an empty folder and runs there, and
// what the tools for packages say. They come through npm with exact versions, and are no dependencies, since only this
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

const TOOLS = {
  publint: "publint@0.3.25",
  attw: "@arethetypeswrong/cli@0.18.5",
  mcpb: "@anthropic-ai/mcpb@2.1.2",
  knip: "knip@6.44.2",
} as const;

/** Everything that the package may hold, and must: a pattern that matches no file is a mistake, too. */
const CONTENTS = [
  /^package\.json$/,
  /^README\.md$/,
  /^LICENSE$/,
  /^dist\/main\.js$/,
  /^dist\/[a-z-]+-[A-Z0-9]{8}\.js$/,
  /^dist\/LICENSES\.txt$/,
  /^docs\/(?:deployment|desired-state|files|safety|sandbox|sandbox-fidelity|settings|tools)\.md$/,
  /^docs\/(?:desired-state|event-suite|plan)\.schema\.json$/,
] as const;

const MOST_BYTES = 1_000_000;

const packed = z
  .array(z.object({ filename: z.string(), size: z.number(), files: z.array(z.object({ path: z.string() })) }))
  .length(1);
const audited = z.looseObject({ auditReportVersion: z.literal(2), metadata: z.unknown() });

/** Runs npm, on every platform without a shell; gives its exit code and its standard output. */
async function npm(args: readonly string[], cwd: string): Promise<{ readonly code: unknown; readonly output: string }> {
  const program = process.env.npm_execpath;
  if (program === undefined) throw new Error("run this with npm run check:package");
  const child = spawn(process.execPath, [program, ...args], { cwd, stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [code] = await once(child, "close");
  return { code, output };
}

/** Runs a command of a package from the registry, which must end with 0. */
async function passes(tool: keyof typeof TOOLS, ...args: readonly string[]): Promise<void> {
  const { code, output } = await npm(["exec", "--yes", `--package=${TOOLS[tool]}`, "--", tool, ...args], root);
  if (code !== 0) throw new Error(`${tool} found something:\n${output}`);
}

async function pack(): Promise<z.infer<typeof packed>[number]> {
  const { output } = await npm(["pack", "--json", "--ignore-scripts", `--pack-destination=${folder}`], root);
  const [found] = packed.parse(JSON.parse(output));
  if (found === undefined) throw new Error("npm packed nothing");
  return found;
}

function checkContents({ files, size }: z.infer<typeof packed>[number]): void {
  const paths = files.map(({ path }) => path);
  const needless = paths.filter((path) => !CONTENTS.some((pattern) => pattern.test(path)));
  const missing = CONTENTS.filter((pattern) => !paths.some((path) => pattern.test(path)));
  if (needless.length > 0) throw new Error(`the package holds what nobody needs: ${needless.join(", ")}`);
  if (missing.length > 0) throw new Error(`the package lacks ${missing.join(", ")}`);
  if (size > MOST_BYTES) throw new Error(`the package has ${size} bytes, more than ${MOST_BYTES}`);
}

/** Installs the package as a user does, into a folder that holds nothing. */
async function install(tarball: string): Promise<void> {
  const { code, output } = await npm(["install", "--prefix", installed, "--no-audit", join(folder, tarball)], folder);
  if (code !== 0) throw new Error(`it cannot be installed:\n${output}`);
}

/** An environment without any setting of this machine. */
function environment(): Record<string, string> {
  return {
    PATH: process.env.PATH ?? "",
    TARGETING_MCP_STATE_DIR: join(folder, "state"),
    TARGETING_MCP_LOG_LEVEL: "warn",
  };
}

async function checkHelp(): Promise<void> {
  const { code, output } = await npm(["exec", "--offline", "--", packageJson.name, "--help"], installed);
  if (code !== 0 || !output.includes("targeting-mcp doctor")) throw new Error(`--help says:\n${output}`);
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
  if (names(tools) !== names(manifest.tools)) throw new Error(`it lists ${names(tools)}`);
  if (made.isError === true) throw new Error(`a call fails: ${JSON.stringify(made)}`);
}

async function checkSandbox(): Promise<void> {
  const child = spawn(process.execPath, [main, "sandbox", "--port", "0"], {
    env: environment(),
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const response = await fetch(`${await addressFrom(child)}/_sandbox`);
    if (!response.ok) throw new Error(`the sandbox answers ${response.status}`);
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
  throw new Error("the sandbox says no address");
}

/** The package has no dependencies, so that the second audit, of all that is bundled, is the one that tells something. */
async function checkAdvisories(): Promise<string> {
  const published = await npm(["audit", "--omit=dev"], root);
  if (published.code !== 0) throw new Error(published.output);
  const { code, output } = await npm(["audit", "--json"], root);
  if (!audited.safeParse(JSON.parse(output)).success) {
    return "npm audit --omit=dev is clean; of the bundled packages nothing is known, since this registry answers no audit";
  }
  if (code !== 0) throw new Error(output);
  return "npm audit, with and without --omit=dev";
}

const root = join(import.meta.dirname, "..");
const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-package-"));
const installed = join(folder, "installed");
const main = join(installed, "node_modules", packageJson.name, packageJson.bin["targeting-mcp"]);
try {
  const found = await pack();
  const tarball = join(folder, found.filename);
  const checks: readonly (readonly [string, () => unknown])[] = [
    ["it holds what is needed, and nothing else", () => checkContents(found)],
    ["publint", () => passes("publint", "run", tarball, "--strict")],
    ["are the types wrong?", () => passes("attw", tarball, "--profile", "esm-only")],
    ["it installs into an empty folder", () => install(found.filename)],
    ["--help", checkHelp],
    ["MCP over stdio: the tools of the manifest, and a call", checkStdio],
    ["the sandbox", checkSandbox],
    ["manifest.json, by the format's own schema", () => passes("mcpb", "validate", "manifest.json")],
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
