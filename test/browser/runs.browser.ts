import type { Locator, Page, Route } from "playwright-core";
import { expect, test } from "vitest";
import * as z from "zod";
import type { ChangeList, ProblemList, RunDetail, RunRow } from "../../src/web/wire.ts";
import { button, findingsOfAxe, rowNames, SCHEMES, withBrowser } from "./browser.ts";
import { serveMadeRuns } from "./made-runs.ts";
import { ENDED, MARKUP, PARTIAL, RUNNING, STALE, WAITING } from "./runs.ts";

const { onPage } = withBrowser();

/** Returns on how many lines a text is shown. */
const linesOf = (text: string) => `{
  const holders = [...document.querySelectorAll("main :not(option)")].filter(({ textContent }) => textContent === ${JSON.stringify(text)});
  const range = document.createRange();
  range.selectNodeContents(holders.at(-1));
  new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
}`;

/** Returns the count, the reason and the positions of each group of failures. */
const causesOn = (page: Page): Promise<unknown> =>
  page.evaluate(
    '[...document.querySelectorAll(".places")].map((one) => [...one.parentElement.children].map((part) => part.textContent))',
  );

/** Returns for each group of failures whether some of its positions are hidden. */
const cutsOn = (page: Page): Promise<unknown> =>
  page.evaluate('[...document.querySelectorAll(".places")].map((one) => one.scrollHeight > one.clientHeight)');

/** The waiting run after it was approved. */
const { waiting: _, ...ROW } = WAITING.run;
const RUNNING_NOW = { ...ROW, status: "running", actions: ["cancel"] } as const;

const ALL = [WAITING, STALE, ENDED, RUNNING, PARTIAL];

/** What a decision sends: the effect that the page showed. */
const SEEN = '{"digest":"d"}';

/** The same run under another ID, started a second earlier. */
const OTHER = { ...WAITING, run: { ...WAITING.run, runId: "01OTHER", startedAt: WAITING.run.startedAt - 1000 } };

/** What the run waits for. */
const WAITS = WAITING.run.waiting;
if (WAITS === undefined) throw new Error("the run does not wait");

/** The changes of a plan, in a group and at the top level. */
const CHANGES: ChangeList = {
  total: 5,
  counts: { created: 1, changed: 3, deleted: 1 },
  unchanged: 5,
  rows: [
    {
      ...{ kind: "deleted", group: "Clothing" },
      before: { name: MARKUP, count: 2, contextIds: ["category-jeans", "denim"] },
    },
    {
      ...{ kind: "changed", group: "Clothing" },
      before: { name: "Boots", within: "Shoes" },
      after: { name: "Boots", within: "Clothing" },
    },
    { kind: "created", group: "Clothing", after: { name: "Dresses", count: 1, contextIds: ["category-dresses"] } },
    { kind: "changed", group: null, before: { name: "Bags" }, after: { name: "Bags and Backpacks" } },
    {
      ...{ kind: "changed", group: null },
      before: { name: "Gift Cards" },
      after: { name: "Gift Cards", count: 7, contextIds: ["page-gifts"] },
    },
  ],
};

const PROBLEMS: ProblemList = {
  total: 2,
  rows: [
    {
      ...{ outcome: "failed", place: "line 3", value: "bad_3" },
      ...{ problem: "the name has 1 character that is not allowed", suggestion: "Use letters." },
    },
    { outcome: "failed", place: "line 4", value: "x", problem: "the name is too short", suggestion: "Use 2 letters." },
  ],
};

test("a run that waits is shown with its exact effect, and is approved or declined", async () => {
  const made = await serveMadeRuns({ details: ALL });
  await onPage(`${made.url}/#/approvals`, async (page) => {
    await page.getByRole("heading", { name: "Delete 25 options from Spring?" }).waitFor();
    // The changes are read after the heading is shown.
    await page.getByRole("button", { name: "Show 21 more" }).waitFor();
    const said = await page.locator("main").innerText();
    for (const words of [
      ...['Requested by ci (calls itself "Claude Code")', "Deletes 3 options of Spring"],
      ...["12 Context IDs", "Show 21 more", "It can be undone for 30 days, with new IDs"],
    ]) {
      expect(said).toContain(words);
    }
    expect(said).toContain(MARKUP);
    expect(said).toContain("safe\\u{202E}gnp.exe");
    expect(await button(page, "approve").innerText()).toBe("Delete 25 options");
    await expect.poll(() => button(page, "approve").getAttribute("aria-disabled")).toBe("false");
    await button(page, "approve").click();
    await page.getByText("Approved: Delete 25 options.").waitFor();
    await button(page, "decline").click();
    await page.getByText("Declined: Delete 25 options.").waitFor();
    expect(made.asked).toEqual([`/page/runs/01WAITING/approve ${SEEN}`, `/page/runs/01WAITING/decline ${SEEN}`]);
    made.put(RUNNING_NOW);
    await page.locator("[aria-live=polite]").getByText("0 runs are waiting for a decision").waitFor();
    expect(await page.locator("main script, main img").count()).toBe(0);
  });
});

/** Returns the middle of a button, where a person clicks. */
async function middleOf(one: Locator): Promise<{ readonly x: number; readonly y: number }> {
  const { x = 0, y = 0, width = 0, height = 0 } = (await one.boundingBox()) ?? {};
  return { x: x + width / 2, y: y + height / 2 };
}

test("a run cannot be approved until all that it removes has been read", async () => {
  const list: ChangeList = {
    ...{ rows: [{ kind: "deleted", before: { name: "Shoes", count: 2 } }], total: 25 },
    counts: { created: 0, changed: 0, deleted: 25 },
  };
  const changes: Record<string, ChangeList> = { "01WAITING": { ...list, isReading: true } };
  const waiting = { ...WAITS, magnitude: { count: 25, verb: "deleted", what: "25 options" } as const };
  const made = await serveMadeRuns({ details: [{ ...WAITING, run: { ...WAITING.run, waiting } }], changes });
  await onPage(`${made.url}/#/approvals`, async (page) => {
    const figure = page.locator(".summary");
    await page.getByText("The Context IDs are being read…").first().waitFor();
    expect(await page.getByText("The Context IDs are being read…").count()).toBe(1);
    await page.getByText("It can be approved once all changes are read.").waitFor();
    expect(await button(page, "approve").isDisabled()).toBe(true);
    await expect.poll(() => button(page, "decline").isEnabled()).toBe(true);
    changes["01WAITING"] = { ...list, removed: 666 };
    await figure.getByText("Removes 666 Context IDs").waitFor();
    await expect.poll(() => button(page, "approve").isEnabled()).toBe(true);
    expect(await page.getByText("been read").or(page.getByText("being read")).count()).toBe(0);
  });
});

test.each([
  ["cancelled", undefined, "Cancelled"],
  ["declined", true, "Declined"],
] as const)("an approval that is open while it is %s elsewhere says that nothing was sent", async (_, is, words) => {
  const magnitude = { count: 25, whole: 100, verb: "deleted", what: "25 options" } as const;
  const consequence = "Campaigns lose them at once.";
  const { waiting: __, ...row } = WAITING.run;
  const made = await serveMadeRuns({
    details: [{ ...WAITING, run: { ...WAITING.run, waiting: { ...WAITS, magnitude, consequence } } }],
  });
  await onPage(`${made.url}/#/approvals`, async (page) => {
    await page.getByText("25 % of 100 options and groups").waitFor();
    await page.getByText(consequence).waitFor();
    made.put({ ...row, status: "cancelled", isDeclined: is, actions: [] });
    await page.locator(".decided").getByText("nothing was sent").waitFor();
    await page.locator(".decided").getByText(words, { exact: true }).waitFor();
    const said = await page.locator("main").innerText();
    for (const effect of ["25 % of 100", "can be undone", consequence, "Sneakers"]) {
      expect(said).not.toContain(effect);
    }
  });
});

test("a deleted group is one row above its sub-options, and a targeting is under no heading", async () => {
  const row = (name: string, group: string | null | undefined, more = {}) =>
    ({ kind: "deleted", group, before: { name, count: 1, ...more } }) as const;
  const list: ChangeList = {
    ...{ total: 4, counts: { created: 0, changed: 0, deleted: 4 } },
    rows: [
      row("Spring", undefined, { says: "(targeting)" }),
      { ...row("Clothing", null, { isGroup: true }), isHead: true },
      row("Jeans", "Clothing"),
      row("Bags", null),
    ],
  };
  const made = await serveMadeRuns({ details: [WAITING], changes: { "01WAITING": list } });
  await onPage(`${made.url}/#/approvals`, async (page) => {
    const rows = page.getByRole("table", { name: "What changes" }).locator("tbody tr");
    await expect
      .poll(async () => (await rows.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, " ").trim()))
      .toEqual([
        "− deleted Spring (targeting)",
        ...["− deleted Clothing (group) 1 Context ID", "− deleted Jeans 1 Context ID", "Top level"],
        "− deleted Bags 1 Context ID",
      ]);
    const [head, inside] = await Promise.all(
      ["Clothing", "Jeans"].map((name) =>
        page
          .getByText(name, { exact: name === "Jeans" })
          .last()
          .boundingBox(),
      ),
    );
    expect(head?.x).toBeLessThan(inside?.x ?? 0);
  });
});

test("two clicks at one spot approve one run: it stays where it is, and the next one is chosen by the person", async () => {
  const made = await serveMadeRuns({ details: [WAITING, OTHER] });
  await onPage(`${made.url}/#/approvals`, async (page) => {
    const items = page.locator(".queue a");
    await expect.poll(() => button(page, "approve").getAttribute("aria-disabled")).toBe("false");
    const [spot, place] = [await middleOf(button(page, "approve")), await items.nth(1).boundingBox()];
    await page.mouse.click(spot.x, spot.y);
    await page.getByText("Approved: Delete").waitFor();
    made.put({ ...RUNNING_NOW, actions: ["undo"] });
    await items.nth(0).getByText("Running", { exact: true }).waitFor();
    await page.mouse.click(spot.x, spot.y);
    expect(await items.count()).toBe(2);
    expect((await items.nth(1).boundingBox())?.x).toEqual(place?.x);
    await button(page, "undo").waitFor();
    await items.nth(1).click();
    await expect.poll(() => button(page, "decline").getAttribute("aria-disabled")).toBe("false");
    await button(page, "decline").click();
    await expect
      .poll(() => made.asked)
      .toEqual([`/page/runs/01WAITING/approve ${SEEN}`, `/page/runs/01OTHER/decline ${SEEN}`]);
  });
});

