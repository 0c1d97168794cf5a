import { expect, test } from "vitest";
import { findingsOfAxe, SCHEMES, withBrowser } from "./browser.ts";
import { serveMadeRuns } from "./made-runs.ts";
import { ENDED, PARTIAL, RUNNING, STALE, WAITING } from "./runs.ts";
import { startSandboxProcess } from "./sandbox-process.ts";

const { onPage } = withBrowser();

test.each(SCHEMES)("axe-core finds nothing in the views of a sandbox, %s", async (colorScheme) => {
  const sandbox = await startSandboxProcess("--seed", "sample");
  await onPage(
    sandbox.url,
    async (page) => {
      await page.getByRole("table", { name: "Events" }).getByText("Rejected").waitFor();
      await page.getByText("Body as sent").click();
      await page.locator("details pre").waitFor();
      await page.getByText("Corrected event", { exact: true }).waitFor();
      expect(await findingsOfAxe(page)).toEqual([]);
      await page.getByRole("link", { name: "Targetings" }).click();
      await page.getByRole("button", { name: "Shop Categories" }).click();
      await page.getByRole("button", { name: "Shoes" }).click();
      await page.getByRole("button", { name: "Sneakers" }).click();
      await page.getByRole("heading", { name: "3 Context IDs" }).waitFor();
      expect(await findingsOfAxe(page)).toEqual([]);
      await page.getByLabel("Search").fill("sale");
      await page.getByRole("table", { name: "Found" }).waitFor();
      expect(await findingsOfAxe(page)).toEqual([]);
      await page.getByRole("link", { name: "Fault injection" }).click();
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await page.getByRole("button", { name: "Remove", exact: true }).waitFor();
      expect(await findingsOfAxe(page)).toEqual([]);
    },
    { colorScheme },
  );
});

test.each(SCHEMES)("axe-core finds nothing in the views of runs, %s", async (colorScheme) => {
  const made = await serveMadeRuns({ details: [WAITING, STALE, ENDED, RUNNING, PARTIAL] });
  await onPage(
    `${made.url}/#/approvals/01STALE`,
    async (page) => {
      await page.getByText("Changed since it was planned:").waitFor();
      expect(await findingsOfAxe(page)).toEqual([]);
      await page.getByRole("link", { name: "Runs", exact: true }).click();
      await page.getByRole("table", { name: "Runs" }).waitFor();
      expect(await findingsOfAxe(page)).toEqual([]);
      await page.getByRole("link", { name: /spring\.yaml/ }).click();
      await page.getByRole("button", { name: /^Changed by others/ }).click();
      await page.getByRole("table", { name: "Conflicts" }).waitFor();
      expect(await findingsOfAxe(page)).toEqual([]);
      made.end();
      await page.getByText("The server of this page is no longer running.").waitFor();
      expect(await findingsOfAxe(page)).toEqual([]);
    },
    { colorScheme, mayLog: /Failed to load resource/ },
  );
});

test.each(SCHEMES)("axe-core finds nothing in the login, %s", async (colorScheme) => {
  const made = await serveMadeRuns({
    details: [],
    login: { message: "Log in.", token: true, issuer: "/login/issuer" },
  });
  await onPage(
    made.url,
    async (page) => {
      await page.getByRole("button", { name: "Log in" }).waitFor();
      expect(await findingsOfAxe(page)).toEqual([]);
    },
    { colorScheme, mayLog: /Failed to load resource/ },
  );
});
