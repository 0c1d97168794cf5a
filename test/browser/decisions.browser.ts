import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { textOf } from "../support/clients.ts";
import { browserOfTest, redeem } from "../support/page-person.ts";
import { startCommand } from "../support/server-process.ts";
import { findingsOfAxe, rowNames, SCHEMES, tabTo, withBrowser } from "./browser.ts";
import { SCRIPT, SHOWN_BIDI, startDeciding } from "./deciding.ts";

const { onPage } = withBrowser();
/** The browser itself notes each refusal of the server. */
const REFUSED = { mayLog: /Failed to load resource.*(409|ERR_)/ } as const;

/** More than a page of runs. */
const MORE_RUNS = 500;

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

test("a person approves, sees what became of it, takes a file home, and undoes it", async () => {
  const session = await startDeciding();
  const answer = session.ask(session.options.slice(3).map(({ _id }) => _id));
  await onPage(await session.browser.address(), async (page) => {
    await button(page, "Approve").click();
    await page.getByText("No run waits for a decision.").waitFor();
    expect((await answer).structuredContent).toMatchObject({
      status: "succeeded",
      approval: { decision: "approved", channel: "page" },
    });
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await page.getByRole("link", { name: "delete_options" }).click();
    await page.getByText("Approved on the page by ").waitFor();
    const downloading = page.waitForEvent("download");
    await page.getByRole("link", { name: "What was taken away" }).click();
    const removed = await readFile(await (await downloading).path(), "utf8");
    expect(removed.trim().split("\n")).toHaveLength(2);
    await button(page, "Undo").click();
    await page.getByText("The way back is being planned; it then waits for a decision.").waitFor();
    await page.getByRole("link", { name: "Approvals" }).click();
    await page.getByText(/Undoes run .*2 are restored with differences/).waitFor();
    await page.getByRole("link", { name: "Show the run" }).click();
    await page.getByRole("heading", { name: /^Plan/ }).waitFor();
    const tree = page.locator(".tree");
    expect(await tree.locator("summary").allTextContents()).toEqual(["Created 2"]);
    expect(await tree.innerText()).toContain("Running +2");
    await button(page, "Approve").click();
    await page.getByText("succeeded", { exact: true }).waitFor();
    const there = await session.client.callTool("list_options", { targetingId: session.targetingId });
    expect(there.structuredContent).toMatchObject({ total: 5 });
    await page.getByRole("link", { name: "All runs" }).click();
    await expect.poll(() => rowNames(page, "Runs")).toEqual(["apply_plan", "delete_options"]);
  });
});

test("declined: nothing is sent", async () => {
  const session = await startDeciding();
  const answer = session.ask();
  await onPage(await session.browser.address(), async (page) => {
    await button(page, "Decline").click();
    await page.getByText("No run waits for a decision.").waitFor();
    expect((await answer).structuredContent).toMatchObject({
      status: "cancelled",
      approval: { decision: "declined", channel: "page" },
    });
    expect(await session.writesSent()).toEqual([]);
  });
});

test("all of many deletions are shown by pages, and found by their names", async () => {
  const session = await startDeciding({ TARGETING_MCP_WAIT_MS: "1000" });
  const many = Array.from({ length: 230 }, (_, at) => ({
    _id: `01HZZZZZZZZZZZZZZZZZZZZ${String(at).padStart(3, "0")}`,
    targeting: session.targetingId,
    name: `Model ${String(at + 1).padStart(4, "0")}`,
    contexts: [],
  }));
  await session.control("/seed", { options: many });
  const asked = session.ask(many.map(({ _id }) => _id));
  await onPage(await session.browser.address(), async (page) => {
    await asked;
    await page.getByText("and 210 more").waitFor();
    expect(await page.getByText(/^Model \d+$/).count()).toBe(20);
    await button(page, "Show all").click();
    await page.getByText("1 to 100 of 230").waitFor();
    await button(page, "Next").click();
    await button(page, "Next").click();
    await page.getByText("201 to 230 of 230").waitFor();
    const names = page.getByText(/^Model \d+$/);
    await expect.poll(() => names.last().innerText()).toBe("Model 0230");
    await page.getByLabel("Search: Options deleted").fill("model 0217");
    await expect.poll(() => page.getByText(/^Model \d+$/).allInnerTexts()).toEqual(["Model 0217"]);
    await page.getByLabel("Search: Options deleted").fill("nothing like it");
    await page.getByText("Nothing has this in its name.").waitFor();
    expect(await findingsOfAxe(page)).toEqual([]);
  });
});

