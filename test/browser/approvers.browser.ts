import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { CLIENTS } from "../support/clients.ts";
import { startHttp } from "../support/http-server.ts";
import { clientOf, startApproved, TOKENS } from "../support/page-http.ts";
import { checkedReport } from "../support/writing.ts";
import { button, findingsOfAxe, SCHEMES, tabTo, typeName, waitingRun, withBrowser } from "./browser.ts";

const { onPage } = withBrowser();
const ACCESS = [{ name: "agent" }, { name: "boss", approves: true }] as const;
/** The browser logs requests that the server refuses or does not answer. */
const REFUSED = { mayLog: /Failed to load resource.*(401|409|ERR_)/ } as const;
const NOTHING_WAITS = "No run is waiting for a decision";

const loginButton = (page: Page) => page.getByRole("button", { name: "Log in", exact: true });
/** The part of the page where a person decides. */
const APPROVALS = "#/approvals";

/** Starts a server with an agent and an approver. Returns a targeting and the agent's call that deletes it. */
async function begun(env: Readonly<Record<string, string>> = {}) {
  const server = await startApproved([...ACCESS], { env: { TARGETING_MCP_WAIT_MS: "20000", ...env } });
  const targetingId = await server.sandbox.targeting("Sports fans");
  const agent = await clientOf(server.url, "agent");
  const isThere = async () => (await agent.callTool("get_targeting", { targetingId })).isError !== true;
  return { ...server, agent, isThere, ask: () => agent.callTool("delete_targeting", { ids: [targetingId] }) };
}

/** Logs in with a token. */
async function logIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token", { exact: true }).fill(token);
  await loginButton(page).click();
}

test("by keyboard alone a person logs in, and approves what another caller asked for", async () => {
  const server = await begun();
  const answer = server.ask();
  await onPage(`${server.origin}/${APPROVALS}`, async (page) => {
    expect(await page.locator("body").innerText()).not.toContain("Sports fans");
    await tabTo(page, "Token");
    await page.keyboard.type(TOKENS.boss);
    await page.keyboard.press("Enter");
    await page.getByText("Sports fans").first().waitFor();
    const said = await page.locator("main").innerText();
    for (const text of ["Delete the targeting Sports fans?", "Requested by agent", 'calls itself "']) {
      expect(said).toContain(text);
    }
    expect(await server.isThere()).toBe(true);
    await tabTo(page, "To approve, type Sports fans");
    await page.keyboard.type("Sports fans");
    await tabTo(page, "Delete the targeting");
    await expect.poll(() => button(page, "approve").getAttribute("aria-disabled")).toBe("false");
    await page.keyboard.press("Enter");
    await page.getByText(NOTHING_WAITS).waitFor();
    expect(checkedReport(await answer)).toMatchObject({
      status: "succeeded",
      approval: { decision: "approved", channel: "page" },
    });
    expect(await server.isThere()).toBe(false);
    await tabTo(page, "Runs");
    await page.keyboard.press("Enter");
    await tabTo(page, "Deleted the targeting Sports fans");
    await page.keyboard.press("Enter");
    await page.getByText("Approved on the page by ").waitFor();
  });
});

test("a token that approves nothing, and one that nobody has, are refused with the reason; nothing is shown", async () => {
  const server = await begun();
  const answer = server.ask();
  await onPage(
    `${server.origin}/${APPROVALS}`,
    async (page) => {
      await logIn(page, TOKENS.agent);
      await page.getByText("This token may not approve changes").waitFor();
      await logIn(page, "guessed-token-0123456789");
      await page.getByText("This token is unknown.").waitFor();
      await page.reload();
      await loginButton(page).waitFor();
      expect(await page.locator("body").innerText()).not.toContain("Sports fans");
      expect(await page.context().cookies()).toEqual([]);
      expect(await page.evaluate("sessionStorage.length")).toBe(0);
      await logIn(page, TOKENS.boss);
      await button(page, "decline").click();
      await page.getByText(NOTHING_WAITS).waitFor();
    },
    { mayLog: /Failed to load resource.*(401|403)/ },
  );
  expect(checkedReport(await answer)).toMatchObject({
    status: "cancelled",
    approval: { decision: "declined", channel: "page" },
  });
  expect(await server.isThere()).toBe(true);
});

test.each(SCHEMES)("axe-core finds nothing in the login and in the lists, %s", async (colorScheme) => {
  const server = await begun({ TARGETING_MCP_WAIT_MS: "1500" });
  await server.ask();
  await onPage(
    `${server.origin}/${APPROVALS}`,
    async (page) => {
      await loginButton(page).waitFor();
      expect(await findingsOfAxe(page)).toEqual([]);
      await logIn(page, TOKENS.boss);
      await button(page, "approve").waitFor();
      expect(await findingsOfAxe(page)).toEqual([]);
      await page.getByRole("link", { name: "Runs", exact: true }).click();
      await page.getByRole("table", { name: "Runs" }).waitFor();
      expect(await findingsOfAxe(page)).toEqual([]);
    },
    { colorScheme },
  );
});

