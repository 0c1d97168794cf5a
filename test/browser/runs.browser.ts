import type { Locator } from "playwright-core";
import { expect, test } from "vitest";
import { rowNames, withBrowser } from "./browser.ts";
import { serveMadeRuns } from "./made-runs.ts";
import { ENDED, MARKUP, PARTIAL, RUNNING, STALE, WAITING } from "./runs.ts";

const { onPage } = withBrowser();

/** On how many lines a text of the view stands. */
const linesOf = (text: string) => `{
  const holders = [...document.querySelectorAll("main *")].filter(({ textContent }) => textContent === ${JSON.stringify(text)});
  const range = document.createRange();
  range.selectNodeContents(holders.at(-1));
  new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
}`;

/** The run that waits, once it was approved. */
const { waiting: _, ...ROW } = WAITING.run;
const RUNNING_NOW = { ...ROW, status: "running", actions: ["cancel"] } as const;

const ALL = [WAITING, STALE, ENDED, RUNNING, PARTIAL];

/** A decision names the effect that the page showed. */
const SEEN = '{"digest":"d"}';

test("a run that waits is shown with its exact effect, and is approved or declined", async () => {
  const made = await serveMadeRuns({ details: ALL });
  await onPage(made.url, async (page) => {
    const first = page.getByRole("article", { name: "delete_options Spring" }).first();
    await first.waitFor();
    const said = await first.innerText();
    for (const words of [
      "token:ci",
      "Deletes 3 options of Spring",
      "Options deleted 25",
      "12 Context IDs",
      "and 21 more",
    ]) {
      expect(said).toContain(words);
    }
    expect(said).toContain(MARKUP);
    expect(said).toContain("safe\\u{202E}gnp.exe");
    await first.getByRole("button", { name: "Approve", exact: true }).click();
    await page.getByText("Approved.").waitFor();
    await first.getByRole("button", { name: "Decline", exact: true }).click();
    await page.getByText("Declined.").waitFor();
    expect(made.asked).toEqual([`/page/runs/01WAITING/approve ${SEEN}`, `/page/runs/01WAITING/decline ${SEEN}`]);
    made.put(RUNNING_NOW);
    await page.locator("[aria-live=polite]").getByText("2 runs wait for a decision").waitFor();
    expect(await page.locator("main script, main img").count()).toBe(0);
  });
});

test("the page of a run that waits names more of what goes than the list of approvals does", async () => {
  const names = Array.from({ length: 30 }, (_, at) => ({ name: `Option ${at}` }));
  const parts = [{ title: "Options deleted", count: 130, objects: names }];
  const waiting = { digest: "d", effect: "Deletes 130 options", parts, lost: [], undoable: [], expiresAt: 0 };
  const made = await serveMadeRuns({ details: [{ ...WAITING, run: { ...WAITING.run, waiting } }] });
  await onPage(made.url, async (page) => {
    await page.getByText("and 110 more").waitFor();
    await page.getByRole("link", { name: "Show the run" }).click();
    await page.getByText("and 100 more").waitFor();
    expect(await page.getByText(/^Option \d+$/).count()).toBe(30);
  });
});

/** The middle of a button, where a person points. */
async function middleOf(button: Locator): Promise<{ readonly x: number; readonly y: number }> {
  const { x = 0, y = 0, width = 0, height = 0 } = (await button.boundingBox()) ?? {};
  return { x: x + width / 2, y: y + height / 2 };
}

