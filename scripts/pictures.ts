// Takes the pictures of docs/page.md from the real page: the built command's sandbox with its sample data, in Chromium,
// light and dark. Needs Debian's Chromium, or the one that CHROMIUM names. Run it with: npm run pictures
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { createInterface } from "node:readline";
import { chromium, type Page } from "playwright-core";
import { fileAt } from "./packaging/generated.ts";

const FOLDER = "docs/page";
const VIEWPORT = { width: 1120, height: 640 };

/** What is done in each view before its picture is taken. */
const VIEWS: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  async events(page) {
    await page.getByText("rejected", { exact: true }).waitFor();
    await page
      .getByRole("row", { name: /product_view/ })
      .getByText("Raw body")
      .click();
    await page.locator("pre").waitFor();
  },
  async targetings(page) {
    await page.getByRole("button", { name: "Shop Categories" }).click();
    await page.getByRole("button", { name: "Clothing" }).click();
    await page.getByText("Jackets").waitFor();
  },
  async faults(page) {
    for (const kind of ["reset", "busy"]) {
      await page.getByLabel("Kind").selectOption(kind);
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await page.getByRole("cell", { name: kind, exact: true }).waitFor();
    }
    await page.getByText("2 faults.").waitFor();
  },
};

for (const colorScheme of ["light", "dark"] as const) {
  const sandbox = spawn(process.execPath, ["dist/main.js", "sandbox", "--port", "0", "--seed", "sample"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [first] = await once(createInterface({ input: sandbox.stdout }), "line");
  const url = String(first).slice(String(first).indexOf("http"));
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  try {
    await mkdir(fileAt(FOLDER), { recursive: true });
    const page = await browser.newPage({ viewport: VIEWPORT, colorScheme });
    for (const [view, prepare] of Object.entries(VIEWS)) {
      await page.goto(`${url}/#/${view}`);
      await prepare(page);
      await page.mouse.move(0, 0);
      await page.screenshot({ path: `${FOLDER}/${view}-${colorScheme}.png` });
    }
  } finally {
    await browser.close();
    sandbox.kill();
    await once(sandbox, "close");
  }
}