test("a decided run stays in the queue after another view and after a reload, and what waits is chosen first", async () => {
  const made = await serveMadeRuns({ details: [WAITING, OTHER] });
  await onPage(`${made.url}/#/approvals`, async (page) => {
    const items = page.locator(".queue a");
    await expect.poll(() => items.count()).toBe(2);
    const decided = "Approved on the page by ann";
    made.put({ ...ROW, status: "succeeded", decided, isDecidedOnPage: true, updatedAt: Date.now(), actions: ["undo"] });
    await page.locator(".queue").getByText("1 waiting").waitFor();
    for (const back of [() => page.getByRole("link", { name: /^Approvals/ }).click(), () => page.reload()]) {
      await page.getByRole("link", { name: "Runs", exact: true }).click();
      await page.getByRole("heading", { name: "Runs" }).waitFor();
      await back();
      await page.goto(`${made.url}/#/approvals`);
      await expect.poll(() => items.count()).toBe(2);
      await page.locator(".queue a[aria-current][href='#/approvals/01OTHER']").waitFor();
    }
    await items.getByText("Done").click();
    await button(page, "undo").waitFor();
    await page.getByText(decided).waitFor();
  });
});

test("for a second after anything moved, decisions are ignored", async () => {
  const made = await serveMadeRuns({ details: [WAITING, OTHER] });
  await onPage(`${made.url}/#/approvals`, async (page) => {
    await page.clock.install();
    await page.reload();
    const approve = button(page, "approve");
    await approve.waitFor();
    await page.getByText("Sneakers").waitFor();
    await page.clock.pauseAt(Number(await page.evaluate("Date.now()")) + 1000);
    await page.clock.runFor(1000);
    expect(await approve.getAttribute("aria-disabled")).toBe("false");
    await page.locator(".queue a").nth(1).click();
    await page.locator(".queue a[aria-current]").nth(0).waitFor();
    await expect.poll(() => approve.getAttribute("aria-disabled")).toBe("true");
    // In the meantime, the page reads the run's changes.
    await expect
      .poll(async () => {
        await page.clock.runFor(10);
        return page.locator("[data-action=approve]:disabled").count();
      })
      .toBe(0);
    const press = async () => {
      const spot = await middleOf(approve);
      await page.mouse.click(spot.x, spot.y);
    };
    await press();
    await page.getByText("The page changed a moment ago, so nothing was decided.").waitFor();
    expect(made.asked).toEqual([]);
    await page.clock.runFor(1000);
    await press();
    await expect.poll(() => made.asked).toEqual([`/page/runs/01OTHER/approve ${SEEN}`]);
  });
});

const CHECK = "Campaigns and ad products lose these options at once. Only the web console shows which ones use them.";

test.each([
  ["Delete 420 options from Product Catalogue", 420, 3332, 840],
  ["Delete the targeting Shop Brands and its 4 options", 5, undefined, 5],
  ["Delete group Clothing from Shop Categories", 1, 9, undefined],
] as const)(
  "%s: at most 56 words with the warning come before the list, then who asked, in small letters",
  async (title, count, whole, contextIds) => {
    const waiting = {
      ...{ ...WAITS, effect: "", check: CHECK, contextIds },
      ...(count === 1 && { consequence: "4 sub-options stay, with their Context IDs: they move to the top level." }),
      magnitude: { count, whole, verb: "deleted", what: "" } as const,
      counts: { created: 0, changed: 0, deleted: count },
      undo: {
        title: "Undo within 30 days: same Context IDs, new option IDs; campaigns are not reconnected",
        notes: [],
      },
    };
    const made = await serveMadeRuns({ details: [{ ...WAITING, run: { ...WAITING.run, title, waiting } }] });
    await onPage(`${made.url}/#/approvals/01WAITING`, async (page) => {
      await page.getByRole("cell", { name: "Sneakers" }).waitFor();
      const texts = [page.getByRole("heading", { level: 1 }).last(), page.locator(".summary")];
      const asked = await page.locator(".summary > .row.small:last-child").innerText();
      expect(asked).toContain("Requested by ci");
      expect(asked).toMatch(/cancelled .* if nobody decides/);
      const said = (await Promise.all(texts.map((one) => one.innerText()))).join(" ").replace(asked, "");
      expect(said.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length).toBeLessThanOrEqual(56);
      // The list follows directly, without a heading.
      expect(await page.locator(".summary + .changes h2").count()).toBe(0);
      expect(said).toContain(CHECK);
    });
  },
);

test("a whole targeting that waits is named in the queue, and its options are listed once", async () => {
  const objects = [{ name: "Sneakers", says: "12 Context IDs" }];
  const parts = [
    { title: "Targetings deleted", kind: "deleted", count: 1, objects: [{ name: "Spring" }] },
    { title: "Options deleted with their targeting", kind: "inside", count: 1200, objects },
  ] as const;
  const { targeting: __, ...whole } = WAITING.run;
  const counts = { created: 0, changed: 0, deleted: 1 };
  const waiting = { ...WAITS, act: "Delete the targeting", counts, parts, optionsInside: 1200 };
  const run = { ...whole, title: "Delete the targeting Spring and its 1,200 options", waiting };
  const made = await serveMadeRuns({ details: [{ ...WAITING, run }] });
  await onPage(`${made.url}/#/approvals`, async (page) => {
    const item = page.locator(".queue").getByRole("link");
    await item.getByText("Delete the targeting Spring and its 1,200 options").waitFor();
    await page.getByRole("heading", { level: 1 }).locator("strong").getByText("Spring", { exact: true }).waitFor();
    await page.getByText("Sneakers").waitFor();
    expect(await page.getByText("Options deleted with their targeting").count()).toBe(0);
  });
});

test("a large change is approved by its targeting's name alone, and by keys only after another question", async () => {
  const run = { ...WAITING.run, waiting: { ...WAITS, typed: "Spring" } };
  const made = await serveMadeRuns({ details: [{ ...WAITING, run }] });
  await onPage(`${made.url}/#/approvals/01WAITING`, async (page) => {
    await page.getByText("To approve, type Spring").waitFor();
    expect(await button(page, "approve").isDisabled()).toBe(true);
    // Even in a small window, the field for the name leaves enough space for the changes.
    for (const [width, height, most] of [
      [390, 600, 115],
      [1366, 640, 62],
    ] as const) {
      await page.setViewportSize({ width, height });
      const { y = 0, height: foot = most } = (await page.locator(".foot").boundingBox()) ?? {};
      expect(foot).toBeLessThan(most);
      if (width > 1000) expect((await page.getByText("Sneakers").boundingBox())?.y).toBeLessThan(y - 100);
    }
    await page.keyboard.press("a");
    await page.keyboard.type("Spring");
    await expect.poll(() => button(page, "approve").isEnabled()).toBe(true);
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Confirm" });
    await dialog.getByText("Delete 25 options from Spring?").waitFor();
    await page.keyboard.press("Escape");
    // The dialog is hidden before the page knows that it was closed, and then removed.
    await expect.poll(() => page.locator("dialog").count()).toBe(0);
    expect(made.asked).toEqual([]);
    await page.keyboard.press("Escape");
    await page.keyboard.press("a");
    await dialog.locator("[data-confirms=approve]").waitFor();
    await page.keyboard.press("Enter");
    await expect.poll(() => made.asked).toEqual(['/page/runs/01WAITING/approve {"digest":"d","typed":"Spring"}']);
  });
});

