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

const ALL = [WAITING, STALE, ENDED, RUNNING, PARTIAL];

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
    expect(made.asked).toEqual(["/page/runs/01WAITING/approve {}", "/page/runs/01WAITING/decline {}"]);
    const { waiting: _, ...row } = WAITING.run;
    made.put({ ...row, status: "running", actions: ["cancel"] });
    await page.locator("[aria-live=polite]").getByText("2 runs wait for a decision").waitFor();
    expect(await page.locator("main script, main img").count()).toBe(0);
  });
});

test("the page of a run that waits names more of what goes than the list of approvals does", async () => {
  const names = Array.from({ length: 30 }, (_, at) => ({ name: `Option ${at}` }));
  const parts = [{ title: "Options deleted", count: 130, objects: names }];
  const waiting = { effect: "Deletes 130 options", parts, lost: [], undoable: [], expiresAt: 0 };
  const made = await serveMadeRuns({ details: [{ ...WAITING, run: { ...WAITING.run, waiting } }] });
  await onPage(made.url, async (page) => {
    await page.getByText("and 110 more").waitFor();
    await page.getByRole("link", { name: "Show the run" }).click();
    await page.getByText("and 100 more").waitFor();
    expect(await page.getByText(/^Option \d+$/).count()).toBe(30);
  });
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
      expect(await run.getByRole("button", { name: "Decline", exact: true }).isEnabled()).toBe(true);
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
      "Mend the two rows.",
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
      "Seasonal: false → true",
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
    await page.getByRole("article").waitFor();
    await page.evaluate("{ const one = document.querySelector('button.approve'); one.click(); one.click(); }");
    await page.getByText("Approved.").waitFor();
    expect(made.asked).toEqual(["/page/runs/01WAITING/approve {}"]);
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
    await page.keyboard.press("Enter");
    await page.getByText("Approved.").waitFor();
    expect(made.asked).toEqual(["/page/runs/01WAITING/approve {}"]);
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
