import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { fastTests, testFiles, testsThatReplaceModules } from "../scripts/fast-tests.ts";
import vitestConfig from "../vitest.config.ts";

const ROOT = join(import.meta.dirname, "..");

/** The folders of tests that take long or need other programs, each with the command that runs it. */
const OWN_COMMANDS = Object.entries({
  ...{ agents: "agents", cluster: "cluster", commands: "servers", durability: "durability", fuzz: "servers" },
  ...{ kill: "kill", load: "load", packaging: "packaging", pages: "pages", programs: "programs" },
  ...{ servers: "servers", spreadsheets: "spreadsheets", undo: "undo" },
});

/** Creates a repository with these files. */
function repository(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "targeting-mcp-"));
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
  return root;
}

test("a test that starts a process is not fast, however far away it does", () => {
  const root = repository({
    "src/plain.ts": "export const one = 1;",
    "test/support/process.ts": 'import { spawn } from "node:child_process"; export { spawn };',
    "test/support/server.ts": 'export { spawn as start } from "./process.ts";',
    "test/room/plain.test.ts": 'import { one } from "../../src/plain.ts"; one;',
    "test/room/spawns.test.ts": 'import { spawn } from "node:child_process"; spawn;',
    "test/room/far.test.ts": 'import { start } from "../support/server.ts"; start;',
    "test/room/late.test.ts": 'await import("../support/server.ts");',
    "test/room/client.test.ts": 'import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";',
    "test/room/built.test.ts": `readFileSync("${["dist", "main.js"].join("/")}");`,
    "test/e2e/plain.test.ts": "export {};",
  });
  expect(fastTests(root)).toEqual(["test/room/plain.test.ts"]);
});

test("no fast test names what starts a process, and every room below the tools has fast tests", () => {
  const fast = fastTests();
  expect(fast.filter((file) => /from "node:child_process"/.test(readFileSync(join(ROOT, file), "utf8")))).toEqual([]);
  const folders = new Set(fast.map((file) => file.split("/")[1]));
  for (const room of ["api", "changes", "events", "files", "answers", "mcp", "reads", "runs", "sandbox", "tools"]) {
    expect(folders, room).toContain(room);
  }
});

test("every test is in one of the three projects, and in no other", () => {
  const [fast, replacing, others] = vitestConfig.test?.projects ?? [];
  expect(fast).toMatchObject({ test: { name: "fast", include: fastTests() } });
  expect(replacing).toMatchObject({ test: { name: "replaced modules", include: testsThatReplaceModules() } });
  const exclude = [
    ...fastTests(),
    ...testsThatReplaceModules(),
    ...OWN_COMMANDS.map(([folder]) => `test/${folder}/**`),
  ];
  expect(others).toMatchObject({ test: { name: "processes", include: ["test/**/*.test.ts"], exclude } });
  expect(testFiles().length).toBeGreaterThan(fastTests().length);
});

test.each(OWN_COMMANDS)("the tests in test/%s have a command of their own, which CI runs: test:%s", (_, command) => {
  const ci = [".ci/run", ".github/workflows/test.yml"].map((file) => readFileSync(join(ROOT, file), "utf8")).join("\n");
  expect(ci).toContain(`npm run test:${command}`);
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  expect(scripts[`test:${command}`]).toContain(`test/${command}`);
});

test("a test that replaces modules runs by itself, for others would get them as well", () => {
  const root = repository({
    "test/room/plain.test.ts": "export {};",
    "test/room/replaces.test.ts": 'vi.mock("node:fs");',
  });
  expect(testsThatReplaceModules(root)).toEqual(["test/room/replaces.test.ts"]);
  expect(fastTests(root)).toEqual(["test/room/plain.test.ts"]);
});