test("an undo that is planned slowly does not take the person away from another view", async () => {
  const run = { ...PARTIAL.run, disabled: {} };
  const made = await serveMadeRuns({ details: [{ ...PARTIAL, run }] });
  await onPage(`${made.url}/#/runs/01PARTIAL`, async (page) => {
    const held: Route[] = [];
    await page.route("**/page/runs/01PARTIAL/undo", (route) => void held.push(route));
    await expect.poll(() => button(page, "undo").getAttribute("aria-disabled")).toBe("false");
    await button(page, "undo").click();
    await page.getByRole("link", { name: "Overview" }).click();
    await expect.poll(() => held.length).toBe(1);
    await held[0]?.fulfill({ json: { runId: "01UNDO" } });
    await page.getByText("The undo is planned and is waiting for your approval.").waitFor();
    expect(page.url()).toMatch(/#\/overview$/);
  });
});

test("a name counts as typed if a keyboard decomposes its letters", async () => {
  const run = { ...WAITING.run, waiting: { ...WAITS, typed: "가을 신발" } };
  const made = await serveMadeRuns({ details: [{ ...WAITING, run }] });
  await onPage(`${made.url}/#/approvals/01WAITING`, async (page) => {
    await page.getByRole("textbox").fill("가을".normalize("NFD"));
    expect(await button(page, "approve").isDisabled()).toBe(true);
    await page.getByRole("textbox").fill("가을 신발".normalize("NFD"));
    await expect.poll(() => button(page, "approve").isEnabled()).toBe(true);
  });
});

test("on a phone, a long name that must be typed does not make the page scroll sideways", async () => {
  const names = ["Spring", "n".repeat(60), "A long name of a targeting that has sixty letters and blanks"];
  for (const typed of names) {
    const made = await serveMadeRuns({
      details: [{ ...WAITING, run: { ...WAITING.run, waiting: { ...WAITS, typed } } }],
    });
    await onPage(`${made.url}/#/approvals/01WAITING`, async (page) => {
      await page.setViewportSize({ width: 390, height: 844 });
      const { x = 0, width = 0 } = (await page.locator(".foot input").boundingBox()) ?? {};
      expect(x + width).toBeLessThanOrEqual(390);
      expect(width).toBeGreaterThan(150);
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
    });
  }
});

test("J and K go through the queue, D declines after another question, and / searches", async () => {
  const made = await serveMadeRuns({ details: [WAITING, OTHER] });
  await onPage(`${made.url}/#/approvals`, async (page) => {
    await button(page, "decline").waitFor();
    await page.keyboard.press("j");
    await page.locator(".queue a[aria-current][href='#/approvals/01OTHER']").waitFor();
    await page.keyboard.press("k");
    await page.locator(".queue a[aria-current][href='#/approvals/01WAITING']").waitFor();
    await page.getByRole("searchbox").waitFor();
    await page.keyboard.press("/");
    await expect.poll(() => page.evaluate("document.activeElement.type")).toBe("search");
    await page.keyboard.type("jd");
    expect(made.asked).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByText("Keys: J K next, previous, A approve, D decline, / search").waitFor();
    await page.keyboard.press("d");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Enter");
    await expect.poll(() => made.asked).toEqual([`/page/runs/01WAITING/decline ${SEEN}`]);
    const focused = 'document.activeElement.getAttribute("href")';
    await expect.poll(() => page.evaluate(focused), { timeout: 5000 }).toBe("#/approvals/01WAITING");
  });
});

test("what came of a button is not said of another run, and nothing failed counts as done", async () => {
  const counts = { ...PARTIAL.run.counts, items: 60, succeeded: 0, failed: 60 };
  const did = { created: 0, changed: 0, deleted: 0 };
  const failed = { ...PARTIAL, run: { ...PARTIAL.run, runId: "01FAILED", status: "failed", counts, did } } as const;
  const made = await serveMadeRuns({ details: [WAITING, failed] });
  await onPage(`${made.url}/#/approvals`, async (page) => {
    await expect.poll(() => button(page, "decline").getAttribute("aria-disabled")).toBe("false");
    await button(page, "decline").click();
    await page.getByText("Declined: Delete 25 options.").waitFor();
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await page.getByText("0 of 60 changes, 60 failed").waitFor();
    await page.getByRole("link", { name: /spring\.yaml/ }).click();
    await page.getByText("0 of 60 changes, 60 failed").waitFor();
    expect(await page.getByText("Declined:").count()).toBe(0);
    expect(await page.getByRole("img", { name: "Progress: 60 failed" }).locator("i").count()).toBe(1);
    await page.getByText("3 requests, 1 of them a retry").waitFor();
  });
});

test("the result of a button goes away as it is closed, or after a while by itself", async () => {
  const made = await serveMadeRuns({ details: [PARTIAL] });
  await onPage(`${made.url}/#/runs/01PARTIAL`, async (page) => {
    await page.clock.install();
    const copy = async () => {
      await page.getByRole("button", { name: "copy", exact: true }).first().click();
      await page.getByText(/^(Copied\.|The browser did not copy)/).waitFor();
    };
    await page.getByText("Technical details").click();
    await copy();
    await page.getByRole("button", { name: "Close" }).click();
    await expect.poll(() => page.locator(".outcome").count()).toBe(0);
    await copy();
    await page.clock.runFor(15_000);
    await expect.poll(() => page.locator(".outcome").count()).toBe(0);
  });
});

test("on a phone Close is on one line, however long the text beside it is", async () => {
  const run = { ...WAITING.run, waiting: { ...WAITS, act: `Delete ${"가".repeat(300)}` } };
  const made = await serveMadeRuns({ details: [{ ...WAITING, run }] });
  await onPage(`${made.url}/#/approvals/01WAITING`, async (page) => {
    await page.setViewportSize({ width: 390, height: 844 });
    await expect.poll(() => button(page, "decline").getAttribute("aria-disabled")).toBe("false");
    await button(page, "decline").click();
    await page.locator(".outcome").getByText("Declined: ").waitFor();
    expect((await page.getByRole("button", { name: "Close" }).boundingBox())?.height).toBeLessThan(30);
  });
});

test("another view begins at its top, and a running run does not say that it changes nothing", async () => {
  const none = { rows: [], total: 0, counts: { created: 0, changed: 0, deleted: 0 } };
  const run = { ...RUNNING.run, did: { created: 400, changed: 0, deleted: 0 } };
  const made = await serveMadeRuns({ details: [...ALL, { ...RUNNING, run }], changes: { "01RUNNING": none } });
  await onPage(`${made.url}/#/runs`, async (page) => {
    await page.setViewportSize({ width: 390, height: 300 });
    await page.getByRole("link", { name: /Add 1,000 options/ }).scrollIntoViewIfNeeded();
    expect(await page.evaluate("scrollY")).toBeGreaterThan(0);
    await page.getByRole("link", { name: /Add 1,000 options/ }).click();
    await page.getByText("The changes are listed here when the run has ended.").waitFor();
    expect(await page.evaluate("scrollY")).toBe(0);
  });
});

test("the time that is left falls while nothing is done, and is then no longer shown", async () => {
  const now = Date.now();
  const run = { ...RUNNING.run, startedAt: now - 50_000, updatedAt: now - 10_000 };
  const made = await serveMadeRuns({ details: [{ ...RUNNING, run }] });
  await onPage(`${made.url}/#/runs/01RUNNING`, async (page) => {
    await page.clock.install();
    await page.reload();
    await page.getByText("400 of 1,000 options").first().waitFor();
    // 400 options took 40 seconds. So the other 600 take 60 seconds, of which 10 have passed.
    const left = async (): Promise<number> => {
      const [, seconds] = /about (\d+) s left/.exec(await page.locator("main").innerText()) ?? [];
      return Number(seconds ?? 0);
    };
    expect(await left()).toBeGreaterThan(30);
    expect(await left()).toBeLessThanOrEqual(50);
    await page.clock.runFor(30_000);
    await expect.poll(left, { timeout: 5000 }).toBeLessThanOrEqual(20);
    await page.clock.runFor(60_000);
    await expect.poll(async () => (await page.locator("main").innerText()).includes("left")).toBe(false);
  });
});

const SAVED = { path: "/data/spring.xlsx", says: "9 options, 12 Context IDs" };

test("an export says where its file is, and a list names the client of this computer in quotation marks", async () => {
  const saved: RunRow = {
    ...RUNNING.run,
    ...{ runId: "01SAVED", tool: "list_options", title: "Saved Spring to spring.xlsx", actions: [] },
    ...{ counts: { ...RUNNING.run.counts, items: 1, succeeded: 1, pending: 0 }, client: "claude-code" },
    status: "succeeded",
  };
  const made = await serveMadeRuns({ details: [{ ...RUNNING, run: saved, downloads: [], saved: SAVED }] });
  await onPage(`${made.url}/#/runs`, async (page) => {
    await page.getByText('"claude-code" · ').waitFor();
    await page.getByRole("link", { name: "Saved Spring to spring.xlsx" }).click();
    await page.getByText("Saved to /data/spring.xlsx").waitFor();
    const said = await page.locator("main").innerText();
    expect(said).toContain('by an agent on this computer (calls itself "claude-code")');
    expect(said).toContain(SAVED.says);
    expect(said).not.toContain("Failed");
    expect(said).not.toContain("Files");
  });
});

test("what needs attention names its file and causes, and can be dismissed", async () => {
  const run = { ...PARTIAL.run, fileName: "spring.yaml", updatedAt: Date.now() };
  const made = await serveMadeRuns({ details: [{ ...PARTIAL, run }] });
  await onPage(made.url, async (page) => {
    await page.getByText("spring.yaml: 2 of 6 changes failed").waitFor();
    await expect.poll(() => causesOn(page)).toEqual([["2", "the name is taken", "lines 3-4"]]);
    await page.getByRole("button", { name: "Dismiss" }).click();
    await page.getByText("Nothing failed in the last 24 hours.").waitFor();
    await page.reload();
    await page.getByText("Nothing failed in the last 24 hours.").waitFor();
  });
});

test("a run that gave up needs attention, and did not leave everything unsent", async () => {
  const { waiting: __, ...row } = WAITING.run;
  const counts = { ...PARTIAL.run.counts, items: 25, succeeded: 0, failed: 0, notApplied: 25 };
  const requests = { planned: 1, sent: 24, resent: 23, waitedMs: 120_000 };
  const run = { ...row, counts, requests, actions: [], fileName: "old.csv", updatedAt: Date.now() } as const;
  const made = await serveMadeRuns({ details: [WAITING] });
  await onPage(`${made.url}/#/approvals`, async (page) => {
    await button(page, "approve").waitFor();
    made.put({ ...run, status: "failed" });
    await page.locator(".decided").getByText("nothing was changed").waitFor();
    made.put({ ...run, status: "cancelled" });
    await page.locator(".decided").getByText("Cancelled", { exact: true }).waitFor();
    await page.locator(".decided").getByText("nothing was changed").waitFor();
    made.put({ ...run, status: "failed" });
    await page.goto(`${made.url}/#/overview`);
    await page.getByText("25 of 25 options not applied").waitFor();
    await page.locator(".item").getByText("Delete 25 options from Spring").waitFor();
  });
});

test("each run is of one kind, runs of one minute show their times, and the largest of today are a link away", async () => {
  const at = Date.now();
  const none = { ...RUNNING.run.counts, items: 3, succeeded: 3, pending: 0 };
  const row = { ...RUNNING.run, actions: [], startedAt: at, updatedAt: at, status: "succeeded" } as const;
  const lost = { ...none, succeeded: 1, failed: 0, unknown: 1, items: 2 };
  const reasons = [54, 1, 1, 1].map((count, nth) => {
    const one = { outcome: "failed", count, places: "line 1", remedy: "Rename it." } as const;
    return { ...one, examples: [], message: `reason ${nth}` };
  });
  const runs: readonly RunDetail[] = [
    {
      ...RUNNING,
      run: { ...row, runId: "01A", title: "Added 3", counts: none, did: { created: 3, changed: 0, deleted: 0 } },
    },
    { ...RUNNING, run: { ...row, runId: "01B", title: "Saved a file", tool: "list_options", counts: none } },
    {
      ...RUNNING,
      run: { ...row, runId: "01C", title: "Sent 1 of 2", tool: "track_events", status: "partial", counts: lost },
    },
    {
      ...{ ...RUNNING, failures: reasons },
      run: {
        ...row,
        runId: "01D",
        title: "Imported 4 of 61",
        fileName: "b.csv",
        counts: { ...none, items: 61, failed: 57 },
      },
    },
    { ...RUNNING, run: { ...row, runId: "01E", title: "Delete 4", status: "planned", counts: none } },
    { ...RUNNING, run: { ...row, runId: "01F", title: "Delete 5", status: "cancelled", counts: none } },
  ];
  const made = await serveMadeRuns({ details: runs });
  await onPage(made.url, async (page) => {
    await expect
      .poll(() => causesOn(page))
      .toEqual([54, 1, 1, 1].map((count, nth) => [String(count), `reason ${nth}`, "line 1"]));
    const today = page.getByText("Changes today").locator("..");
    await today.getByText("3 created").waitFor();
    // Each colour of a bar has its word.
    expect(await today.locator(".bar i").getAttribute("title")).toBe("3 created");
    expect(await today.locator(".legend .dot").getAttribute("class")).toBe("dot created");
    expect(await page.locator(".axis > span").count()).toBe(4);
    await page.getByRole("link", { name: "All 6 runs today" }).click();
    const kinds = page.getByRole("group", { name: "Kinds of runs" }).getByRole("button");
    const counts = ["All 6", "Changes 1", "Waiting 1", "Nothing changed 2", "Event runs 1", "Exports 1"];
    await expect.poll(() => kinds.allInnerTexts()).toEqual(counts);
    expect((await rowNames(page, "Runs"))[0]).toMatch(/(?:just now|\d+ s ago) · \d\d:\d\d:\d\d$/);
    await kinds.getByText("Exports").click();
    await expect.poll(async () => (await rowNames(page, "Runs")).length).toBe(1);
    await kinds.getByText("All").click();
    await page.getByRole("link", { name: "Sent 1 of 2" }).click();
    await page.getByRole("button", { name: "Unknown 1" }).waitFor();
    await page.getByRole("table", { name: "Unknown" }).waitFor();
    expect(await page.getByRole("button", { name: /^Failed/ }).count()).toBe(0);
  });
});

test("on a phone what was changed today is one tap from the top, and what waits stays first", async () => {
  const now = Date.now();
  const times = { startedAt: now, beganAt: now, updatedAt: now };
  const partial = Array.from({ length: 4 }, (_, at) => ({ ...PARTIAL.run, ...times, runId: `01PARTIAL${at}` }));
  const made = await serveMadeRuns({
    details: [WAITING, OTHER, ...partial.map((run) => ({ ...PARTIAL, run }))],
  });
  await onPage(made.url, async (page) => {
    const today = page.getByRole("button", { name: "Today" });
    await page.getByText("2 approvals are waiting").waitFor();
    expect(await today.isVisible()).toBe(false);
    await page.setViewportSize({ width: 390, height: 844 });
    const line = page.locator(".recent").getByText("8 options added");
    await line.waitFor();
    const yOf = async (one: Locator) => (await one.boundingBox())?.y ?? 0;
    expect(await yOf(line)).toBeGreaterThan(844);
    // The button is beside the heading, so nothing below it moves.
    const { y = 0, height = 0 } = (await page.getByRole("heading", { level: 1 }).boundingBox()) ?? {};
    expect(await yOf(today)).toBeGreaterThanOrEqual(y);
    expect(await yOf(page.locator(".waiting"))).toBeLessThan(y + height + 60);
    await today.click();
    const { y: end = 0, height: side = 0 } = (await page.locator(".side").boundingBox()) ?? {};
    await expect.poll(() => yOf(line)).toBeLessThan(844);
    expect(await yOf(page.getByRole("heading", { name: "Changed today" }))).toBeGreaterThanOrEqual(end + side);
  });
});

test("what is approved elsewhere says where, has no Approve, and goes when that ends", async () => {
  const run = { ...WAITING.run, actions: ["decline"], waiting: { ...WAITS, elsewhere: "token" } } as const;
  const made = await serveMadeRuns({ details: [{ ...WAITING, run }] });
  await onPage(`${made.url}/#/approvals`, async (page) => {
    await page.getByText("Approve this through the agent, which has a confirmation token for it.").waitFor();
    await page.getByText("Deletes 3 options of Spring").waitFor();
    expect(await button(page, "approve").count()).toBe(0);
    made.put({ ...ROW, status: "cancelled", actions: [] });
    await page.getByText("No run is waiting for a decision").waitFor();
    expect(await page.locator(".queue a").count()).toBe(0);
  });
});

test("nothing is decided on a page whose server has ended", async () => {
  const made = await serveMadeRuns({ details: [WAITING] });
  await onPage(
    `${made.url}/#/approvals`,
    async (page) => {
      const approve = button(page, "approve");
      await expect.poll(() => approve.isEnabled()).toBe(true);
      made.end();
      await page.getByText("The server of this page is no longer running.").waitFor();
      expect(await approve.isDisabled()).toBe(true);
      expect(await button(page, "decline").isDisabled()).toBe(true);
      await page.getByText("This page has lost its server, so nothing can be decided here.").waitFor();
      await page.getByRole("link", { name: "Overview", exact: true }).click();
      await page.getByRole("heading", { name: "The server has ended" }).waitFor();
      await page.getByText("To open the page without an agent, run targeting-mcp page.").waitFor();
      expect(
        await page
          .getByText(/approvals? (?:is|are) waiting/)
          .or(page.getByText("1 waiting"))
          .count(),
      ).toBe(0);
      expect(await findingsOfAxe(page)).toEqual([]);
    },
    { mayLog: /Failed to load resource/ },
  );
});

test("a stale run, and one whose server has ended, say so and cannot be approved", async () => {
  const made = await serveMadeRuns({ details: [STALE, ENDED] });
  await onPage(`${made.url}/#/approvals`, async (page) => {
    const reason = page.locator(".blocked");
    await reason.getByText("Changed since it was planned: ask the agent to plan it again.").waitFor();
    await reason.getByText("Sneakers: 12 Context IDs were planned for, 14 are there.").waitFor();
    await page.getByRole("heading", { level: 1, name: "Delete 25 options from Spring", exact: true }).waitFor();
    await page.locator(".queue").getByText("No run is waiting for a decision").waitFor();
    expect(await page.locator("nav .count").count()).toBe(0);
    expect(await page.getByText("if nobody decides").count()).toBe(0);
    const cannotApprove = async () => {
      expect(await button(page, "approve").isDisabled()).toBe(true);
      await expect.poll(() => button(page, "decline").isEnabled()).toBe(true);
    };
    await cannotApprove();
    await page.locator(".queue a").nth(1).click();
    await page.getByText("Nothing can execute this here: it is of another project").waitFor();
    await cannotApprove();
  });
});

test("runs are listed by day, narrowed and searched, and one is shown with its changes, problems and files", async () => {
  const made = await serveMadeRuns({
    details: ALL,
    changes: { "01PARTIAL": CHANGES },
    problems: { "01PARTIAL": PROBLEMS },
  });
  await onPage(`${made.url}/#/runs`, async (page) => {
    await expect.poll(async () => (await rowNames(page, "Runs")).length).toBe(5);
    const [waits = "", , , adds = "", applies = ""] = await rowNames(page, "Runs");
    expect(waits).toContain("Delete 25 options from Spring");
    expect(adds).toContain("Add 1,000 options to Spring");
    expect(applies).toContain("Applied spring.yaml to Spring: 2 options added, 3 options changed, 1 option deleted");
    await page.getByRole("searchbox").fill("spring.yaml");
    await expect.poll(async () => (await rowNames(page, "Runs")).length).toBe(1);
    await page.getByRole("searchbox").fill("");
    await page.getByRole("combobox", { name: "Status" }).selectOption("Running");
    await expect.poll(async () => (await rowNames(page, "Runs")).length).toBe(1);
    await page.getByText("400 of 1,000 options").waitFor();
    await page.getByRole("link", { name: /Add 1,000/ }).click();
    await button(page, "cancel").click();
    await page.getByText("The run is being cancelled.").waitFor();
    // The browser's clock stands still, so that the time left does not depend on the speed of this machine.
    const now = Date.parse("2026-08-01T12:00:00Z");
    await page.clock.setFixedTime(now);
    made.put({
      ...RUNNING.run,
      startedAt: now - 700_000,
      updatedAt: now,
      counts: { ...RUNNING.run.counts, succeeded: 700, pending: 300 },
    });
    await page.getByText("700 of 1,000 options").waitFor();
    await page.getByText("about 5 min 0 s left").waitFor();
    made.put({ ...RUNNING.run, updatedAt: 2, counts: { ...RUNNING.run.counts, succeeded: 1000, pending: 0 } });
    await page.getByText("1,000 of 1,000 options").waitFor();
    expect(await page.getByText(/about .* left/).count()).toBe(0);
    await page.getByRole("main").getByRole("link", { name: "Runs" }).click();
    await page.getByRole("combobox", { name: "Status" }).selectOption("All statuses");
    await page.getByRole("link", { name: /spring\.yaml/ }).click();
    // What the person still has to do comes first.
    await page.getByRole("table", { name: "Failed" }).waitFor();
    await page.getByRole("button", { name: "Changes 4" }).click();
    const table = page.getByRole("table", { name: "Changes" });
    await table.waitFor();
    expect((await table.locator("tbody tr").allInnerTexts()).map((row) => row.replaceAll(/\s+/g, " ").trim())).toEqual([
      "Clothing",
      `− deleted ${MARKUP} 2 Context IDs: category-jeans, denim`,
      "→ moved in Shoes / Boots in Clothing / Boots",
      "+ new Dresses 1 Context ID: category-dresses",
      "Top level",
      "~ changed Bags Bags and Backpacks",
      "~ changed Gift Cards Gift Cards +7 Context IDs: page-gifts and 6 more",
      "⋯ unchanged: 5 options and groups",
    ]);
    expect(await table.locator("ins").allInnerTexts()).toEqual(["Clothing", "Dresses", "and Backpacks", "page-gifts"]);
    const text = await page.locator("main").innerText();
    expect(text).toMatch(/Can be undone until .+\. Undo restores 3 of 4 as they were and 1 under a new ID\./);
    expect(text).toContain("No server could drive it.");
    const cause = page.locator(".reasons li");
    const shown = ["2", "the name is taken", "lines 3-4", "Choose another name."];
    expect((await cause.innerText()).split(/\s*\n\s*/)).toEqual(shown);
    await cause.getByText("lines 3-4", { exact: true }).click();
    await cause.getByText("bad_3, …").waitFor();
    await page.getByRole("button", { name: "Failed 2" }).click();
    const problems = page.getByRole("table", { name: "Failed" });
    await problems.waitFor();
    expect(await problems.getByRole("columnheader").allInnerTexts()).toEqual([
      "Line",
      "Name or value",
      "Problem",
      "Suggestion",
    ]);
    expect(await rowNames(page, "Failed")).toEqual(["line 3", "line 4"]);
    await page.getByRole("button", { name: "Changed by others 2" }).click();
    await page.getByText("Hats has changed since the file was saved").waitFor();
    expect(await rowNames(page, "Conflicts")).toEqual(["Jeans"]);
    await page.getByRole("button", { name: "Files 3" }).click();
    for (const [name, file] of [
      ["Results as data (NDJSON)", "results"],
      ["Failed rows", "rejects"],
      ["What was removed", "removed"],
    ] as const) {
      const path = `**/page/runs/01PARTIAL/${file}`;
      await page.route(path, (route) => route.fulfill({ body: "" }));
      await Promise.all([page.waitForRequest(path), page.getByRole("button", { name, exact: true }).click()]);
    }
    expect(await button(page, "resume").isDisabled()).toBe(true);
    await expect.poll(() => button(page, "undo").getAttribute("aria-disabled")).toBe("false");
    await button(page, "undo").click();
    await expect.poll(() => made.asked.at(-1)).toBe("/page/runs/01PARTIAL/undo {}");
  });
});

test("on a phone the causes of failed rows are on the first screen with their rows, and one that is opened shows all", async () => {
  const reasons = [45, 15, 12, 6].map((count, nth) => ({
    ...{ outcome: "failed" as const, count, cause: `cause ${nth}` },
    places: `lines ${Array.from({ length: count }, (_, at) => 5 + nth + 16 * at).join(", ")}`,
    ...{ examples: [`a name that is too long ${nth}`], areAll: nth === 3, message: "not allowed in a name" },
    remedy: `Allowed: 2 to 36 characters, ${nth}.`,
  }));
  const lines = reasons.map(({ count, cause, places }) => [String(count), cause, places]);
  const counts = { ...PARTIAL.run.counts, items: 390, succeeded: 312, failed: 78 };
  const row = { noun: "row", fileName: "brands.csv", title: "Imported brands.csv into Spring Brands: 312 of 390 rows" };
  const run: RunRow = { ...PARTIAL.run, ...row, counts, tool: "bulk_add_options", updatedAt: Date.now() };
  const made = await serveMadeRuns({ details: [{ ...PARTIAL, run, failures: reasons, downloads: ["sheet"] }] });
  await onPage(made.url, async (page) => {
    await page.setViewportSize({ width: 390, height: 844 });
    // The overview shows the same groups of failures, and cuts no number in the middle.
    await page.getByText("brands.csv: 78 of 390 rows failed").waitFor();
    await expect.poll(() => causesOn(page)).toEqual(lines);
    expect(await cutsOn(page)).toEqual([true, false, false, false]);
    await page.getByRole("link", { name: "Show rows" }).click();
    const box = page.getByRole("region", { name: "78 rows failed" });
    await box.getByRole("heading", { name: "78 rows failed" }).waitFor();
    expect(await causesOn(page)).toEqual(lines.map((line, at) => [...line, reasons[at]?.remedy]));
    for (const { remedy } of reasons) expect(await box.getByText(remedy, { exact: true }).isVisible()).toBe(true);
    expect(await cutsOn(page)).toEqual([true, false, false, false]);
    for (const name of ["Download the sheet with results", "Copy for your agent"]) {
      const { y = 844, height = 0 } = (await box.getByRole("button", { name }).boundingBox()) ?? {};
      expect([name, y + height <= 844]).toEqual([name, true]);
    }
    const above = ((await page.locator("main").innerText()).split("78 rows failed")[0] ?? "").replaceAll(/\s+/g, " ");
    expect(above).toMatch(/312 of 390 rows Partly done/);
    expect(above).not.toContain("changes");
    // An opened group shows all its rows, its first values, and whether there are more wrong values.
    for (const [at, more] of [
      [0, ", …"],
      [3, ""],
    ] as const) {
      const { cause = "", examples = [], message, remedy } = reasons[at] ?? {};
      await box.getByText(cause, { exact: true }).click();
      const opened = await box.getByRole("listitem").nth(at).locator("p").innerText();
      expect(opened).toBe(`${examples[0]}${more}\n${message}`);
      expect(await box.getByText(remedy ?? "", { exact: true }).isVisible()).toBe(true);
    }
    expect(await cutsOn(page)).toEqual([false, false, false, false]);
  });
});

test("the count of a reason is on one line, however large it is", async () => {
  const [failure] = PARTIAL.failures;
  const failures = failure === undefined ? [] : [{ ...failure, count: 14_000 }];
  const counts = { ...PARTIAL.run.counts, items: 15_000, succeeded: 1000, failed: 14_000 };
  const made = await serveMadeRuns({ details: [{ ...PARTIAL, run: { ...PARTIAL.run, counts }, failures }] });
  await onPage(`${made.url}/#/runs/01PARTIAL`, async (page) => {
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 844 });
      await page.locator(".reasons summary").getByText("14,000", { exact: true }).waitFor();
      expect([width, await page.evaluate(linesOf("14,000"))]).toEqual([width, 1]);
    }
  });
});

