import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { withBrowser } from "./browser.ts";
import { serveMadeRuns } from "./made-runs.ts";
import { PARTIAL, RUNNING, WAITING } from "./runs.ts";

const { onPage } = withBrowser();

/** A title that takes several lines. */
const LONG = "Added 1,000 options to Spring. ".repeat(20);

/** Clicks the first line of a link. `during` is called while the mouse button is down. */
async function press(page: Page, link: Locator, during: () => Promise<void>): Promise<void> {
  const { x = 0, y = 0, width = 0, height = 0 } = (await link.boundingBox()) ?? {};
  await page.mouse.move(x + Math.min(20, width / 2), y + Math.min(10, height / 2));
  await page.mouse.down();
  await during();
  await page.mouse.up();
}

test.each([
  ["runs", "link", /^Applied spring\.yaml/, "**/#/runs/01PARTIAL"],
  ["overview", "link", /^Show$/, "**/#/runs/01PARTIAL"],
  ["approvals", "link", /^Delete 25 options from Spring/, "**/#/approvals/01OTHER"],
] as const)(
  "a run of the %s that is pressed opens, whatever moves it during the press",
  async (view, role, name, url) => {
    const other = { ...WAITING.run, runId: "01OTHER", startedAt: WAITING.run.startedAt - 1000 };
    const partial = { ...PARTIAL.run, updatedAt: Date.now() };
    const made = await serveMadeRuns({
      details: [WAITING, { ...PARTIAL, run: partial }, RUNNING, { ...WAITING, run: other }],
    });
    await onPage(`${made.url}/#/${view}`, async (page) => {
      const link = page.getByRole("main").getByRole(role, { name }).last();
      await link.waitFor();
      await page.mouse.move(5, 5);
      await press(page, link, async () => {
        for (let at = 1; at <= 20; at += 1) {
          made.put({ ...RUNNING.run, updatedAt: at, counts: { ...RUNNING.run.counts, succeeded: 400 + at } });
        }
        made.put({ ...RUNNING.run, title: LONG, status: "succeeded", actions: [], updatedAt: 30 });
        made.put({ ...WAITING.run, title: LONG });
        await page.getByRole("main").getByText(LONG.slice(0, 40)).first().waitFor();
        await expect.poll(async () => (await link.boundingBox())?.y).toBeGreaterThan(0);
      });
      await page.waitForURL(url, { timeout: 5000 });
    });
  },
);

test("a press aims at what was seen there: for a moment at the rows before they moved, and then at those that are there", async () => {
  const made = await serveMadeRuns({ details: [PARTIAL, RUNNING] });
  await onPage(`${made.url}/#/runs`, async (page) => {
    await page.clock.install();
    await page.reload();
    const links = page.getByRole("table", { name: "Runs" }).getByRole("link");
    const order = async () =>
      Promise.all((await links.all()).map(async (link) => (await link.getAttribute("href"))?.slice(9)));
    await expect.poll(order).toEqual(["RUNNING", "PARTIAL"]);
    const { x = 0, y = 0, height = 0 } = (await links.first().boundingBox()) ?? {};
    const spot = [x + 20, y + height / 2] as const;
    await page.mouse.move(...spot);
    made.put({ ...PARTIAL.run, runId: "01LATER", startedAt: RUNNING.run.startedAt + 1000 });
    await page.getByText("1 new run").waitFor();
    expect(await order()).toEqual(["RUNNING", "PARTIAL"]);
    await page.clock.pauseAt(Number(await page.evaluate("Date.now()")) + 1000);
    await page.mouse.move(5, 5);
    await expect.poll(order).toEqual(["LATER", "RUNNING", "PARTIAL"]);
    await page.mouse.click(...spot);
    await page.waitForURL("**/#/runs/01RUNNING");
    await page.goBack();
    await expect.poll(order).toEqual(["LATER", "RUNNING", "PARTIAL"]);
    await page.mouse.move(5, 5);
    await page.clock.runFor(101);
    await page.mouse.click(...spot);
    await page.waitForURL("**/#/runs/01LATER");
  });
});

test("a press that is dragged away opens nothing", async () => {
  const made = await serveMadeRuns({ details: [PARTIAL] });
  await onPage(`${made.url}/#/runs`, async (page) => {
    const link = page.getByRole("link", { name: /^Applied/ });
    await link.waitFor();
    await page.evaluate("for (const one of document.links) one.draggable = false;");
    await press(page, link, () => page.mouse.move(600, 600));
    await page.mouse.click(600, 600);
    expect(page.url()).toBe(`${made.url}/#/runs`);
  });
});