test("two servers on one state folder show the same run; one decision counts, and both show it", async () => {
  const server = await begun();
  const other = await startHttp(server.environment);
  const answer = server.ask();
  await onPage(
    `${server.origin}/${APPROVALS}`,
    async (here) => {
      await logIn(here, TOKENS.boss);
      await onPage(
        new URL(`/${APPROVALS}`, other.url).href,
        async (there) => {
          await logIn(there, TOKENS.boss);
          const pages = [here, there];
          for (const page of pages) await button(page, "approve").waitFor();
          const shown = await Promise.all(pages.map(waitingRun));
          expect(shown[1]).toBe(shown[0]);
          await typeName(there);
          await button(there, "approve").click();
          for (const page of pages) await page.getByText(NOTHING_WAITS).waitFor();
          for (const page of pages) {
            await page.getByRole("link", { name: "Runs", exact: true }).click();
            await page.getByRole("row").getByText("Done", { exact: true }).waitFor();
          }
        },
        REFUSED,
      );
    },
    REFUSED,
  );
  expect(checkedReport(await answer)).toMatchObject({
    status: "succeeded",
    approval: { decision: "approved", channel: "page" },
  });
});

test("a server that starts again knows the session: the page comes back by itself, and decides", async () => {
  const server = await begun({ TARGETING_MCP_WAIT_MS: "1500" });
  const { runId } = checkedReport(await server.ask());
  const { port } = new URL(server.url);
  await onPage(
    `${server.origin}/${APPROVALS}`,
    async (page) => {
      await logIn(page, TOKENS.boss);
      await button(page, "approve").waitFor();
      const session = "JSON.stringify(sessionStorage)";
      const before = await page.evaluate(session);
      server.child.kill("SIGKILL");
      await server.exited;
      await page.getByText("The connection to the server is lost. This page reconnects by itself.").waitFor();
      await startHttp(server.environment, ["--port", port]);
      await page.getByText("The connection to the server is lost.").waitFor({ state: "detached" });
      expect(await page.evaluate(session)).toBe(before);
      await typeName(page);
      await button(page, "approve").click();
      await page.getByText(NOTHING_WAITS).waitFor();
      await page.goto(`${server.origin}/#/runs/${runId}`);
      await page.locator("main .pill").getByText("Done", { exact: true }).first().waitFor();
    },
    REFUSED,
  );
  expect(await server.isThere()).toBe(false);
});

test("a person takes the rejected rows of their agent's file home, and nothing else of it", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-rejects-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "brands.csv"), "name,contextId\nShoes,c1\nA!,c2\nBags,c3\nB?,c4\n");
  const server = await startApproved([{ name: "both", approves: true, tools: true, folders: [folder] }]);
  const targetingId = await server.sandbox.targeting("Brands");
  const agent = await clientOf(server.url, "both");
  const imported = await agent.callTool("bulk_add_options", { targetingId, file: join(folder, "brands.csv") });
  expect(imported.structuredContent).toMatchObject({ status: "partial", counts: { succeeded: 2, failed: 2 } });
  await onPage(`${server.origin}/${APPROVALS}`, async (page) => {
    await logIn(page, TOKENS.both);
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await page.getByRole("link", { name: /^Imported brands\.csv.*: 2 of 4 rows/ }).click();
    await page.getByRole("button", { name: "Files 3" }).click();
    const downloading = page.waitForEvent("download");
    await page.getByRole("button", { name: "Failed rows", exact: true }).click();
    const [head, ...rows] = (await readFile(await (await downloading).path(), "utf8")).trim().split("\r\n");
    expect(head).toBe("name,contextId,reason");
    expect(rows.map((row) => row.split(",", 2).join(","))).toEqual(["A!,c2", "B?,c4"]);
    for (const row of rows) expect(row).toContain("not allowed");
  });
});

test("a run of keys that only the server had that ended says so, and cannot be approved", async () => {
  const env = { TARGETING_API_KEY: "", EVENT_APP_KEY: "", TARGETING_MCP_OWN_KEYS: "on", TARGETING_MCP_WAIT_MS: "1500" };
  const server = await startApproved([{ name: "chief", approves: true, project: "*" }], { env });
  const targetingId = await server.sandbox.targeting("Sports fans");
  const headers = { "x-targeting-api-key": "sandbox-key" };
  const agent = await CLIENTS["2026 client, modern"]({ url: server.url, headers });
  await agent.callTool("delete_targeting", { ids: [targetingId] });
  const { port } = new URL(server.url);
  await onPage(
    `${server.origin}/${APPROVALS}`,
    async (page) => {
      await logIn(page, TOKENS.chief);
      await button(page, "approve").waitFor();
      await typeName(page);
      await expect.poll(() => button(page, "approve").isEnabled()).toBe(true);
      server.child.kill("SIGKILL");
      await server.exited;
      await startHttp(server.environment, ["--port", port]);
      await page.getByText("Nothing can execute this here: it is of another project").first().waitFor();
      expect(await button(page, "approve").isDisabled()).toBe(true);
      expect(await findingsOfAxe(page)).toEqual([]);
    },
    REFUSED,
  );
});