test("the reasons after the sixth are shown in place, and events that were held back were not sent", async () => {
  const failures = Array.from({ length: 7 }, (_, nth) => {
    const one = { outcome: "failed", count: 1, places: `item ${nth + 1}`, examples: [], isHeldBack: true } as const;
    return { ...one, message: `reason ${nth}`, remedy: `Remedy ${nth}.` };
  });
  const counts = { ...PARTIAL.run.counts, items: 9, succeeded: 2, failed: 7 };
  const run: RunRow = { ...PARTIAL.run, counts, noun: "event", tool: "track_events", updatedAt: Date.now() };
  const smaller = { ...run, runId: "01SMALLER", counts: { ...counts, failed: 4 } };
  const made = await serveMadeRuns({
    details: [
      { ...PARTIAL, run, failures },
      { ...PARTIAL, run: smaller, failures: failures.slice(0, 4) },
    ],
  });
  await onPage(made.url, async (page) => {
    await page.getByText("7 of 9 events not sent").waitFor();
    await page.getByText("reason 5").waitFor();
    expect(await page.getByText("reason 6").count()).toBe(0);
    await page.getByText("1 more for 1 other reason").waitFor();
    // A run with fewer failures shows its first two reasons.
    await page.getByText("2 more for 2 other reasons · ").waitFor();
    // The number of sent requests can be seen from that, so it is not shown.
    expect(await page.locator(".item").getByText("Applied spring.yaml").count()).toBe(0);
    await page.getByRole("link", { name: "Show", exact: true }).first().click();
    const box = page.getByRole("region", { name: "7 events not sent" });
    expect(await box.getByText("reason 6").count()).toBe(0);
    await box.getByRole("button", { name: "Show 1 more reason (1 event)" }).click();
    await box.getByText("reason 6").click();
    await box.getByText("Remedy 6.").waitFor();
  });
});

