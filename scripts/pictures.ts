// Takes the pictures of README.md and docs/guides/ from the real web page in Chromium, light and dark: the built
// command's sandbox with its sample data, and a server over stdio with a plan that waits for approval. Needs Debian's
// Chromium, or the one in CHROMIUM. Run it with: npm run pictures
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { chromium, type Page } from "playwright-core";
import * as z from "zod";
import { fileAt } from "./packaging/generated.ts";

const FOLDER = "docs/page";
const VIEWPORT = { width: 1240, height: 780 };

/** The events of an app during a test: some are correct, and some are never counted by the service. */
const SENT = [
  { eventName: "app_open" },
  { eventName: "page_view", page_id: "home", page_url: "https://example.com/" },
  { eventName: "Purchase", orderId: "order-1042", currency: "KRW" },
  { eventName: "view_item", item_id: "sku-7", price: 12000 },
  { eventName: "add_to_cart", currency: "KRW" },
  { eventName: "click", element_id: "buy" },
  { eventName: "product_view", item_id: "sku-7" },
  { eventName: "begin_checkout", currency: "KRW", items: [{ item_id: "sku-7" }] },
];
const PLATFORMS = ["web", "ios", "android"];

/** Sends an app's events of the last ten minutes to a sandbox. */
async function sendEvents(url: string): Promise<void> {
  const now = Date.now();
  const events = Array.from({ length: 160 }, (_, at) => {
    const platform = PLATFORMS[at % PLATFORMS.length];
    const event = { uid: `shopper-${at % 30}`, platform, ...SENT[(at * 5 + (at >> 3)) % SENT.length] };
    return { at: new Date(now - 595_000 + at * 3_700).toISOString(), event };
  });
  await fetch(`${url}/_sandbox/seed`, { method: "POST", body: JSON.stringify({ events }) });
}

/** The actions in each view before its picture is taken. */
const VIEWS: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  async events(page) {
    await page.getByRole("table", { name: "Events" }).getByRole("link", { name: "Purchase" }).first().click();
    await page.getByText("Corrected event", { exact: true }).waitFor();
  },
  async targetings(page) {
    await page.getByRole("button", { name: "Shop Categories" }).click();
    await page.getByRole("button", { name: "Clothing" }).click();
    await page.getByRole("button", { name: "Jackets" }).click();
    await page.getByRole("heading", { name: /Context ID/ }).waitFor();
  },
  async faults(page) {
    for (const preset of ["Answer lost after the write", "One in ten fails"]) {
      await page.getByRole("button", { name: preset }).click();
    }
    await page.getByText("2 active faults").waitFor();
    await page.getByText("The fault was added.").waitFor();
  },
};

/** Removes the simulated faults of the last picture. */
async function withoutFaults(url: string): Promise<void> {
  await fetch(`${url}/_sandbox/faults`, { method: "DELETE" });
}

/** The actions in each view of a server whose plan waits for a decision, before its picture is taken. */
const DECIDING_VIEWS: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  async approvals(page) {
    await page.locator("[data-action=approve][aria-disabled=false]").waitFor();
    await page.locator("table.diff").waitFor();
  },
  async runs(page) {
    await page.goto(page.url().replace("#/runs", "#/approvals"));
    await page.locator("[data-action=approve][aria-disabled=false]").click();
    await page.locator("[data-action=approve]").waitFor({ state: "detached" });
    await page.goto(page.url().replace("#/approvals", "#/runs"));
    await page.locator("main a[href^='#/runs/']", { hasText: /^Applied/ }).press("Enter");
    await page.locator("[data-action=undo]").waitFor();
    await page.locator("table.diff").waitFor();
  },
};

const answer = z.looseObject({ runId: z.string().default(""), options: z.array(z.looseObject({})).default([]) });
const desiredFile = z.looseObject({
  options: z.array(
    z.looseObject({ name: z.string(), children: z.array(z.looseObject({ name: z.string() })).optional() }),
  ),
});

/**
 * Requests a plan with all kinds of changes from a server over stdio, and returns the link that the server opens for
 * the person.
 */
