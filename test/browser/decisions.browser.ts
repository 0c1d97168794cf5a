import { readFile } from "node:fs/promises";
import type { Route } from "playwright-core";
import { expect, test } from "vitest";
import { textOf } from "../support/clients.ts";
import { browserOfTest, redeem } from "../support/page-person.ts";
import { startCommand } from "../support/server-process.ts";
import { button, findingsOfAxe, rowNames, SCHEMES, tabTo, typeName, withBrowser } from "./browser.ts";
import { MARKUP, SCRIPT, SHOWN_BIDI, startDeciding } from "./deciding.ts";

const { onPage } = withBrowser();
/** The browser logs each request that the server refuses. */
const REFUSED = { mayLog: /Failed to load resource.*(409|ERR_)/ } as const;

/** More runs than the page shows at once. */
const MORE_RUNS = 500;

/** The part of the page that shows waiting runs. Links that are not for one run lead to the overview instead. */
const APPROVALS = "#/approvals";

test("a person approves, sees what became of it, takes a file home, and undoes it", async () => {
  const session = await startDeciding();
  const answer = session.ask(session.options.slice(3).map(({ _id }) => _id));
  await onPage(await session.browser.address(), async (page) => {
    await button(page, "approve").click();
    await page.getByText("No run is waiting for a decision").waitFor();
    expect((await answer).structuredContent).toMatchObject({
      status: "succeeded",
      approval: { decision: "approved", channel: "page" },
    });
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await page.getByRole("link", { name: "Deleted 2 options" }).click();
    await page.getByText("Approved on the page by ").waitFor();
    await page.getByText("Checked again: nothing had changed").waitFor();
    await page.getByText("Running", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Files 2" }).click();
    const downloading = page.waitForEvent("download");
    await page.getByRole("button", { name: "What was removed" }).click();
    const removed = await readFile(await (await downloading).path(), "utf8");
    expect(removed.trim().split("\n")).toHaveLength(2);
    await button(page, "undo").click();
    await page.getByText("The undo is planned and is waiting for your approval.").waitFor();
    await page.getByText(/Undoes an earlier run in .*: 2 will be undone with new IDs/).waitFor();
    const table = page.getByRole("table", { name: "What changes" });
    expect((await table.innerText()).replaceAll(/\s+/g, " ")).toContain("new Running c-3,");
    await page
      .getByRole("heading", { level: 1, name: /^Undo "Deleted 2 options from .*": restore 2 options\?$/ })
      .waitFor();
    await page.getByText("2 restored options get new IDs: ").waitFor();
    expect(await page.locator("summary").getByText("Will be undone with new IDs").count()).toBe(0);
    await page.getByText(/^Requested by you \(.+\) on the page$/).waitFor();
    expect(await button(page, "approve").innerText()).toBe("Undo: restore 2 options");
    await button(page, "approve").click();
    await page.locator(".decided").getByText("Done", { exact: true }).waitFor();
    const there = await session.client.callTool("list_options", { targetingId: session.targetingId });
    expect(there.structuredContent).toMatchObject({ total: 5 });
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    const [undid = "", deleted = ""] = await rowNames(page, "Runs");
    expect(undid).toMatch(/^Undid "Deleted 2 options from .*": 2 options restored/);
    expect(deleted).toContain("Deleted 2 options");
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
  await onPage(
    await session.browser.address(),
    async (page) => {
      await asked;
      const next = page.getByRole("button", { name: "Next" });
      await page.getByText("Show 223 more").click();
      await page.getByText("1 to 100 of 230").waitFor();
      await next.click();
      await page.getByText("101 to 200 of 230").waitFor();
      await next.click();
      await page.getByText("201 to 230 of 230").waitFor();
      const names = page.getByText(/^Model \d+$/);
      await expect.poll(() => names.last().innerText()).toBe("Model 0230");
      const downloading = page.waitForEvent("download");
      await page.getByRole("button", { name: "Download list" }).click();
      const list = await downloading;
      expect(list.suggestedFilename()).toMatch(/^Delete 230 options from .*\.csv$/);
      expect((await readFile(await list.path(), "utf8")).trim().split("\r\n")).toHaveLength(231);
      await page.getByLabel("Search names and Context IDs").fill("model 0217");
      await expect.poll(() => page.getByText(/^Model \d+$/).allInnerTexts()).toEqual(["Model 0217"]);
      await page.getByLabel("Search names and Context IDs").fill("nothing like it");
      await page.getByText("No name or Context ID matches.").waitFor();
      expect(await findingsOfAxe(page)).toEqual([]);
      const sent = await page.evaluate(POST_WITHOUT_NAME);
      expect(sent).toBe(409);
      await typeName(page);
      await button(page, "approve").click();
      await page.getByText("Approved: Delete 230 options").waitFor();
    },
    REFUSED,
  );
});

/** Approves like the page, but without the name that the person has to type. Returns the status of the answer. */
const POST_WITHOUT_NAME = `(async () => {
  const headers = { "Content-Type": "application/json", "X-Page-Token": sessionStorage.getItem("session") };
  const runId = document.querySelector(".queue a").getAttribute("href").split("/").at(-1);
  const shown = await (await fetch("/page/runs/" + runId, { headers })).json();
  const body = JSON.stringify({ digest: shown.run.waiting.digest, typed: "229" });
  return (await fetch("/page/runs/" + runId + "/approve", { method: "POST", headers, body })).status;
})()`;

test("a page that is open is told that its link was tried again", async () => {
  const session = await startDeciding({ TARGETING_MCP_WAIT_MS: "1000" });
  const answer = session.ask();
  const link = await session.browser.address();
  await onPage(link, async (page) => {
    await button(page, "approve").waitFor();
    expect((await redeem(link)).status).toBe(403);
    await page
      .locator("[aria-live=polite]")
      .getByText("A second attempt to open this page's link was refused")
      .waitFor();
    await answer;
  });
});

test("a run that waits is shown however many came after it, and older runs are a page further", async () => {
  const session = await startDeciding({ TARGETING_MCP_WAIT_MS: "1000" });
  const answer = session.ask();
  await onPage(await session.browser.address(), async (page) => {
    await button(page, "approve").waitFor();
    await answer;
    for (let from = 0; from < MORE_RUNS; from += 50) {
      const calls = Array.from({ length: 50 }, (_, at) => ({ uid: `u-${from + at}`, eventName: "app_open" }));
      await Promise.all(calls.map((event) => session.client.callTool("track_event", event)));
    }
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await page.getByText("1 to 500 of 501 runs").waitFor();
    await page.getByRole("link", { name: "Approvals" }).click();
    await button(page, "decline").click();
    await page.getByText("No run is waiting for a decision").waitFor();
  });
});

test("what went stale is told, and cannot be approved", async () => {
  const session = await startDeciding({ TARGETING_MCP_WAIT_MS: "2000" });
  const answer = session.ask();
  await onPage(
    await session.browser.address(),
    async (page) => {
      await button(page, "approve").waitFor();
      const { targetingId, options } = session;
      const [first] = options;
      await session.control("/seed", {
        options: [{ ...first, targeting: targetingId, contexts: ["other", "new", "third"] }],
      });
      await button(page, "approve").click();
      await page.locator(".blocked").getByText("Changed since it was planned: ask the agent").waitFor();
      await expect.poll(() => button(page, "approve").isDisabled()).toBe(true);
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
      await button(here, "approve").waitFor();
      // A copied tab has the same session.
      const copying = here.context().waitForEvent("page");
      await here.evaluate("void open('/')");
      const tab = await copying;
      await tab.evaluate(`void (location.hash = "${APPROVALS}")`);
      await onPage(
        (await other.address()) + APPROVALS,
        async (there) => {
          await button(there, "approve").waitFor();
          await button(tab, "approve").waitFor();
          const pages = [here, tab, there];
          // The page ignores decisions in the first second after it has shown a run.
          for (const page of pages) await expect.poll(() => button(page, "approve").isEnabled()).toBe(true);
          for (const page of pages) await button(page, "approve").click({ trial: true });
          // The first decision removes the buttons on the other pages. So all requests are held back until all were
          // clicked.
          const requests: Route[] = [];
          for (const page of pages) {
            await page.route("**/approve", (route) => void requests.push(route));
            await button(page, "approve").click();
          }
          await expect.poll(() => requests.length).toBe(pages.length);
          await Promise.all(requests.map((route) => route.continue()));
          for (const page of pages) await page.getByText("No run is waiting for a decision").waitFor();
          // A page may hear of the decision before the response to its own click has arrived.
          const said = async () => Promise.all(pages.map((page) => page.locator("[aria-live=polite]").innerText()));
          const pagesThatSaid = async (text: string) => (await said()).filter((one) => one.includes(text)).length;
          await expect.poll(() => pagesThatSaid("Approved:")).toBe(1);
          await expect.poll(() => pagesThatSaid("This change does not wait any more")).toBe(2);
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
      await button(page, "approve").waitFor();
      expect((await answer).structuredContent).toMatchObject({ status: "needs_confirmation" });
      await session.client.close();
      await page.getByText("The server of this page is no longer running.").waitFor();
    },
    REFUSED,
  );
  const other = browserOfTest();
  startCommand(["page"], { ...session.environment, ...other.env });
  await onPage((await other.address()) + APPROVALS, async (page) => {
    await button(page, "approve").click();
    await page.getByText("No run is waiting for a decision").waitFor();
  });
  await expect.poll(() => session.writesSent()).toEqual(["deleteOptions"]);
});

test("a read-only page shows what waits, and says why nothing is decided there and how to change that", async () => {
  const session = await startDeciding({ TARGETING_MCP_WAIT_MS: "1000" });
  await session.ask();
  const reading = browserOfTest();
  startCommand(["page", "--read-only"], { ...session.environment, ...reading.env });
  await onPage((await reading.address()) + APPROVALS, async (page) => {
    await page.getByText(/^Deletes \d+ % of/).waitFor();
    await page.getByText("To change that, start it without TARGETING_MCP_READ_ONLY (--read-only).").waitFor();
    expect(await page.locator("[data-action]").count()).toBe(0);
    await page.keyboard.press("a");
    expect(await page.getByRole("dialog").count()).toBe(0);
    expect(await findingsOfAxe(page)).toEqual([]);
  });
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
      const items = page.locator(".queue a");
      await expect.poll(() => items.count()).toBe(2);
      const table = page.getByRole("table", { name: "What changes" });
      await table.getByText("Runners").waitFor();
      const plan = await table.innerText();
      for (const text of [SCRIPT, SHOWN_BIDI, "Group", "New", "Runners"]) expect(plan).toContain(text);
      expect(await findingsOfAxe(page)).toEqual([]);
      await items.nth(1).click();
      await table.getByText("nnnnnnnnnn…").waitFor();
      const said = await page.locator("main").innerText();
      for (const name of [SCRIPT, SHOWN_BIDI, "nnnnnnnnnn…"]) expect(said).toContain(name);
      expect(said.length).toBeLessThan(5000);
      expect(await findingsOfAxe(page)).toEqual([]);
      await page.getByRole("link", { name: "Runs", exact: true }).click();
      await page.getByRole("table", { name: "Runs" }).waitFor();
      expect(await findingsOfAxe(page)).toEqual([]);
      expect(await page.locator("main script, main img, main b").count()).toBe(0);
    },
    { colorScheme },
  );
});

test("everything about runs is done by keyboard, and the focus is seen", async () => {
  const session = await startDeciding();
  // An undo can only restore names that the service accepts.
  const answer = session.ask(session.options.slice(3).map(({ _id }) => _id));
  await onPage(await session.browser.address(), async (page) => {
    await button(page, "approve").waitFor();
    await tabTo(page, "Delete 2 options");
    await expect.poll(() => button(page, "approve").getAttribute("aria-disabled")).toBe("false");
    await page.keyboard.press("Enter");
    expect((await answer).structuredContent).toMatchObject({ status: "succeeded" });
    await page.reload();
    await page.getByText("No run is waiting for a decision").waitFor();
    await tabTo(page, "Runs");
    await page.keyboard.press("Enter");
    await page.getByRole("table", { name: "Runs" }).waitFor();
    await tabTo(page, `Deleted 2 options from ${MARKUP}`);
    await page.keyboard.press("Enter");
    await button(page, "undo").waitFor();
    await tabTo(page, "Undo…");
    await expect.poll(() => button(page, "undo").getAttribute("aria-disabled")).toBe("false");
    await page.keyboard.press("Enter");
    await page.locator(".queue").getByText("1 waiting").waitFor();
    await tabTo(page, "Decline");
    await expect.poll(() => button(page, "decline").getAttribute("aria-disabled")).toBe("false");
    await page.keyboard.press("Enter");
    await page.getByText("No run is waiting for a decision").waitFor();
  });
});