test("two clicks at one spot approve one run: its card stays where it is, and so does the next one", async () => {
  const other = { ...WAITING, run: { ...WAITING.run, runId: "01OTHER", startedAt: WAITING.run.startedAt - 1000 } };
  const made = await serveMadeRuns({ details: [WAITING, other] });
  await onPage(made.url, async (page) => {
    await page.setViewportSize({ width: 1280, height: 2000 });
    const [first, second] = [page.getByRole("article").nth(0), page.getByRole("article").nth(1)];
    const approve = first.getByRole("button", { name: "Approve", exact: true });
    await expect.poll(() => approve.isEnabled()).toBe(true);
    const [spot, place] = [await middleOf(approve), await second.boundingBox()];
    await page.mouse.click(spot.x, spot.y);
    await page.getByText("Approved.").waitFor();
    made.put(RUNNING_NOW);
    await first.getByText("running", { exact: true }).waitFor();
    await page.mouse.click(spot.x, spot.y);
    expect(await page.getByRole("article").count()).toBe(2);
    expect(await second.boundingBox()).toEqual(place);
    // Nothing has moved, so that the next one is decided on at once.
    await second.getByRole("button", { name: "Decline", exact: true }).click({ timeout: 10_000 });
    await expect
      .poll(() => made.asked)
      .toEqual([`/page/runs/01WAITING/approve ${SEEN}`, `/page/runs/01OTHER/decline ${SEEN}`]);
  });
});

test("for a second after a card came or moved, decisions are ignored", async () => {
  const other = { ...WAITING, run: { ...WAITING.run, runId: "01OTHER", startedAt: WAITING.run.startedAt - 1000 } };
  const made = await serveMadeRuns({ details: [WAITING, other] });
  await onPage(made.url, async (page) => {
    await page.setViewportSize({ width: 1280, height: 2000 });
    await page.clock.install();
    await page.reload();
    const approve = page.getByRole("article").nth(1).getByRole("button", { name: "Approve", exact: true });
    await approve.waitFor();
    await page.clock.pauseAt(Number(await page.evaluate("Date.now()")) + 1000);
    await page.clock.runFor(1000);
    expect(await approve.isEnabled()).toBe(true);
    const { waiting } = WAITING.run;
    if (waiting === undefined) throw new Error("the run does not wait");
    made.put({ ...WAITING.run, waiting: { ...waiting, undoable: [...waiting.undoable, "One more line."] } });
    await page.getByText("One more line.").waitFor();
    const press = async () => {
      const spot = await middleOf(approve);
      await page.mouse.click(spot.x, spot.y);
    };
    await press();
    await page.getByText("The page changed a moment ago, so nothing was decided.").waitFor();
    await page.clock.runFor(999);
    await press();
    expect(made.asked).toEqual([]);
    await page.clock.runFor(1);
    await press();
    await expect.poll(() => made.asked).toEqual([`/page/runs/01OTHER/approve ${SEEN}`]);
  });
});

test("what came of a button is not said of another run, and nothing failed fills a bar", async () => {
  const counts = { ...PARTIAL.run.counts, items: 60, succeeded: 0, failed: 60 };
  const failed = { ...PARTIAL, run: { ...PARTIAL.run, runId: "01FAILED", status: "failed", counts } } as const;
  const made = await serveMadeRuns({ details: [WAITING, failed] });
  await onPage(made.url, async (page) => {
    await page.getByRole("button", { name: "Decline", exact: true }).click();
    await page.getByText("Declined. (delete_options, Spring)").waitFor();
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await page.getByRole("link", { name: "apply_plan" }).click();
    await page.getByText("0 of 60, 60 failed").waitFor();
    expect(await page.getByText("Declined.").count()).toBe(0);
    expect(await page.getByRole("progressbar").getAttribute("value")).toBe("0");
    await page.getByText("3 requests sent, 1 of them a retry.").waitFor();
  });
});