async function plannedOver(url: string, folder: string): Promise<{ readonly link: string; close(): Promise<void> }> {
  const opened = join(folder, "opened");
  const client = new Client({ name: "pictures", version: "1.0.0" }, { versionNegotiation: { mode: "legacy" } });
  const env = {
    PATH: process.env.PATH ?? "",
    TARGETING_MCP_STATE_DIR: join(folder, "state"),
    TARGETING_MCP_ALLOWED_DIRS: folder,
    TARGETING_MCP_WAIT_MS: "3000",
    TARGETING_MCP_MAX_CHANGE_PERCENT: "100",
    TARGETING_MCP_PAGE: "on",
    TARGETING_MCP_PROJECT: "shop",
    TARGETING_API_URL: url,
    TARGETING_API_KEY: "sandbox-key",
    BROWSER: `${process.execPath} ${join(import.meta.dirname, "../test/support/fake-browser.mjs")} ${opened} %s`,
  };
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: ["dist/main.js"], env, stderr: "ignore" }),
  );
  const call = async (name: string, input: Record<string, unknown>) =>
    answer.parse((await client.callTool({ name, arguments: input })).structuredContent);
  const targetingId = await sampleTargeting(url);
  const file = join(folder, "categories.json");
  await call("list_options", { targetingId, saveTo: file });
  await call("update_contexts", { items: [{ name: "Jackets", add: ["cat-parka"] }], targetingId });
  const state = desiredFile.parse(JSON.parse(await readFile(file, "utf8")));
  await writeFile(file, JSON.stringify({ ...state, options: changedOptions(state.options) }));
  const { runId } = await call("plan_targeting", { file, prune: true });
  const asking = call("apply_plan", { runId });
  for (let tries = 0; tries < 200; tries += 1) {
    const link = (await readFile(opened, "utf8").catch(() => "")).trim();
    if (link !== "")
      return {
        link,
        async close() {
          await asking;
          await client.close();
        },
      };
    await delay(50);
  }
  throw new Error(`the server did not open the page; its answer: ${JSON.stringify(await asking)}`);
}

/** Returns the ID of the sample targeting whose options are groups. */
async function sampleTargeting(url: string): Promise<string> {
  const held = z.object({
    projects: z.array(z.object({ targetings: z.array(z.object({ _id: z.string(), name: z.string() })) })),
  });
  const { projects } = held.parse(await (await fetch(`${url}/_sandbox/state`)).json());
  const found = projects.flatMap(({ targetings }) => targetings).find(({ name }) => name === "Shop Categories");
  if (found === undefined) throw new Error("the sample data has no Shop Categories");
  return found._id;
}

type DesiredOption = z.output<typeof desiredFile>["options"][number];

/** Changes one option for each kind of change: renamed, with other Context IDs, moved, created, and removed. */
function changedOptions(options: readonly DesiredOption[]): readonly DesiredOption[] {
  const boots = options.flatMap(({ children = [] }) => children.filter(({ name }) => name === "Boots"));
  const dresses = { name: "Dresses", contexts: ["category-dresses"] };
  return options.map((option) => {
    const { name, children = [] } = option;
    if (name === "Bags") return { ...option, name: "Bags and Backpacks" };
    if (name === "Gift Cards") return { ...option, contexts: ["category-gift-cards", "page-gifts"] };
    if (name === "Clothing") {
      const kept = children.filter((child) => child.name !== "Jeans");
      return { ...option, children: [...kept, ...boots, dresses] };
    }
    return children.length === 0 ? option : { ...option, children: children.filter((child) => !boots.includes(child)) };
  });
}

/** Takes the pictures of some views. */
async function takePictures(page: Page, url: string, views: typeof VIEWS, colorScheme: string): Promise<void> {
  for (const [view, prepare] of Object.entries(views)) {
    await page.goto(`${url}/#/${view}`);
    await prepare(page);
    await page.evaluate("scrollTo(0, 0)");
    await page.mouse.move(0, 0);
    await page.screenshot({ path: `${FOLDER}/${view}-${colorScheme}.png` });
  }
}

for (const colorScheme of ["light", "dark"] as const) {
  const sandbox = spawn(process.execPath, ["dist/main.js", "sandbox", "--port", "0", "--seed", "sample"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [first] = await once(createInterface({ input: sandbox.stdout }), "line");
  const url = String(first).slice(String(first).indexOf("http"));
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-pictures-"));
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  try {
    await sendEvents(url);
    await mkdir(fileAt(FOLDER), { recursive: true });
    const page = await browser.newPage({ viewport: VIEWPORT, colorScheme });
    await takePictures(page, url, VIEWS, colorScheme);
    await withoutFaults(url);
    const planned = await plannedOver(url, folder);
    await page.goto(planned.link);
    await page.locator("[data-action=approve]").waitFor();
    await takePictures(page, new URL(planned.link).origin, DECIDING_VIEWS, colorScheme);
    await planned.close();
  } finally {
    await browser.close();
    sandbox.kill();
    await once(sandbox, "close");
    await rm(folder, { recursive: true, force: true });
  }
}