test("a page that is open is told that its link was tried again", async () => {
  const session = await startDeciding({ TARGETING_MCP_WAIT_MS: "1000" });
  const answer = session.ask();
  const link = await session.browser.address();
  await onPage(link, async (page) => {
    await button(page, "Approve").waitFor();
    expect((await redeem(link)).status).toBe(403);
    await page.locator("[aria-live=polite]").getByText("was tried a second time, and refused").waitFor();
    await answer;
  });
});

test("a run that waits is shown however many came after it, and older runs are a page further", async () => {
  const session = await startDeciding({ TARGETING_MCP_WAIT_MS: "1000" });
  const answer = session.ask();
  await onPage(await session.browser.address(), async (page) => {
    await button(page, "Approve").waitFor();
    await answer;
    for (let from = 0; from < MORE_RUNS; from += 50) {
      const calls = Array.from({ length: 50 }, (_, at) => ({ uid: `u-${from + at}`, eventName: "app_open" }));
      await Promise.all(calls.map((event) => session.client.callTool("track_event", event)));
    }
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await page.getByText("1 to 500 of 501 runs").waitFor();
    await page.getByRole("link", { name: "Approvals" }).click();
    await button(page, "Decline").click();
    await page.getByText("No run waits for a decision.").waitFor();
  });
});

test("what went stale is told, and cannot be approved", async () => {
  const session = await startDeciding({ TARGETING_MCP_WAIT_MS: "2000" });
  const answer = session.ask();
  await onPage(
    await session.browser.address(),
    async (page) => {
      await button(page, "Approve").waitFor();
      const { targetingId, options } = session;
      const [first] = options;
      await session.control("/seed", {
        options: [{ ...first, targeting: targetingId, contexts: ["other", "new", "third"] }],
      });
      await button(page, "Approve").click();
      await page.getByText("Changed since it was planned", { exact: true }).waitFor();
      await expect.poll(() => button(page, "Approve").isDisabled()).toBe(true);
      await answer;
      expect(await session.writesSent()).toEqual([]);
    },
    REFUSED,
  );
});

test("of two pages and two processes one decision counts, and all show it", async () => {
  const session = await startDeciding();
  const other = browserOfTest();
  startCommand(["page"], { ...session.environment, ...other.env });
  const answer = session.ask();
  await onPage(
    await session.browser.address(),
    async (here) => {
      await button(here, "Approve").waitFor();
      // The copy of a tab has its session.
      const copying = here.context().waitForEvent("page");
      await here.evaluate("void open('/')");
      const tab = await copying;
      await onPage(
        await other.address(),
        async (there) => {
          await button(there, "Approve").waitFor();
          await button(tab, "Approve").waitFor();
          const pages = [here, tab, there];
          // A page ignores decisions for a second after its card has come.
          for (const page of pages) await expect.poll(() => button(page, "Approve").isEnabled()).toBe(true);
          await Promise.all(pages.map((page) => button(page, "Approve").click()));
          for (const page of pages) await page.getByText("No run waits for a decision.").waitFor();
          const said = await Promise.all(pages.map((page) => page.locator("[aria-live=polite]").innerText()));
          expect(said.filter((text) => text.includes("Approved."))).toHaveLength(1);
          expect(said.filter((text) => text.includes("This was decided already."))).toHaveLength(2);
        },
        REFUSED,
      );
    },
    REFUSED,
  );
  expect((await answer).structuredContent).toMatchObject({ approval: { decision: "approved", channel: "page" } });
  expect(await session.writesSent()).toEqual(["deleteOptions"]);
});