test("the largest run with failures shows its first six reasons, also below a larger run with unknown results", async () => {
  const failures = Array.from({ length: 7 }, (_, nth) => {
    const one = { outcome: "failed", count: 9, places: `lines ${nth}`, examples: [] } as const;
    return { ...one, message: `reason ${nth}`, remedy: "" };
  });
  const [run, now] = [PARTIAL.run, Date.now()];
  const ofRows = { counts: { ...run.counts, items: 390, failed: 63 }, updatedAt: now };
  const unknown = { counts: { ...run.counts, items: 9000, failed: 0, unknown: 4000 }, updatedAt: now };
  const made = await serveMadeRuns({
    details: [
      { ...PARTIAL, run: { ...run, ...ofRows }, failures },
      { ...PARTIAL, run: { ...run, ...unknown, runId: "01UNKNOWN" }, failures: [] },
    ],
  });
  await onPage(made.url, async (page) => {
    await page.getByText("The result of 4,000 changes is unknown").waitFor();
    await page.getByText("reason 1").waitFor();
    expect(await page.getByText(/^reason \d$/).allInnerTexts()).toHaveLength(6);
  });
});

test("an approval whose run failed says why", async () => {
  const failures = ["the targeting is in use", "another reason"].map((message) => {
    const one = { outcome: "failed", count: 1, places: "item 1", examples: [] } as const;
    return { ...one, message, remedy: "End the campaign." };
  });
  const { client: _client, ...asked } = WAITING.run;
  const made = await serveMadeRuns({ details: [{ ...WAITING, failures, run: { ...asked, caller: "local" } }] });
  await onPage(`${made.url}/#/approvals`, async (page) => {
    await button(page, "approve").waitFor();
    const counts = { ...PARTIAL.run.counts, items: 2, succeeded: 0, failed: 2 };
    const { waiting: _waiting, ...row } = asked;
    made.put({ ...row, caller: "local", status: "failed", actions: [], counts });
    await page.getByText("the targeting is in use").waitFor();
    // The run was started on the page, not by a client.
    expect(await page.locator("main").innerText()).toContain("Requested by someone on this computer");
    await page.getByRole("link", { name: "and 1 more reason" }).waitFor();
  });
});

