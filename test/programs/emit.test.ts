import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { runInNewContext } from "node:vm";
import { transform } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { emitSuite, SUITE_FORMATS } from "../../src/events/suites/emit.ts";
import { generateEventTests } from "../../src/events/suites/generate.ts";
import { type EventSuite, eventsOf } from "../../src/events/suites/suite.ts";
import { startSandbox } from "../../src/sandbox/index.ts";
import { startReferenceService } from "../events/reference-service.ts";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const modules = join(repository, "node_modules");
const suite = generateEventTests({ seed: 3, uid: `o'brien "$HOME" \`x\` \${y}` });
/** Cases of every kind for some events. */
const SOME = {
  eventNames: [
    ...["purchase", "add_to_cart", "view_item", "begin_checkout", "view_content", "begin_lead_form", "generate_lead"],
  ],
};
const DEFAULT_URL = "http://127.0.0.1:4010";
const failed = z.object({ code: z.number(), stdout: z.string() });
let folder: string;

interface Ended {
  readonly code: number;
  readonly output: string;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "event-suite-"));
  // The folder looks like a project that has installed this package and vitest, so npx starts these.
  const installed = join(folder, "node_modules");
  await mkdir(join(installed, ".bin"), { recursive: true });
  for (const name of await readdir(modules)) {
    if (!name.startsWith(".")) await symlink(join(modules, name), join(installed, name), "junction");
  }
  await symlink(repository, join(installed, "targeting-mcp"), "junction");
  const command = `#!/bin/sh\necho $$ >'${join(folder, "sandbox.pid")}'\nexec '${process.execPath}' '${join(repository, "dist/main.js")}' "$@"\n`;
  await writeFile(join(installed, ".bin/targeting-mcp"), command, { mode: 0o755 });
  await writeFile(join(folder, "package.json"), '{ "private": true }\n');
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** Returns whether a process runs. Signal 0 only checks this. */
function isRunning(id: number): boolean {
  try {
    return process.kill(id, 0);
  } catch {
    return false;
  }
}

/** Writes a suite to a file, and runs it against a service. Without `url`, the suite starts its own sandbox. */
async function run(emitted: EventSuite, format: "vitest" | "curl", url = ""): Promise<Ended> {
  const file = join(folder, SUITE_FORMATS[format].fileName);
  await writeFile(file, await emitSuite(emitted, format, DEFAULT_URL));
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
  });

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
  });

  it("fails against one that does not", async () => {
    const service = await startReferenceService(true);
    try {
      const { code, output } = await run(generateEventTests({ kinds: ["minimal"] }), format, service.url);
      expect(code).toBe(1);
      expect(output).toMatch(/app_open\/minimal\/required/);
    } finally {
      await service.close();
    }
  });

  it.skipIf(process.platform === "win32")("starts a sandbox of its own by default, and ends it", async () => {
    const { code, output } = await run(generateEventTests({ eventNames: ["sign_up"] }), format);
    expect(output).not.toContain("MISMATCH");
    expect(code).toBe(0);
    const id = Number(await readFile(join(folder, "sandbox.pid"), "utf8"));
    await expect.poll(() => isRunning(id), { timeout: 60_000 }).toBe(false);
  });

  it("says in its head that it tests the service, with which uid, and where", async () => {
    const [head = ""] = (await emitSuite(generateEventTests(), format, DEFAULT_URL)).split(/^[^#/]/m);
    expect(head).toContain("They test the service, not the app");
    expect(head).toContain("event-tests-1");
    expect(head).toContain("their own sandbox");
    expect(head).toContain("EVENT_API_URL");
    const chosen = await emitSuite(suite, format, DEFAULT_URL);
    expect(chosen).not.toContain("The uid of the events is");
  });
});

it("is TypeScript for Playwright too, which `npm run test:browser` runs in a browser", async () => {
  const { code } = await transform(await emitSuite(suite, "playwright", DEFAULT_URL), { loader: "ts" });
  expect(code).toContain('from "@playwright/test"');
});

/** The parts of Playwright's `expect` that the page test uses. Prints failures completely. */
function pageExpect(actual: unknown, note = "") {
  const must = (holds: boolean): void => {
    if (!holds) throw new Error(`${note} ${Array.isArray(actual) ? actual.join("; ") : String(actual)}`);
  };
  return {
    toBeTruthy: () => must(Boolean(actual)),
    toBeGreaterThan: (least: number) => must(Number(actual) > least),
    toEqual: (wanted: unknown) => must(JSON.stringify(actual) === JSON.stringify(wanted)),
  };
}

