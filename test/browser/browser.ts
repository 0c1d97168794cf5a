import axe from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";

/** The browser to use: CHROMIUM, or Debian's Chromium. */
const EXECUTABLE = process.env.CHROMIUM ?? "/usr/bin/chromium";

export const SCHEMES = ["light", "dark"] as const;

/** Starts Chromium for the tests of a file. Returns a function that opens pages. */
export function withBrowser() {
  let browser: Browser | undefined;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: EXECUTABLE, args: ["--no-sandbox"] });
  });
  afterAll(() => browser?.close());
  return {
    /**
     * Opens an address in a new browser profile. Afterwards, checks that the console has no messages except those that
     * `mayLog` allows.
     */
    async onPage(
      url: string,
      work: (page: Page) => Promise<void>,
      { colorScheme = "light", mayLog }: { readonly colorScheme?: "light" | "dark"; readonly mayLog?: RegExp } = {},
    ): Promise<void> {
      if (browser === undefined) throw new Error("the browser is not there yet");
      const context = await browser.newContext({ colorScheme, viewport: { width: 1280, height: 800 } });
      const said: string[] = [];
      try {
        const page = await context.newPage();
        page.on("console", (message) => said.push(`${message.type()}: ${message.text()}`));
        page.on("pageerror", (error) => said.push(`error: ${error.message}`));
        page.on("dialog", (dialog) => said.push(`dialog: ${dialog.message()}`));
        await page.goto(url);
        await work(page);
      } finally {
        await context.close();
      }
      expect(said.filter((line) => mayLog === undefined || !mayLog.test(line))).toEqual([]);
    },
  };
}

/** Returns the violations of WCAG 2.2 A and AA, and of best practices, that axe-core finds: `rule: place`. */
export async function findingsOfAxe(page: Pick<Page, "evaluate">): Promise<readonly string[]> {
  // Playwright can run scripts that the page's own policy would refuse.
  await page.evaluate(axe.source);
  const found: unknown = await page.evaluate(
    `axe.run().then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => id + ": " + target)))`,
  );
  return Array.isArray(found) ? found.map(String) : ["axe-core gave no list"];
}

/** Returns the row headers of a table, in the order in which they are shown. */
export async function rowNames(page: Page, caption: string): Promise<readonly string[]> {
  return page.getByRole("table", { name: caption }).getByRole("rowheader").allTextContents();
}

/** Presses Tab until the element with this name has the focus. Checks that the focus is visible. */
export async function tabTo(page: Page, name: string): Promise<void> {
  for (let steps = 0; steps < 40; steps += 1) {
    await page.keyboard.press("Tab");
    const focused = String(await page.evaluate(FOCUSED));
    if (focused.trim() !== name) continue;
    expect(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")).toBe("solid");
    return;
  }
  throw new Error(`no Tab leads to ${name}`);
}

/** Returns the button with this action for the run that is shown, whatever its label says. */
export function button(page: Pick<Page, "locator">, action: "approve" | "decline" | "undo" | "cancel" | "resume") {
  return page.locator(`[data-action=${action}]`);
}

/** Types the name that the page asks for before a large change. */
export async function typeName(page: Page): Promise<void> {
  await page.getByRole("textbox", { name: /^To approve, type/ }).fill(await page.locator(".foot strong").innerText());
}

/** Returns the ID of the waiting run that the page shows. */
export async function waitingRun(page: Page): Promise<string> {
  await button(page, "approve").waitFor();
  return (await page.locator(".queue a").first().getAttribute("href"))?.split("/").at(-1) ?? "";
}

/** Returns what has the focus: the text of a button or link, or the label of a field. */
const FOCUSED = "document.activeElement.innerText || document.activeElement.labels?.[0]?.innerText || ''";