test("a reason with more rows than it can name says how many more, on the page and in the copy for the agent", async () => {
  const places = `lines ${Array.from({ length: 60 }, (_, at) => 12_000 + 3 * at).join(", ")} and 12 more`;
  const [failure] = PARTIAL.failures;
  const failures = failure === undefined ? [] : [{ ...failure, count: 72, places }];
  const counts = { ...PARTIAL.run.counts, items: 390, succeeded: 318, failed: 72 };
  const made = await serveMadeRuns({ details: [{ ...PARTIAL, run: { ...PARTIAL.run, counts }, failures }] });
  await onPage(`${made.url}/#/runs/01PARTIAL`, async (page) => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.locator(".reasons summary").click();
    await page.getByText(places).waitFor();
    await page.getByRole("button", { name: "Copy for your agent" }).click();
    await page.getByText("Copied.").waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toContain(`- 72 failed (${places}): `);
  });
});

test("what failed is copied for the agent, with its places and the call that shows its rows", async () => {
  const reading = ["the column Note was ignored"];
  const made = await serveMadeRuns({ details: [{ ...PARTIAL, reading }] });
  await onPage(`${made.url}/#/runs/01PARTIAL`, async (page) => {
    await page.getByText("How the file was read").waitFor();
    await page.getByText("The column Note was ignored").waitFor();
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy for your agent" }).click();
    await page.getByText("Copied.").waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(
      [
        "In run 01PARTIAL (apply_plan), these did not succeed:",
        "- 2 failed (lines 3-4): the name is taken. Choose another name.",
        'Their input: get_run {"runId":"01PARTIAL","outcome":"failed","includeInput":true}',
        "Fix the failed ones, and send only these again.",
      ].join("\n"),
    );
  });
});

test("the overview says first what waits, then what failed and what happened", async () => {
  const now = Date.now();
  const recent = { ...PARTIAL.run, startedAt: now, updatedAt: now, client: "Cursor" };
  const made = await serveMadeRuns({ details: [WAITING, { ...PARTIAL, run: recent }] });
  await onPage(made.url, async (page) => {
    await page.getByRole("heading", { name: "1 approval is waiting" }).waitFor();
    await page.getByText("2 of 6 changes failed").waitFor();
    const said = (await page.locator("main").innerText()).replaceAll(/\s+/g, " ");
    expect(said).toContain("1 option deleted · just now");
    expect(said).toContain("2 created 1 changed 1 deleted");
    expect(said).toContain("1 partly done");
    await page.getByRole("img", { name: /^Changes in each of the last 24 hours: 4, all at/ }).waitFor();
    await page.getByRole("link", { name: "Show", exact: true }).click();
    await page.getByRole("heading", { name: /^Applied spring/ }).waitFor();
    await page.goBack();
    await page.getByRole("link", { name: "Review" }).click();
    await page.getByRole("heading", { name: "Delete 25 options from Spring?" }).waitFor();
  });
});

test("needs attention lists the largest problems first, and those that are not listed are one press away", async () => {
  const now = Date.now();
  const failing = Array.from({ length: 6 }, (_, at) => {
    const counts = { ...PARTIAL.run.counts, items: 100, failed: 10 + at };
    const run = { ...PARTIAL.run, runId: `01FAILED${at}`, startedAt: now, updatedAt: now, counts, noun: "event" };
    return { ...PARTIAL, run };
  });
  const made = await serveMadeRuns({ details: failing });
  await onPage(made.url, async (page) => {
    const titles = page.getByText(/^\d+ of 100 events failed$/);
    const shown = async () => (await titles.allInnerTexts()).map((text) => Number.parseInt(text, 10));
    await expect.poll(shown).toEqual([15, 14, 13, 12]);
    await page.getByRole("heading", { name: "Needs attention 6" }).waitFor();
    await page.getByRole("button", { name: "Show 2 more" }).click();
    await expect.poll(shown).toEqual([15, 14, 13, 12, 11, 10]);
    await page.getByRole("button", { name: "Show fewer" }).click();
    await expect.poll(shown).toHaveLength(4);
  });
});

test("today's changes are summed by targeting and kind, and what was undone is not among them", async () => {
  const now = Date.now();
  const did = (created: number, changed = 0, deleted = 0) => ({ created, changed, deleted });
  const { targeting: _targeting, ...whole } = PARTIAL.run;
  const done = { status: "succeeded", startedAt: now, updatedAt: now } as const;
  const how = { renamed: 0, moved: 0, exposed: 0, added: 0, removed: 0 };
  const part = { ...PARTIAL.run, startedAt: now, updatedAt: now, counts: { ...PARTIAL.run.counts, failed: 58 } };
  const fall = { _id: "01F", name: "Fall" };
  // The run ended yesterday, but was undone today.
  const past = { startedAt: now - 86_400_000 };
  const runs: readonly RunRow[] = [
    { ...PARTIAL.run, ...done, runId: "01UNDO", isUndo: true, did: did(1), title: 'Undid "Deleted Bags from Spring"' },
    {
      ...{ ...PARTIAL.run, ...done, runId: "01ADD", did: did(3), title: "Added 3 options to Spring" },
      ...{ client: "claude-code", names: { created: ["Hats", "Bags"] } },
    },
    {
      ...{ ...PARTIAL.run, ...done, runId: "01IDS", did: did(0, 9), names: { changed: ["Boots"] } },
      how: { ...how, added: 60, extended: 9, renamed: 8 },
    },
    {
      ...PARTIAL.run,
      ...done,
      runId: "01REN",
      did: did(0, 3),
      title: "Renamed 3 options in Spring",
      ...{ undoneBy: "01BACK", startedAt: now - 4000, endedAt: now - 2000 },
    },
    { ...PARTIAL.run, ...done, runId: "01BACK", isUndo: true, did: did(0, 3), title: 'Undid "Renamed 3 options"' },
    { ...PARTIAL.run, ...done, runId: "01CUT", did: did(0, 2, 4), how: { ...how, removed: 1, moved: 1, into: "Sale" } },
    { ...PARTIAL.run, ...done, runId: "01OLD", did: did(0, 5), title: "Applied a plan to Spring", has: "groups" },
    { ...PARTIAL.run, ...done, runId: "01FALL", did: did(2), targeting: fall, title: "Added 2 options to Fall" },
    {
      ...part,
      runId: "01PART",
      did: did(1),
      targeting: { _id: "01W", name: "Winter" },
      title: "Imported a.csv: 1 of 59",
    },
    { ...whole, ...done, runId: "01MADE", did: did(6), title: "Created 4 targetings and their 2 options" },
    { ...whole, ...done, runId: "01NAME", did: did(0, 1), title: "Renamed Fall to Autumn" },
    { ...whole, ...done, runId: "01GONE", did: did(0, 0, 2), title: "Deleted 2 targetings" },
    { ...whole, ...done, runId: "01MANY", did: did(0, 1), title: "Renamed Hats" },
    { ...whole, ...done, runId: "01NONE", did: did(0), title: "Changed nothing" },
    { ...whole, ...done, runId: "01LATE", did: did(1), title: "Added an option", startedAt: now - 1, beganAt: now + 1 },
    { ...whole, ...done, runId: "01PAST", did: did(1), title: "Added the day before", ...past },
  ];
  const made = await serveMadeRuns({ details: runs.map((run) => ({ ...PARTIAL, run, failures: [] })) });
  await onPage(made.url, async (page) => {
    const figure = page.locator(".figure", { hasText: "Changes today" });
    await expect
      .poll(async () => (await figure.innerText()).replaceAll(/\s+/g, " "))
      .toContain("13 created 1 restored 18 changed 6 deleted 3 undone");
    const today = page.locator(".recent");
    const lines = (await today.innerText()).split("\n").filter((line) => line !== "");
    expect(lines).toEqual([
      ...["Changed today", "Added an option · this computer"],
      ...['Spring · this computer · "claude-code"', "3 options added", "4 options deleted", "8 options renamed"],
      ...["1 option moved to Sale", "+60 Context IDs", "−1 Context ID", "5 options and groups changed"],
      'Undid "Deleted Bags"',
      ...[
        "Fall: 2 options added · this computer",
        "Winter: 1 option added, 58 changes failed · this computer",
        "Created 4 targetings and their 2 options · this computer",
        "Renamed Fall to Autumn · this computer",
      ],
      ...["Deleted 2 targetings · this computer", "Renamed Hats · this computer"],
      "All 15 runs today",
    ]);
    await today.getByRole("link", { name: "All 15 runs today" }).click();
    await page.getByRole("heading", { name: "Runs: Today" }).waitFor();
    await page.getByRole("button", { name: "All 15" }).waitFor();
    expect(await page.getByText("Added the day before").count()).toBe(0);
    const first = page.getByRole("table", { name: "Runs" }).getByRole("rowheader").first();
    expect(await first.innerText()).toContain("Added an option");
    await page.getByRole("link", { name: "All runs" }).click();
    await page.getByText("Added the day before").waitFor();
    const undone = page.getByRole("row", { name: /^Renamed 3 options in Spring/ });
    expect(await undone.getByRole("cell").allInnerTexts()).toEqual(["Undone", expect.anything(), "2.0 s"]);
    await undone.getByRole("link").click();
    await page.getByText("Undone", { exact: true }).waitFor();
    await page.getByText("took 2.0 s").waitFor();
    await page.goto(`${made.url}/#/runs/01UNDO`);
    await page.locator(".result").getByText("+1 restored").waitFor();
  });
});

test("on a phone what needs attention is above what was changed today, and runs beyond eight lines are a press away", async () => {
  const now = Date.now();
  const runs = Array.from({ length: 10 }, (_, at): readonly RunRow[] => {
    const one = { ...PARTIAL.run, startedAt: now - at, updatedAt: now, targeting: { _id: `01T${at}`, name: `T${at}` } };
    const row = { ...one, runId: `01R${at}`, title: `Added ${at} options to T${at}`, did: PARTIAL.run.did };
    return at < 9 ? [row] : [row, { ...row, runId: "01R10" }];
  }).flat();
  const made = await serveMadeRuns({ details: runs.map((run) => ({ ...PARTIAL, run })) });
  await onPage(made.url, async (page) => {
    await page.setViewportSize({ width: 390, height: 844 });
    const today = page.locator(".recent");
    await today.getByText("T7", { exact: true }).waitFor();
    expect(await today.getByText("T8").count()).toBe(0);
    const top = async (name: string | RegExp) =>
      (await page.getByRole("heading", { name }).boundingBox())?.y ?? Number.NaN;
    expect(await top(/^Needs attention/)).toBeLessThan(await top("Changed today"));
    await today.getByRole("link", { name: "and 3 more runs with changes" }).click();
    await page.getByRole("heading", { name: "Runs: Today" }).waitFor();
  });
});