test("what is approved elsewhere says where, has no Approve, and goes when that ends", async () => {
  const { waiting } = WAITING.run;
  if (waiting === undefined) throw new Error("the run does not wait");
  const run = { ...WAITING.run, actions: ["decline"], waiting: { ...waiting, elsewhere: "token" } } as const;
  const made = await serveMadeRuns({ details: [{ ...WAITING, run }] });
  await onPage(made.url, async (page) => {
    await page.getByText("The agent holds a confirmation token for this: it is approved there, not here.").waitFor();
    await page.getByText("Deletes 3 options of Spring").waitFor();
    expect(await page.getByRole("button", { name: "Approve", exact: true }).count()).toBe(0);
    made.put({ ...ROW, status: "cancelled", actions: [] });
    await page.getByText("No run waits for a decision.").waitFor();
    expect(await page.getByRole("article").count()).toBe(0);
  });
});

test("nothing is decided on a page whose server has ended", async () => {
  const made = await serveMadeRuns({ details: [WAITING] });
  await onPage(
    made.url,
    async (page) => {
      const approve = page.getByRole("button", { name: "Approve", exact: true });
      await expect.poll(() => approve.isEnabled()).toBe(true);
      made.end();
      await page.getByText("The server of this page has ended. You can close the page.").waitFor();
      expect(await approve.isDisabled()).toBe(true);
      expect(await page.getByRole("button", { name: "Decline", exact: true }).isDisabled()).toBe(true);
      await page.getByText("This page has lost its server, so that nothing can be decided here.").waitFor();
    },
    { mayLog: /Failed to load resource/ },
  );
});

test("a stale run, and one whose server has ended, say so and cannot be approved", async () => {
  const made = await serveMadeRuns({ details: [STALE, ENDED] });
  await onPage(made.url, async (page) => {
    const [stale, ended] = [page.getByRole("article").nth(0), page.getByRole("article").nth(1)];
    await stale.getByText("Changed since it was planned").waitFor();
    await stale.getByText("Sneakers: 12 Context IDs were planned for, 14 are there.").waitFor();
    await ended.getByText("The server that asked has ended: ask the agent again").waitFor();
    for (const run of [stale, ended]) {
      expect(await run.getByRole("button", { name: "Approve", exact: true }).isDisabled()).toBe(true);
      await expect.poll(() => run.getByRole("button", { name: "Decline", exact: true }).isEnabled()).toBe(true);
    }
  });
});

test("runs are listed, and one is shown with its counts, failures, downloads and plan", async () => {
  const made = await serveMadeRuns({ details: ALL });
  await onPage(`${made.url}/#/runs`, async (page) => {
    await expect
      .poll(() => rowNames(page, "Runs"))
      .toEqual(["delete_options", "delete_options", "delete_options", "bulk_add_options", "apply_plan"]);
    await page.getByRole("link", { name: "bulk_add_options" }).click();
    await page.getByText("400 of 1,000").waitFor();
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.getByText("The run is being cancelled.").waitFor();
    made.put({ ...RUNNING.run, updatedAt: 1, counts: { ...RUNNING.run.counts, succeeded: 700, pending: 300 } });
    await page.getByText("700 of 1,000").waitFor();
    await page.getByRole("link", { name: "All runs" }).click();
    await page.getByRole("link", { name: "apply_plan" }).click();
    await page.getByRole("heading", { name: "Plan: Spring" }).waitFor();
    const text = await page.locator("main").innerText();
    for (const words of [
      "Approved on the page by ann.",
      "The name is taken.",
      "Choose another name.",
      "Fix the two rows.",
    ]) {
      expect(text).toContain(words);
    }
    const tree = page.locator(".tree");
    expect((await tree.innerText()).split("\n").filter((line) => line.trim() !== "")).toEqual([
      "Created 2",
      `${MARKUP} +1`,
      "Seasonal",
      "Easter +3",
      "Renamed 1",
      "Shoes → safe\\u{202E}gnp.exe",
      "Moved 1",
      "Boots: top level → Shoes",
      "Changed Context IDs 1",
      "Bags +2 −5",
      "Changed settings 1",
      "Seasonal: exposeChildren false → true",
      "Deleted 21",
      "Old −12",
      "and 20 more",
    ]);
    expect(await rowNames(page, "Conflicts")).toEqual(["Jeans"]);
    expect(await rowNames(page, "Drift")).toEqual(["Hats"]);
    for (const [name, file] of [
      ["Results", "results"],
      ["Rejected rows", "rejects"],
      ["What was taken away", "removed"],
    ] as const) {
      expect(await page.getByRole("link", { name }).getAttribute("href")).toBe(`/page/runs/01PARTIAL/${file}`);
    }
    expect(await page.getByRole("button", { name: "Resume run", exact: true }).isDisabled()).toBe(true);
    await page.getByRole("button", { name: "Undo", exact: true }).click();
    await expect.poll(() => made.asked.at(-1)).toBe("/page/runs/01PARTIAL/undo {}");
  });
});