test("a page says that its server has ended; another process with the key still decides", async () => {
  const session = await startDeciding({ TARGETING_MCP_WAIT_MS: "1500" });
  const answer = session.ask();
  await onPage(
    await session.browser.address(),
    async (page) => {
      await button(page, "Approve").waitFor();
      expect((await answer).structuredContent).toMatchObject({ status: "needs_confirmation" });
      await session.client.close();
      await page.getByText("The server of this page has ended. You can close the page.").waitFor();
    },
    REFUSED,
  );
  const other = browserOfTest();
  startCommand(["page"], { ...session.environment, ...other.env });
  await onPage(await other.address(), async (page) => {
    await button(page, "Approve").click();
    await page.getByText("No run waits for a decision.").waitFor();
  });
  await expect.poll(() => session.writesSent()).toEqual(["deleteOptions"]);
});

test.each(SCHEMES)("strange names are plain text, and axe-core finds nothing, %s", async (colorScheme) => {
  const session = await startDeciding({ TARGETING_MCP_WAIT_MS: "6000" });
  const { targetingId } = session;
  await session.ask();
  const desired = {
    version: 1,
    targeting: { _id: targetingId },
    options: [
      { _id: session.options[3]?._id, name: "Runners", contexts: ["a"] },
      { _id: session.options[1]?._id, contexts: [] },
      { _id: session.options[0]?._id, contexts: ["c"] },
      { name: "Group", children: [{ name: "New", contexts: ["n"] }] },
    ],
  };
  const planned = await session.client.callTool("plan_targeting", { desired });
  expect(planned.structuredContent, textOf(planned)).toMatchObject({ status: "planned" });
  const applied = await session.client.callTool("apply_plan", { runId: planned.structuredContent?.runId });
  expect(applied.structuredContent).toMatchObject({ status: "needs_confirmation" });
  await onPage(
    await session.browser.address(),
    async (page) => {
      await expect.poll(() => page.getByRole("article").count()).toBe(2);
      const said = await page.locator("main").innerText();
      for (const name of [SCRIPT, SHOWN_BIDI, "nnnnnnnnnn…"]) expect(said).toContain(name);
      expect(said.length).toBeLessThan(5000);
      expect(await findingsOfAxe(page)).toEqual([]);
      await page.getByRole("link", { name: "Show the run" }).first().click();
      await page.getByRole("heading", { name: /^Plan/ }).waitFor();
      const tree = await page.locator(".tree").innerText();
      for (const text of [SCRIPT, SHOWN_BIDI, "Created", "Renamed", "Changed Context IDs", "New"])
        expect(tree).toContain(text);
      expect(await findingsOfAxe(page)).toEqual([]);
      await page.getByRole("link", { name: "All runs" }).click();
      await page.getByRole("table", { name: "Runs" }).waitFor();
      expect(await findingsOfAxe(page)).toEqual([]);
      expect(await page.locator("main script, main img, main b").count()).toBe(0);
    },
    { colorScheme },
  );
});

test("everything about runs is done by keyboard, and the focus is seen", async () => {
  const session = await startDeciding();
  const answer = session.ask();
  await onPage(await session.browser.address(), async (page) => {
    await button(page, "Approve").waitFor();
    await tabTo(page, "Approve");
    await expect.poll(() => button(page, "Approve").isEnabled()).toBe(true);
    await page.keyboard.press("Enter");
    expect((await answer).structuredContent).toMatchObject({ status: "succeeded" });
    await page.reload();
    await page.getByText("No run waits for a decision.").waitFor();
    await tabTo(page, "Runs");
    await page.keyboard.press("Enter");
    await page.getByRole("table", { name: "Runs" }).waitFor();
    await tabTo(page, "delete_options");
    await page.keyboard.press("Enter");
    await button(page, "Undo").waitFor();
    await tabTo(page, "Undo");
    await page.keyboard.press("Enter");
    await page.getByText("1 waiting").waitFor();
    await page.reload();
    await tabTo(page, "Approvals");
    await page.keyboard.press("Enter");
    await tabTo(page, "Decline");
    await expect.poll(() => button(page, "Decline").isEnabled()).toBe(true);
    await page.keyboard.press("Enter");
    await page.getByText("No run waits for a decision.").waitFor();
  });
});
