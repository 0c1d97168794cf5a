import type { Route } from "playwright-core";
import { expect, test } from "vitest";
import { withBrowser } from "./browser.ts";
import { startSandboxProcess } from "./sandbox-process.ts";

const { onPage } = withBrowser();

test("of 20,000 events the page holds at most 500 rows at any time, and leads to the others", async () => {
  const sandbox = await startSandboxProcess("--quiet");
  await onPage(sandbox.url, async (page) => {
    await page.getByRole("heading", { name: "Events", exact: true }).waitFor();
    let most = 0;
    for (let sent = 0; sent < 20_000; sent += 1000) {
      await sandbox.sendAll(
        Array.from({ length: 1000 }, (_, at) => ({
          uid: `u-${sent + at}`,
          eventName: at % 3 === 0 ? "purchase" : "click",
        })),
      );
      most = Math.max(most, await page.locator("tr").count());
      await page.getByText(`the latest 100 of ${(sent + 1000).toLocaleString("en-US")} events`).waitFor();
      most = Math.max(most, await page.locator("tr").count());
    }
    const rows = page.getByRole("table", { name: "Events" }).getByRole("row");
    expect(most).toBeLessThanOrEqual(500);
    expect(await rows.count()).toBe(1 + 100);
    for (const _ of [1, 2]) {
      const last = await rows.last().innerText();
      await page.getByRole("button", { name: "Next", exact: true }).click();
      await expect.poll(() => rows.last().innerText()).not.toBe(last);
      expect(await rows.count()).toBe(1 + 100);
    }
    // The second press comes before the first one is answered, and counts as well.
    const held: Route[] = [];
    let isHeld = true;
    await page.route("**/events?*", async (route) => {
      if (isHeld) held.push(route);
      else await route.continue();
    });
    await page.getByRole("button", { name: "Previous", exact: true }).click();
    await page.getByRole("button", { name: "Previous", exact: true }).click();
    await expect.poll(() => held.length).toBeGreaterThan(0);
    isHeld = false;
    for (const route of held) await route.continue();
    await expect.poll(() => page.getByRole("button", { name: "Pause", exact: true }).isEnabled()).toBe(true);
    // The filter matches u-1234, and u-12340 to u-12349.
    await page.getByLabel("Filter").fill("purchase");
    await page.getByText("6,680 of 20,000 events match.").first().waitFor();
    await page.getByText("the latest 100 of 6,680 matching events").waitFor();
    await page.getByLabel("Filter").fill("u-1234");
    await expect.poll(() => rows.count()).toBe(1 + 11);
  });
});