/** Runs the page test with a replacement for Playwright. Returns what the page had to do, and what the test reports. */
async function testPage(emitted: EventSuite, bodies: readonly string[], expected = "") {
  const { code } = await transform(await emitSuite(emitted, "playwright", DEFAULT_URL), {
    loader: "ts",
    format: "cjs",
  });
  const notes: string[] = [];
  const tests: ((given: unknown) => Promise<void>)[] = [];
  const annotations = { push: ({ description }: { description: string }) => notes.push(description) };
  const declare = (_title: string, run: (given: unknown) => Promise<void>) => tests.push(run);
  const playwright = { expect: pageExpect, test: Object.assign(declare, { info: () => ({ annotations }) }) };
  const env = { PAGE_URL: "https://page.example/", EXPECTED_EVENTS: expected, PAGE_WAIT_MS: "0" };
  runInNewContext(code, { require: () => playwright, module: {}, process: { env } });
  expect(tests).toHaveLength(1);
  let listener = (_request: unknown): void => {};
  const page = {
    on: (_name: string, listen: typeof listener) => {
      listener = listen;
    },
    goto: async () => {
      for (const body of bodies) {
        listener({ method: () => "POST", url: () => "http://127.0.0.1:4010/event", postData: () => body });
      }
    },
    waitForTimeout: async () => {},
  };
  const problem = await tests[0]?.({ page }).then(
    () => "",
    (thrown: unknown) => String(thrown instanceof Error ? thrown.message : thrown),
  );
  return { problem, notes };
}

describe("the Playwright file", () => {
  const right = { uid: "u", eventName: "purchase", tx_id: "t", items: [{ item_id: "i" }] };
  const passes = { problem: "", notes: [] };

  it("passes for events that are recorded, and only notes a parameter that is not used", async () => {
    expect(await testPage(suite, [JSON.stringify(right)], "purchase")).toEqual(passes);
    const more = { ...right, coupon: "c", items: [{ item_id: "i", size: "L" }] };
    expect(await testPage(suite, [JSON.stringify(right), JSON.stringify(more)])).toEqual({
      problem: "",
      notes: [
        "event 1: purchase.items[0].size is not a parameter of this event; the service ignores it",
        "event 1: purchase.coupon is not a parameter of this event; the service ignores it",
      ],
    });
    const unused = { uid: "u", eventName: "app_open", items: [] };
    expect((await testPage(suite, [JSON.stringify(unused)])).problem).toBe("");
  });

  it("looks only at the events that were asked for, and takes the others for what they are", async () => {
    const other = JSON.stringify({ uid: "u", eventName: "sign_up" });
    const purchases = generateEventTests({ eventNames: ["purchase"], kinds: ["misspelt"] });
    expect((await testPage(suite, [other])).problem).toContain("sign_up.method is missing");
    expect(await testPage(purchases, [other])).toEqual({
      ...passes,
      notes: ["event 0: sign_up is not checked by this test"],
    });
  });

  it.each([
    ["", "the body is not a JSON object"],
    ["[]", "the body is not a JSON object"],
    ['{"uid":"u","eventName":"Purchase","tx_id":"t"}', '"Purchase" is not a supported event'],
    ['{"uid":"u","eventName":"toString"}', "is not a supported event"],
    ['{"eventName":"app_open"}', "app_open.uid is missing"],
    ['{"uid":"u","eventName":"view_item","__proto__":{"item_id":"i"}}', "view_item.item_id is missing"],
    ['{"uid":"u","eventName":"sign_up","method":null}', "sign_up.method is missing"],
    ['{"uid":"u","eventName":"purchase","tx_id":"t","items":[{}]}', "purchase.items[0].item_id is missing"],
    ['{"uid":"u","eventName":"purchase","tx_id":"t","items":[1]}', "purchase.items[0] is not an object"],
    ['{"uid":"u","eventName":"view_item","item_id":"i","price":"12.50"}', "view_item.price is not a number"],
    [JSON.stringify({ ...right, coupon: "가".repeat(1025) }), "purchase.coupon is longer than 1024 characters"],
    [
      JSON.stringify({ uid: "u", eventName: "app_open", items: Array(101).fill({}) }),
      "items has more than 100 entries",
    ],
  ])("fails for %.70s", async (body, words) => {
    expect((await testPage(suite, [body])).problem).toContain(words);
  });

  it("fails where the page does not send what it must", async () => {
    expect((await testPage(suite, [])).problem).toContain("the page sent no event");
    expect((await testPage(suite, [JSON.stringify(right)], "purchase,click")).problem).toContain("did not send");
  });
});

it("reports every wrong and every missing event of a page at once", async () => {
  const wrong = [
    { uid: "u", eventName: "sign_up" },
    { eventName: "view_item", price: "1" },
    { uid: "u", eventName: "buy" },
  ];
  const sent = wrong.map((event) => JSON.stringify(event));
  const { problem } = await testPage(suite, sent, "sign_up,purchase,click");
  for (const words of [
    "the page did not send purchase",
    "the page did not send click",
    "event 0: sign_up.method is missing",
    "event 1: view_item.uid is missing",
    "event 1: view_item.item_id is missing",
    "event 1: view_item.price is not a number",
    'event 2: "buy" is not a supported event',
  ]) {
    expect(problem).toContain(words);
  }
});

it("is the suite itself as JSON", async () => {
  expect(JSON.parse(await emitSuite(suite, "json", DEFAULT_URL))).toEqual(suite);
});