test("on a phone no word of a table is taken apart, and only tables scroll sideways", async () => {
  const made = await serveMadeRuns({ details: ALL });
  await onPage(made.url, async (page) => {
    await page.setViewportSize({ width: 390, height: 844 });
    for (const [address, words] of [
      ["#/runs", ["Tool", "Status", "Started", "running", "waits for a decision", "bulk_add_options"]],
      ["#/runs/01PARTIAL", ["Succeeded", "Already done", "What happened", "2 failed", "partly done"]],
    ] as const) {
      await page.goto(`${made.url}/${address}`);
      for (const text of words) {
        await page.locator("main").getByText(text, { exact: true }).first().waitFor();
        expect([text, await page.evaluate(linesOf(text))]).toEqual([text, 1]);
      }
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
    }
  });
});

test("an address that names no run says so, also where it is malformed", async () => {
  const made = await serveMadeRuns({ details: [WAITING] });
  for (const address of ["#/runs/01NONE", "#/runs/%E0%A4%A"]) {
    await onPage(
      `${made.url}/${address}`,
      (page) => page.getByRole("heading", { name: "There is no such run" }).waitFor(),
      { mayLog: /Failed to load resource.*404/ },
    );
  }
});

test("a button that is pressed twice acts once", async () => {
  const made = await serveMadeRuns({ details: [WAITING] });
  await onPage(made.url, async (page) => {
    await expect.poll(() => page.getByRole("button", { name: "Approve", exact: true }).isEnabled()).toBe(true);
    await page.evaluate("{ const one = document.querySelector('button.approve'); one.click(); one.click(); }");
    await page.getByText("Approved.").waitFor();
    expect(made.asked).toEqual([`/page/runs/01WAITING/approve ${SEEN}`]);
  });
});

test("a decision is made by keyboard alone", async () => {
  const made = await serveMadeRuns({ details: [WAITING] });
  await onPage(made.url, async (page) => {
    await page.getByRole("article").waitFor();
    for (let steps = 0; steps < 20; steps += 1) {
      await page.keyboard.press("Tab");
      if ((await page.evaluate("document.activeElement.innerText")) === "Approve") break;
    }
    await expect.poll(() => page.getByRole("button", { name: "Approve", exact: true }).isEnabled()).toBe(true);
    await page.keyboard.press("Enter");
    await page.getByText("Approved.").waitFor();
    expect(made.asked).toEqual([`/page/runs/01WAITING/approve ${SEEN}`]);
  });
});

test("without session a token logs in, and a server that has ended is told", async () => {
  const made = await serveMadeRuns({ details: [RUNNING], login: { message: "Approvers log in here.", token: true } });
  await onPage(
    made.url,
    async (page) => {
      await page.getByText("Approvers log in here.").waitFor();
      await page.getByLabel("Token").fill("secret");
      await page.getByRole("button", { name: "Log in", exact: true }).click();
      await page.getByText("No run waits for a decision.").waitFor();
      expect(made.asked).toEqual(['/login {"token":"secret"}']);
      made.end();
      await page.getByText("The server of this page has ended. You can close the page.").waitFor();
    },
    { mayLog: /Failed to load resource/ },
  );
});
