// Runs the tests that need Chromium. First the tests of the page (test/browser). Then the generated Playwright test: it
// must pass on a page with correct events, and fail on a page with wrong ones. The pages send their events to a
// sandbox, which must have the same results. Installs Chromium from Debian's packages if CHROMIUM is not set, and
// Playwright into a temporary folder, which it removes. Run it with: npm run test:browser
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { emitSuite, SUITE_FORMATS } from "../src/events/suites/emit.ts";
import { generateEventTests } from "../src/events/suites/generate.ts";
import { startSandbox } from "../src/sandbox/index.ts";

const PLAYWRIGHT = "@playwright/test@1.65.1";
const chromium = process.env.CHROMIUM ?? "/usr/bin/chromium";

const HEADERS = { authorization: "sandbox-app-key", "content-type": "application/json" };

const PAGES = {
  "/right": [
    { uid: "u-1", eventName: "view_item", item_id: "i-1", price: 12.5 },
    { uid: "u-1", eventName: "purchase", tx_id: "t-1", currency: "KRW", items: [{ item_id: "i-1", quantity: 2 }] },
  ],
  "/wrong": [
    { uid: "u-1", eventName: "view_item", itemId: "i-1" },
    { uid: "u-1", eventName: "purchase", tx_id: "t-1", items: [{ item_name: "mug" }] },
  ],
};

const INSTALL_ENVIRONMENT = { PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD: "1", DEBIAN_FRONTEND: "noninteractive" };

/** Runs a command with visible output, and returns its exit status. */
function run(command: string, args: readonly string[], cwd: string, env: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: "inherit" });
    child.on("error", reject).on("close", (code) => resolve(code ?? 1));
  });
}

async function mustRun(command: string, args: readonly string[], cwd: string): Promise<void> {
  const code = await run(command, args, cwd, INSTALL_ENVIRONMENT);
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} ended with status ${code}`);
}

/**
 * Installs Debian's Chromium. Updates the package lists first, because they may be missing or old in a new container.
 */
async function installChromium(): Promise<void> {
  const [command, ...before] = process.getuid?.() === 0 ? ["apt-get"] : ["sudo", "apt-get"];
  if (command === undefined) return;
  await mustRun(command, [...before, "-q", "update"], tmpdir());
  await mustRun(command, [...before, "-q", "install", "-y", "--no-install-recommends", "chromium"], tmpdir());
}

/** Serves the pages, which send their events to another origin. */
async function servePages(eventUrl: string): Promise<{ readonly server: Server; readonly url: string }> {
  const server = createServer((request, response) => {
    const page = Object.entries(PAGES).find(([path]) => path === request.url);
    if (page === undefined) {
      response.writeHead(404).end();
    } else {
      response.setHeader("content-type", "text/html").end(`<script type="module">
        for (const event of ${JSON.stringify(page[1])}) {
          await fetch(${JSON.stringify(eventUrl)}, { method: "POST", headers: ${JSON.stringify(HEADERS)}, body: JSON.stringify(event) });
        }
      </script>`);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the server of the pages has no port");
  return { server, url: `http://127.0.0.1:${address.port}` };
}

if (!existsSync(chromium)) await installChromium();
const root = join(import.meta.dirname, "..");
await mustRun("npx", ["vitest", "run", "--config", "test/browser/vitest.config.ts"], root);
const folder = await mkdtemp(join(tmpdir(), "event-browser-"));
const sandbox = await startSandbox();
const { server, url } = await servePages(`${sandbox.url}/event`);
try {
  await writeFile(join(folder, "package.json"), '{ "private": true }\n');
  await mustRun("npm", ["install", "--no-audit", "--no-fund", "--save-exact", PLAYWRIGHT], folder);
  await writeFile(
    join(folder, SUITE_FORMATS.playwright.fileName),
    await emitSuite(generateEventTests(), "playwright", "http://127.0.0.1:4010"),
  );
  const launch = { executablePath: chromium, args: ["--no-sandbox"] };
  const config = { testDir: folder, use: { launchOptions: launch } };
  await writeFile(join(folder, "playwright.config.mjs"), `export default ${JSON.stringify(config)};\n`);
  for (const [path, expected, verdict] of [
    ["/right", 0, "recorded"],
    ["/wrong", 1, "ignored"],
  ] as const) {
    const env = { EVENT_API_URL: sandbox.url, PAGE_URL: url + path, EXPECTED_EVENTS: "view_item,purchase" };
    const before = sandbox.events().length;
    const code = await run("npx", ["playwright", "test"], folder, env);
    if (code !== expected) throw new Error(`the test of ${path} ended with status ${code}, not ${expected}`);
    const seen = sandbox
      .events()
      .slice(before)
      .map((event) => `${event.eventName} ${event.verdict}`);
    if (seen.join() !== `view_item ${verdict},purchase ${verdict}`)
      throw new Error(`the sandbox received unexpected events: ${seen.join()}`);
  }
  console.log("the generated Playwright test passes with correct events and fails with wrong ones");
} finally {
  server.close();
  server.closeAllConnections();
  await sandbox.close();
  await rm(folder, { recursive: true, force: true });
}
