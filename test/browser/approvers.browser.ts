import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { startHttp } from "../support/http-server.ts";
import { clientOf, startApproved, TOKENS } from "../support/page-http.ts";
import { checkedReport } from "../support/writing.ts";
import { findingsOfAxe, SCHEMES, tabTo, withBrowser } from "./browser.ts";

const { onPage } = withBrowser();
const ACCESS = [{ name: "agent" }, { name: "boss", approves: true }] as const;
/** The browser itself notes what the server refuses, and that it is away. */
const REFUSED = { mayLog: /Failed to load resource.*(401|409|ERR_)/ } as const;
const NOTHING_WAITS = "No run waits for a decision.";

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

/** A server with an agent and an approver, a targeting, and the agent's call that deletes it. */
async function begun(env: Readonly<Record<string, string>> = {}) {
  const server = await startApproved([...ACCESS], { env: { TARGETING_MCP_WAIT_MS: "20000", ...env } });
  const targetingId = await server.sandbox.targeting("Sports fans");
  const agent = await clientOf(server.url, "agent");
  const isThere = async () => (await agent.callTool("get_targeting", { targetingId })).isError !== true;
  return { ...server, agent, isThere, ask: () => agent.callTool("delete_targeting", { ids: [targetingId] }) };
}

/** Writes the token into the field of the login. */
async function logIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token", { exact: true }).fill(token);
  await button(page, "Log in").click();
}

test("by keyboard alone a person logs in, and approves what another caller asked for", async () => {
  const server = await begun();
  const answer = server.ask();
  await onPage(`${server.origin}/`, async (page) => {
    expect(await page.locator("body").innerText()).not.toContain("Sports fans");
    await tabTo(page, "Token");
    await page.keyboard.type(TOKENS.boss);
    await page.keyboard.press("Enter");
    await page.getByText("Sports fans").first().waitFor();
    const said = await page.locator("main").innerText();
    for (const text of ["delete_targeting", "Asked by token:agent", "Targetings deleted"]) expect(said).toContain(text);
    expect(await server.isThere()).toBe(true);
    await tabTo(page, "Approve");
    await page.keyboard.press("Enter");
    await page.getByText(NOTHING_WAITS).waitFor();
    expect(checkedReport(await answer)).toMatchObject({ status: "succeeded", asked: "agreed_on_page" });
    expect(await server.isThere()).toBe(false);
    await tabTo(page, "Runs");
    await page.keyboard.press("Enter");
    await tabTo(page, "delete_targeting");
    await page.keyboard.press("Enter");
    await page.getByText("A person agreed to this on the page.").waitFor();
  });
});

test("a token that approves nothing, and one that nobody has, are refused with the reason; nothing is shown", async () => {
  const server = await begun();
  const answer = server.ask();
  await onPage(
    `${server.origin}/`,
    async (page) => {
      await logIn(page, TOKENS.agent);
      await page.getByText("This token approves nothing").waitFor();
      await logIn(page, "guessed-token-0123456789");
      await page.getByText("This token is not known.").waitFor();
      await page.reload();
      await button(page, "Log in").waitFor();
      expect(await page.locator("body").innerText()).not.toContain("Sports fans");
      expect(await page.context().cookies()).toEqual([]);
      await logIn(page, TOKENS.boss);
      await button(page, "Decline").click();
      await page.getByText(NOTHING_WAITS).waitFor();
    },
    { mayLog: /Failed to load resource.*(401|403)/ },
  );
  expect(checkedReport(await answer)).toMatchObject({ status: "cancelled", asked: "declined_on_page" });
  expect(await server.isThere()).toBe(true);
});

test.each(SCHEMES)("axe-core finds nothing in the login and in the lists, %s", async (colorScheme) => {
  const server = await begun({ TARGETING_MCP_WAIT_MS: "1500" });
  await server.ask();
  await onPage(
    `${server.origin}/`,
    async (page) => {
      await button(page, "Log in").waitFor();
      expect(await findingsOfAxe(page)).toEqual([]);
      await logIn(page, TOKENS.boss);
      await button(page, "Approve").waitFor();
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
    `${server.origin}/`,
    async (here) => {
      await logIn(here, TOKENS.boss);
      await onPage(
        new URL("/", other.url).href,
        async (there) => {
          await logIn(there, TOKENS.boss);
          const pages = [here, there];
          for (const page of pages) await button(page, "Approve").waitFor();
          const shown = await Promise.all(
            pages.map((page) => page.getByRole("link", { name: "Show the run" }).getAttribute("href")),
          );
          expect(shown[1]).toBe(shown[0]);
          await button(there, "Approve").click();
          for (const page of pages) await page.getByText(NOTHING_WAITS).waitFor();
          for (const page of pages) {
            await page.getByRole("link", { name: "Runs", exact: true }).click();
            await page.getByRole("row").getByText("succeeded", { exact: true }).waitFor();
          }
        },
        REFUSED,
      );
    },
    REFUSED,
  );
  expect(checkedReport(await answer)).toMatchObject({ status: "succeeded", asked: "agreed_on_page" });
});

test("a server that starts again knows the session: the page comes back by itself, and decides", async () => {
  const server = await begun({ TARGETING_MCP_WAIT_MS: "1500" });
  const { runId } = checkedReport(await server.ask());
  const { port } = new URL(server.url);
  await onPage(
    `${server.origin}/`,
    async (page) => {
      await logIn(page, TOKENS.boss);
      await button(page, "Approve").waitFor();
      const [before] = await page.context().cookies();
      server.child.kill("SIGKILL");
      await server.exited;
      await page.getByText("The connection is lost. This page comes back by itself.").waitFor();
      await startHttp(server.environment, ["--port", port]);
      await page.getByText("The connection is lost.").waitFor({ state: "detached" });
      expect(await page.context().cookies()).toEqual([before]);
      await button(page, "Approve").click();
      await page.getByText(NOTHING_WAITS).waitFor();
      await page.goto(`${server.origin}/#/runs/${runId}`);
      await page.getByText("succeeded", { exact: true }).waitFor();
    },
    REFUSED,
  );
  expect(await server.isThere()).toBe(false);
});
