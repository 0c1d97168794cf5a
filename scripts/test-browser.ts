// Runs the emitted Playwright test in Chromium: it must pass on a page whose events are right, and fail on one whose
// events are not. Installs Chromium from Debian's packages where CHROMIUM names none, and Playwright into a temporary
// folder. Run it with: npx tsx scripts/test-browser.ts
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { emitSuite, SUITE_FORMATS } from "../src/events/emit.ts";
import { generateEventTests } from "../src/events/generate.ts";

const PLAYWRIGHT = "@playwright/test@1.65.1";
const chromium = process.env.CHROMIUM ?? "/usr/bin/chromium";

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

/** Runs a command with its output shown, and gives its exit status. */
function run(command: string, args: readonly string[], cwd: string, env: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: "inherit" });
    child.on("error", reject).on("close", (code) => resolve(code ?? 1));
  });
}

async function mustRun(command: string, args: readonly string[], cwd: string): Promise<void> {
  const code = await run(command, args, cwd, { PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD: "1" });
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} ended with status ${code}`);
}

/** Serves the pages, and an event endpoint beside them that says ok to everything. */
async function servePages(): Promise<{ readonly server: Server; readonly url: string }> {
  const server = createServer((request, response) => {
    const page = Object.entries(PAGES).find(([path]) => path === request.url);
    if (request.url === "/event") {
      response.setHeader("content-type", "application/json").end('{"message":"ok"}');
    } else if (page === undefined) {
      response.writeHead(404).end();
    } else {
      response.setHeader("content-type", "text/html").end(`<script type="module">
        for (const event of ${JSON.stringify(page[1])}) {
          await fetch("/event", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(event) });
        }
      </script>`);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the pages are served on no port");
  return { server, url: `http://127.0.0.1:${address.port}` };
}

if (!existsSync(chromium)) await mustRun("apt-get", ["install", "-y", "--no-install-recommends", "chromium"], tmpdir());
const folder = await mkdtemp(join(tmpdir(), "event-browser-"));
const { server, url } = await servePages();
try {
  await writeFile(join(folder, "package.json"), '{ "private": true }\n');
  await mustRun("npm", ["install", "--no-audit", "--no-fund", "--save-exact", PLAYWRIGHT], folder);
  await writeFile(join(folder, SUITE_FORMATS.playwright.fileName), emitSuite(generateEventTests(), "playwright"));
  const launch = { executablePath: chromium, args: ["--no-sandbox"] };
  const config = { testDir: folder, use: { launchOptions: launch } };
  await writeFile(join(folder, "playwright.config.mjs"), `export default ${JSON.stringify(config)};\n`);
  for (const [path, expected] of [
    ["/right", 0],
    ["/wrong", 1],
  ] as const) {
    const env = { EVENT_API_URL: url, PAGE_URL: url + path, EXPECTED_EVENTS: "view_item,purchase" };
    const code = await run("npx", ["playwright", "test"], folder, env);
    if (code !== expected) throw new Error(`the test of ${path} ended with status ${code}, not ${expected}`);
  }
  console.log("the emitted Playwright test tells right events from wrong ones");
} finally {
  server.close();
  server.closeAllConnections();
  await rm(folder, { recursive: true, force: true });
}