test("on a phone a deletion says above its buttons what goes, what stays, and what an undo restores", async () => {
  const phone = { width: 390, height: 844 };
  const undo = (first: string) => ({
    title: "It can be undone for 30 days, with new IDs",
    notes: [first, "Campaigns and ad products that use the old IDs stay disconnected."],
  });
  const counts = { created: 0, changed: 0, deleted: 2 };
  const consequence = "4 sub-options stay, with their Context IDs: they move to the top level.";
  const back = "Names, groups and Context IDs come back.";
  const group = {
    ...{
      ...WAITS,
      act: "Delete 1 group and 1 option",
      counts,
      contextIds: 3,
      consequence,
      check: CHECK,
      effect: "",
      undo: undo(back),
    },
    magnitude: { count: 2, whole: 11, verb: "deleted", what: "1 group and 1 option" } as const,
  };
  const its = "The targeting, its 315 options and its Context IDs come back.";
  const targeting = {
    ...{ ...WAITS, act: "Delete the targeting", counts, contextIds: 630, effect: "", typed: "Spring", undo: undo(its) },
    magnitude: { count: 315, verb: "deleted", what: "1 targeting and 315 options" } as const,
  };
  const long = "봄세일".repeat(12);
  for (const [title, waiting, words] of [
    [
      "Delete group Clothing and option Bags from Spring",
      group,
      ["18 % of 11 options and groups", consequence, "Removes 3 Context IDs", CHECK, back],
    ],
    [`Delete group ${long} and option ${long} from Spring`, group, [consequence, group.undo.title]],
    ["Delete the targeting Spring and its 315 options", targeting, ["Removes 630 Context IDs", its]],
  ] as const) {
    const made = await serveMadeRuns({ details: [{ ...WAITING, run: { ...WAITING.run, title, waiting } }] });
    await onPage(`${made.url}/#/approvals/01WAITING`, async (page) => {
      await page.setViewportSize(phone);
      await page.getByRole("cell", { name: "Sneakers" }).waitFor();
      const { y: end = 0 } = (await page.locator(".foot").boundingBox()) ?? {};
      const seen = [
        page.getByRole("heading", { level: 1, name: `${title}?` }),
        page.getByText("It can be undone for 30 days, with new IDs", { exact: true }),
        ...words.map((text) => page.locator(".summary").getByText(text)),
      ];
      for (const one of seen) {
        const { y = end, height = 0 } = (await one.boundingBox()) ?? {};
        expect([await one.innerText(), y + height <= end]).toEqual([await one.innerText(), true]);
      }
    });
  }
});

test("on a phone the first names of a large deletion are above its buttons, and the search is below them", async () => {
  const waiting = {
    ...{ ...WAITS, effect: "", typed: "Spring", contextIds: 520 },
    magnitude: { count: 260, whole: 3000, verb: "deleted", what: "260 options" } as const,
    undo: { title: "It can be undone for 30 days, with new IDs", notes: ["Each restored option gets a new ID."] },
  };
  const made = await serveMadeRuns({ details: [{ ...WAITING, run: { ...WAITING.run, waiting } }] });
  await onPage(`${made.url}/#/approvals/01WAITING`, async (page) => {
    await page.setViewportSize({ width: 390, height: 844 });
    const name = page.getByRole("cell", { name: "Sneakers" });
    await name.waitFor();
    const [row, foot, search] = await Promise.all(
      [name, page.locator(".foot"), page.getByRole("searchbox")].map((one) => one.boundingBox()),
    );
    expect((row?.y ?? 0) + (row?.height ?? 0)).toBeLessThan(foot?.y ?? 0);
    expect(search?.y).toBeGreaterThan(row?.y ?? 0);
  });
});

/** Returns the contrast between an element's border and the page behind it. */
const borderContrast = (selector: string) => `{
  const luminance = (colour) => {
    const context = document.createElement("canvas").getContext("2d");
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const style = getComputedStyle(document.querySelector("${selector}"));
  const [one, other] = [style.borderTopColor, getComputedStyle(document.body).backgroundColor].map(luminance);
  style.opacity === "1" ? (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05) : 0;
}`;

test.each(SCHEMES)(
  "Decline and Undo do not look disabled, from the moment that they appear, %s",
  async (colorScheme) => {
    const made = await serveMadeRuns({ details: [WAITING, PARTIAL] });
    const open = async (address: string, action: "decline" | "undo") =>
      onPage(
        `${made.url}/#/${address}`,
        async (page) => {
          await button(page, action).waitFor();
          expect(Number(await page.evaluate(borderContrast(`[data-action=${action}]`)))).toBeGreaterThan(3);
        },
        { colorScheme },
      );
    await open("approvals/01WAITING", "decline");
    await open("runs/01PARTIAL", "undo");
  },
);

test.each(SCHEMES)("axe-core finds nothing in any view, and no view is wider than a phone, %s", async (colorScheme) => {
  const made = await serveMadeRuns({
    details: ALL,
    changes: { "01PARTIAL": CHANGES },
    problems: { "01PARTIAL": PROBLEMS },
  });
  await onPage(
    made.url,
    async (page) => {
      const views: readonly (readonly [address: string, words: string, opened?: string])[] = [
        ["#/", "Needs attention"],
        ["#/approvals", "Sneakers"],
        ["#/approvals/01STALE", "Changed since it was planned"],
        ["#/runs", "Took"],
        ["#/runs/01RUNNING", "Running"],
        ["#/runs/01PARTIAL", "bad_3", ".reasons summary"],
        ["#/runs/01PARTIAL", "Dresses", "button:has-text('Changes')"],
      ];
      for (const [address, words, opened] of views) {
        await page.setViewportSize({ width: 1280, height: 800 });
        await page.goto(`${made.url}/${address}`);
        if (opened !== undefined) await page.locator(opened).click();
        await page.locator("main").getByText(words).first().waitFor();
        expect([address, await findingsOfAxe(page)]).toEqual([address, []]);
        await page.setViewportSize({ width: 390, height: 844 });
        expect([address, await page.evaluate("document.documentElement.scrollWidth")]).toEqual([address, 390]);
        expect([address, await findingsOfAxe(page)]).toEqual([address, []]);
      }
    },
    { colorScheme },
  );
});

test("on a phone no word is taken apart", async () => {
  const made = await serveMadeRuns({ details: ALL, problems: { "01PARTIAL": PROBLEMS } });
  await onPage(made.url, async (page) => {
    await page.setViewportSize({ width: 390, height: 844 });
    for (const [address, words] of [
      ["#/runs", ["Running", "Waiting for approval", "Partly done", "Spring"]],
      ["#/runs/01PARTIAL", ["Failed 2", "2 changes failed", "Technical details"]],
    ] as const) {
      await page.goto(`${made.url}/${address}`);
      for (const text of words) {
        await page.locator("main :not(option)").getByText(text, { exact: true }).last().waitFor();
        expect([text, await page.evaluate(linesOf(text))]).toEqual([text, 1]);
      }
    }
  });
});

test("a run that is done in part is red where something failed, and amber where a result is unknown", async () => {
  const counts = { ...PARTIAL.run.counts, failed: 0, unknown: 2 };
  const unknown = { ...PARTIAL, run: { ...PARTIAL.run, counts } };
  for (const [details, tone, words] of [
    [PARTIAL, "bad", "Partly done"],
    [unknown, "warn", "Partly unknown"],
  ] as const) {
    const made = await serveMadeRuns({ details: [{ ...details, story: [{ title: "Planned", tone: "good" }] }] });
    await onPage(`${made.url}/#/runs/01PARTIAL`, async (page) => {
      await page.locator(`main .pill.${tone}`).getByText(words, { exact: true }).waitFor({ timeout: 5000 });
      const steps = page.getByRole("list", { name: "What happened" }).getByRole("listitem");
      expect((await steps.allInnerTexts()).map((text) => text.split("\n")[0])).toEqual(["Planned", words]);
      await steps.last().getByText("4 of 6 changes").waitFor();
      expect(await steps.last().locator(`.dot.${tone}`).count()).toBe(1);
    });
  }
});

/** Returns the colours of the dots for all kinds of state. */
const DOTS = `["good", "created", "changed", "deleted", "bad", "warn", "unknown", "idle"].map((tone) => {
  const dot = document.createElement("i");
  dot.className = "dot " + tone;
  document.querySelector("main").append(dot);
  return getComputedStyle(dot).color;
})`;

test.each(SCHEMES)("each colour has one meaning, and a dot says in words what it means, %s", async (colorScheme) => {
  const now = Date.now();
  const details = ALL.map((one) => ({ ...one, run: { ...one.run, startedAt: now } }));
  const made = await serveMadeRuns({ details });
  const check = async (page: Page): Promise<void> => {
    await page.getByRole("heading", { name: "1 approval is waiting" }).waitFor();
    const dots = page.locator("main .dot[title]");
    await expect
      .poll(async () => [
        ...new Set(await dots.evaluateAll((all) => all.map((dot) => `${dot.className}: ${dot.title}`))),
      ])
      .toEqual(["dot warn: Waiting for approval", "dot warn: Running", "dot bad: Partly done"]);
    const [good, created, changed, deleted, bad, warn, unknown, idle] = z
      .array(z.string())
      .parse(await page.evaluate(DOTS));
    expect([created, unknown, changed]).toEqual([good, warn, warn]);
    expect(new Set([good, deleted, bad, warn, idle]).size).toBe(5);
  };
  await onPage(`${made.url}/#/overview`, check, { colorScheme });
});

