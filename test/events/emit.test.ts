import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { transform } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { emitSuite, SUITE_FORMATS } from "../../src/events/emit.ts";
import { generateEventTests } from "../../src/events/generate.ts";
import { type EventSuite, eventsOf } from "../../src/events/suite.ts";
import { startSandbox } from "../../src/sandbox/index.ts";
import { startReferenceService } from "./reference-service.ts";

const modules = fileURLToPath(new URL("../../node_modules", import.meta.url));
const suite = generateEventTests({ seed: 3, uid: `o'brien "$HOME" \`x\` \${y}` });
/** Every kind of case, of some events. */
const SOME = {
  eventNames: [
    "purchase",
    "add_to_cart",
    "view_item",
    "begin_checkout",
    "view_content",
    "begin_lead_form",
    "generate_lead",
  ],
};
const failed = z.object({ code: z.number(), stdout: z.string() });
let folder: string;

interface Ended {
  readonly code: number;
  readonly output: string;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "event-suite-"));
  await symlink(modules, join(folder, "node_modules"), "junction");
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** Emits a suite and runs the file against a service; another sandbox can take that service's place. */
async function run(emitted: EventSuite, format: "vitest" | "curl", url: string): Promise<Ended> {
  const file = join(folder, SUITE_FORMATS[format].fileName);
  await writeFile(file, emitSuite(emitted, format));
  const [command, args] =
    format === "curl"
      ? ["sh", [file]]
      : [process.execPath, [join(modules, "vitest/vitest.mjs"), "run", "--root", folder, "--reporter", "verbose"]];
  const env = { ...process.env, EVENT_API_URL: url, EVENT_APP_KEY: "sandbox-app-key", NO_COLOR: "1" };
  try {
    const { stdout } = await promisify(execFile)(command, args, { cwd: folder, env, maxBuffer: 2 ** 26 });
    return { code: 0, output: stdout };
  } catch (failure) {
    const { code, stdout } = failed.parse(failure);
    return { code, output: stdout };
  }
}

describe.each(["vitest", "curl"] as const)("the %s file", (format) => {
  it("passes against a service that follows the document, and sends every event", async () => {
    const service = await startReferenceService();
    try {
      const { code, output } = await run(suite, format, `${service.url}/`);
      expect(output).not.toContain("MISMATCH");
      expect(code).toBe(0);
      const sent = suite.cases.flatMap((one) => (one.kind === "sequence" ? one.events : [one.body]));
      expect(service.arrived.map(({ body }) => body)).toEqual(sent);
    } finally {
      await service.close();
    }
  }, 120_000);

  it("passes against the sandbox, which keeps every event", async () => {
    const sandbox = await startSandbox();
    try {
      const { code, output } = await run(generateEventTests(SOME), format, sandbox.url);
      expect(output).not.toContain("MISMATCH");
      expect(code).toBe(0);
      const verdicts = generateEventTests(SOME).cases.flatMap((one) => eventsOf(one).map(() => one.expected));
      expect(sandbox.events().map(({ verdict }) => verdict)).toEqual(
        verdicts.map((verdict) => (verdict === "uncertain" ? "recorded" : verdict)),
      );
    } finally {
      await sandbox.close();
    }
  }, 120_000);

  it("fails against one that does not", async () => {
    const service = await startReferenceService(true);
    try {
      const { code, output } = await run(generateEventTests({ kinds: ["minimal"] }), format, service.url);
      expect(code).toBe(1);
      expect(output).toMatch(/app_open\/minimal\/required/);
    } finally {
      await service.close();
    }
  }, 120_000);
});

it("is TypeScript for Playwright too, which `npm run test:browser` runs in a browser", async () => {
  const { code } = await transform(emitSuite(suite, "playwright"), { loader: "ts" });
  expect(code).toContain('from "@playwright/test"');
});

it("is the suite itself as JSON", () => {
  expect(JSON.parse(emitSuite(suite, "json"))).toEqual(suite);
});
