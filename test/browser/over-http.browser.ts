import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { testPostgres } from "../cluster/postgres.ts";
import { startHttp } from "../support/http-server.ts";
import { clientOf, startApproved, TOKENS } from "../support/page-http.ts";
import { button, findingsOfAxe, typeName, withBrowser } from "./browser.ts";

const { onPage } = withBrowser();
/** The browser logs that the server shows nothing before the login. */
const NOT_IN_YET = { mayLog: /Failed to load resource.*401/ } as const;
/** An access entry that may call tools and may also approve. On the page, it sees the runs of its own calls. */
const BOTH = [{ name: "both", approves: true, tools: true }] as const;

const startedRun = z.looseObject({ runId: z.string(), status: z.string() });

const TRIES = 20;

/**
 * Makes a call and returns its run. On a busy machine, the store may answer too late for the short wait of these tests.
 * No run is stored then, and the call is repeated, as its answer advises.
 */
async function runOf(client: Awaited<ReturnType<typeof clientOf>>, tool: string, args: Record<string, unknown>) {
  let answer: unknown;
  for (let tries = 0; tries < TRIES; tries += 1) {
    answer = (await client.callTool(tool, args)).structuredContent;
    const { data } = startedRun.safeParse(answer);
    if (data !== undefined) return data;
  }
  throw new Error(`${tool} stores no run: ${JSON.stringify(answer).slice(0, 500)}`);
}

async function logIn(page: Page): Promise<void> {
  await page.getByLabel("Token", { exact: true }).fill(TOKENS.both);
  await page.getByRole("button", { name: "Log in", exact: true }).click();
}

test("after the login, the rejected rows of a file are downloaded as the table that they came from", async () => {
  const folder = await mkdtemp(join(tmpdir(), "page-files-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const server = await startApproved([{ ...BOTH[0], folders: [folder] }]);
  const targetingId = await server.sandbox.targeting("Spring");
  const file = join(folder, "options.csv");
  await writeFile(file, "name,contextId\nNews,1.23E+15\nGood,b\n속보_1,c\n");
  const client = await clientOf(server.url, "both");
  const { runId, status } = await runOf(client, "bulk_add_options", { targetingId, file });
  expect(status).toBe("partial");
  const address = `${server.origin}/page/runs/${runId}/rejects`;
  expect((await fetch(address)).status).toBe(401);
  await onPage(
    `${server.origin}/#/runs/${runId}`,
    async (page) => {
      await logIn(page);
      await page.getByRole("button", { name: /^Files/ }).click();
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: "Failed rows", exact: true }).click(),
      ]);
      expect(download.suggestedFilename()).toBe("options-failed.csv");
      const text = await readFile(await download.path(), "utf8");
      const rows = text.split("\r\n").map((line) => line.split(",").slice(0, 2).join(","));
      expect(rows).toEqual(["\uFEFFname,contextId", "News,1.23E+15", "속보_1,c", ""]);
      expect(text).toContain("scientific notation");
    },
    NOT_IN_YET,
  );
});

test("a run that nobody drives says so, and goes on by itself as soon as a server drives", async () => {
  const postgres = await testPostgres();
  onTestFinished(() => postgres.stop());
  const store = { TARGETING_MCP_STORE: await postgres.database(), TARGETING_MCP_WAIT_MS: "500" };
  const server = await startApproved(BOTH, { env: { ...store, TARGETING_MCP_DRIVE: "off" } });
  const targetingId = await server.sandbox.targeting("Spring");
  const client = await clientOf(server.url, "both");
  const items = [{ name: "Good", contexts: ["b"] }];
  const { runId } = await runOf(client, "bulk_add_options", { targetingId, items });
  await onPage(
    `${server.origin}/#/runs/${runId}`,
    async (page) => {
      await logIn(page);
      await page.getByText("No server or worker executes this run now.").waitFor();
      expect(await page.locator("main").innerText()).toMatch(/targeting-mcp worker[\s\S]*0 of 1/);
      expect(await findingsOfAxe(page)).toEqual([]);
      await startHttp({ ...server.environment, TARGETING_MCP_DRIVE: "on" });
      await page.locator("main .pill").getByText("Done", { exact: true }).first().waitFor();
      expect(await page.getByText("No server or worker executes this run now.").count()).toBe(0);
    },
    NOT_IN_YET,
  );
});

test("what waits is approved only where a living process would drive it", async () => {
  const postgres = await testPostgres();
  onTestFinished(() => postgres.stop());
  const store = { TARGETING_MCP_STORE: await postgres.database(), TARGETING_MCP_WAIT_MS: "500" };
  const server = await startApproved(BOTH, { env: { ...store, TARGETING_MCP_DRIVE: "off" } });
  const targetingId = await server.sandbox.targeting("Spring");
  const client = await clientOf(server.url, "both");
  await runOf(client, "delete_targeting", { ids: [targetingId] });
  await onPage(
    `${server.origin}/#/approvals`,
    async (page) => {
      await logIn(page);
      const approve = button(page, "approve");
      const ended = page.getByText("Nothing can execute this here: it is of another project");
      await ended.waitFor();
      expect([await ended.count(), await approve.isDisabled()]).toEqual([1, true]);
      const why = page.locator(`[id="${await approve.getAttribute("aria-describedby")}"]`);
      expect(await why.innerText()).toBe(await ended.innerText());
      expect(await findingsOfAxe(page)).toEqual([]);
      const driving = await startHttp({ ...server.environment, TARGETING_MCP_DRIVE: "on" });
      await ended.waitFor({ state: "detached" });
      await typeName(page);
      await expect.poll(() => approve.isEnabled()).toBe(true);
      driving.child.kill("SIGKILL");
      await ended.waitFor();
      await startHttp({ ...server.environment, TARGETING_MCP_DRIVE: "on" });
      await ended.waitFor({ state: "detached" });
      await typeName(page);
      await expect.poll(() => approve.isEnabled()).toBe(true);
      await approve.click();
      await approve.waitFor({ state: "detached" });
      await page.goto(`${server.origin}/#/runs`);
      await page.locator("main .pill").getByText("Done", { exact: true }).first().waitFor();
    },
    NOT_IN_YET,
  );
});