test("an approval says which part comes back under new IDs, and each fact once", async () => {
  const notes = ["This can be undone for 30 days.", "What is deleted gets new IDs."];
  const magnitude = { count: 25, whole: 100, verb: "deleted", what: "25 options" } as const;
  const waiting = { ...WAITS, magnitude, contextIds: 14, effect: "" };
  const counts = { created: 1, changed: 3, deleted: 1 };
  const plan = { ...waiting, counts, magnitude: { ...magnitude, count: 1, what: "1 option" } };
  for (const [row, size, words] of [
    [
      { ...waiting, counts: { created: 0, changed: 0, deleted: 25 } },
      "Deletes 25 % of 100 options and groups",
      "It can be undone for 30 days, with new IDs",
    ],
    [
      plan,
      "+1 new ~3 to change −1 to delete Deletes 1 of the 100 options and groups (1 %)",
      "Undo restores 4 of 5 as they were and 1 under a new ID",
    ],
  ] as const) {
    const made = await serveMadeRuns({
      details: [{ ...WAITING, run: { ...WAITING.run, waiting: { ...row, undo: { title: words, notes } } } }],
    });
    await onPage(`${made.url}/#/approvals`, async (page) => {
      await page.getByText(words, { exact: true }).waitFor();
      await page.getByText("being read").waitFor({ state: "detached" });
      const summary = await page.locator(".summary").innerText();
      const all = `Removes 14 Context IDs ${words} ${notes.join(" ")}`;
      // How large the change is comes first, in letters of the same size as the others.
      const [facts] = summary.replaceAll(/\s+/g, " ").split(" Requested by ");
      expect(facts).toBe(`${size} ${all}`);
      if (row !== plan)
        expect(await page.locator(".summary > .line.deleted:not(.small)").first().innerText()).toBe(size);
      expect((await page.locator("main").innerText()).match(/Removes 14 Context IDs/g)).toHaveLength(1);
    });
  }
});

test("on a phone the navigation is one line with the shown view in sight, and at 200 % nothing is lost", async () => {
  const made = await serveMadeRuns({ details: ALL });
  await onPage(made.url, async (page) => {
    await page.setViewportSize({ width: 200, height: 844 });
    const links = page.getByRole("navigation", { name: "Views" }).getByRole("link");
    for (const name of ["Overview", "Runs"]) {
      await links.filter({ hasText: name }).click();
      const boxes = await Promise.all((await links.all()).map((link) => link.boundingBox()));
      expect(new Set(boxes.map((box) => box?.y)).size).toBe(1);
      const { x = -1, width = 0 } = (await page.locator("nav [aria-current]").boundingBox()) ?? {};
      expect(x).toBeGreaterThanOrEqual(0);
      expect(x + width).toBeLessThanOrEqual(200);
    }
    // Like a window of 1,440 by 900 pixels with a zoom of 200 %.
    await page.setViewportSize({ width: 720, height: 450 });
    for (const view of ["overview", "approvals/01WAITING", "runs", "runs/01PARTIAL"]) {
      await page.goto(`${made.url}/#/${view}`);
      await page.locator("main h1:visible").waitFor();
      expect([view, await page.evaluate("document.documentElement.scrollWidth")]).toEqual([view, 720]);
    }
    await page.goto(`${made.url}/#/approvals/01WAITING`);
    await button(page, "approve").waitFor();
    const { height = 0 } = (await page.locator(".foot").boundingBox()) ?? {};
    expect(height).toBeLessThan(120);
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

test("an approval that was decided before the page was loaded shows its outcome, and offers Undo", async () => {
  const made = await serveMadeRuns({ details: [WAITING, PARTIAL] });
  await onPage(`${made.url}/#/approvals/01PARTIAL`, async (page) => {
    await page.getByRole("heading", { name: "Applied spring.yaml to Spring" }).waitFor();
    await page.getByText("Approved on the page by ann").waitFor();
    await button(page, "undo").waitFor();
    expect(await button(page, "approve").count()).toBe(0);
  });
});

test("an approval that expired says so, with the changes that were not sent", async () => {
  const row = { ...ROW, status: "cancelled", actions: [], isExpired: true, decided: "Nobody decided in time" } as const;
  const rows = ["Sneakers", "Boots"].map((name) => ({ kind: "deleted", before: { name } }) as const);
  const changes = { rows, total: 25, counts: { created: 0, changed: 0, deleted: 25 } };
  const made = await serveMadeRuns({ details: [{ ...WAITING, run: row, changes }] });
  await onPage(`${made.url}/#/approvals/01WAITING`, async (page) => {
    const box = page.locator(".decided");
    await box.getByText("Expired", { exact: true }).waitFor();
    await box.getByText("Nobody decided in time: nothing was sent").waitFor();
    await page.getByText("What was not applied").click();
    const names = page.locator("details").filter({ hasText: "What was not applied" }).getByRole("listitem");
    await expect.poll(() => names.allInnerTexts()).toEqual(["− Sneakers", "− Boots", "and 23 more"]);
    await page.getByRole("link", { name: "Show the run" }).click();
    await page
      .getByRole("list", { name: "What happened" })
      .getByText("Expired")
      .or(page.locator(".pill").getByText("Expired"))
      .first()
      .waitFor();
    expect(await page.getByText("Cancelled").count()).toBe(0);
  });
});

test("on a phone each failed row has its suggestion, and a renamed targeting its old name", async () => {
  const suggestion = "Use each name once.";
  const rows = [302, 316].map((line) => ({
    ...{ outcome: "failed" as const, place: `line ${line}`, value: "Boots" },
    ...{ problem: `same name as line ${line - 4}`, suggestion },
  }));
  const failures = [
    {
      ...{ outcome: "failed" as const, count: 2, places: "lines 302, 316", examples: ["Boots"] },
      ...{ message: "same name as an earlier one", cause: "name used twice: line 302 = 298, line 316 = 312" },
      remedy: suggestion,
    },
  ];
  const at = { startedAt: Date.now(), updatedAt: Date.now() };
  const title = "Renamed Summer to Fall";
  const did = { created: 0, changed: 1, deleted: 0 };
  const all = { ...PARTIAL.run.counts, items: 1, succeeded: 1, failed: 0 };
  const renamed: RunRow = {
    ...{ ...PARTIAL.run, ...at, runId: "01NAMED", title, did, tool: "rename_targetings", has: "targetings" },
    ...{ status: "succeeded", targeting: { _id: "01F", name: "Fall" }, counts: all },
  };
  const details = [
    { ...PARTIAL, failures },
    { ...PARTIAL, run: renamed, failures: [] },
  ];
  const made = await serveMadeRuns({ details, problems: { "01PARTIAL": { rows, total: 2 } } });
  await onPage(`${made.url}/#/runs/01PARTIAL`, async (page) => {
    await page.setViewportSize({ width: 390, height: 844 });
    const table = page.getByRole("table", { name: "Failed" });
    await table.getByText("same name as line 312").waitFor();
    const shown = await table.getByText(suggestion).all();
    expect(await Promise.all(shown.map((one) => one.isVisible()))).toEqual([true, true]);
    await page.getByRole("link", { name: "Overview" }).click();
    await page.locator(".recent").getByText("from Summer").waitFor();
  });
});

test("what is under the pointer stays there: a run that comes later is put below until the pointer leaves", async () => {
  const made = await serveMadeRuns({ details: [WAITING, OTHER] });
  await onPage(made.url, async (page) => {
    const links = page.getByRole("link", { name: "Review" });
    await links.nth(1).waitFor();
    const order = async () =>
      Promise.all((await links.all()).map(async (link) => (await link.getAttribute("href"))?.slice(-5)));
    expect(await order()).toEqual(["ITING", "OTHER"]);
    await links.first().hover();
    made.put({ ...WAITING.run, runId: "01LATER", startedAt: WAITING.run.startedAt + 1000 });
    await expect.poll(order).toEqual(["ITING", "OTHER", "LATER"]);
    await page.mouse.move(5, 5);
    await expect.poll(order).toEqual(["LATER", "ITING", "OTHER"]);
  });
});

test("changes that the server could not return are read again, and the run can then be approved", async () => {
  const made = await serveMadeRuns({ details: [WAITING] });
  await onPage(
    "about:blank",
    async (page) => {
      const failing = { status: 503, json: { message: "The store does not answer." } };
      await page.route("**/changes?*", (route) => route.fulfill(failing), { times: 2 });
      await page.goto(`${made.url}/#/approvals`);
      await page.getByText("The store does not answer.").waitFor();
      await page.getByText("It can be approved once all changes are read.").waitFor();
      expect(await button(page, "approve").isDisabled()).toBe(true);
      await expect.poll(() => button(page, "approve").isEnabled()).toBe(true);
      expect(await page.getByText("The store does not answer.").count()).toBe(0);
    },
    { mayLog: /Failed to load resource/ },
  );
});

test("a button that is pressed twice acts once", async () => {
  const made = await serveMadeRuns({ details: [WAITING] });
  await onPage(`${made.url}/#/approvals`, async (page) => {
    await expect.poll(() => button(page, "approve").getAttribute("aria-disabled")).toBe("false");
    await page.evaluate("{ const one = document.querySelector('[data-action=approve]'); one.click(); one.click(); }");
    await page.getByText("Approved: ").waitFor();
    expect(made.asked).toEqual([`/page/runs/01WAITING/approve ${SEEN}`]);
  });
});

test("without session a token logs in, and a server that has ended is told", async () => {
  const made = await serveMadeRuns({ details: [RUNNING], login: { message: "Approvers log in here.", token: true } });
  await onPage(
    made.url,
    async (page) => {
      await page.getByText("Approvers log in here.").waitFor();
      expect(await findingsOfAxe(page)).toEqual([]);
      await page.getByLabel("Token").fill("secret");
      await page.getByRole("button", { name: "Log in", exact: true }).click();
      await page.getByRole("heading", { name: "Nothing is waiting for you" }).waitFor();
      expect(made.asked).toEqual(['/login {"token":"secret"}']);
      made.end();
      await page.getByText("The server of this page is no longer running.").waitFor();
    },
    { mayLog: /Failed to load resource/ },
  );
});
