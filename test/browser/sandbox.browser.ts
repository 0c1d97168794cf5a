import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import * as z from "zod";
import { rowNames, withBrowser } from "./browser.ts";
import { startSandboxProcess } from "./sandbox-process.ts";

const { onPage } = withBrowser();

const faultsOf = z.object({ faults: z.array(z.unknown()) });
const stateOf = z.object({
  projects: z.array(
    z.object({ options: z.array(z.object({ _id: z.string(), targeting: z.string(), name: z.string() })) }),
  ),
});

/** Returns the option of a sandbox that has this name. */
async function optionNamed(url: string, wanted: string) {
  const { projects } = stateOf.parse(await (await fetch(`${url}/_sandbox/state`)).json());
  const option = projects.flatMap(({ options }) => options).find(({ name }) => name === wanted);
  if (option === undefined) throw new Error(`the sandbox has no option ${wanted}`);
  return option;
}

/** Clicks the button that removes all events, and confirms it. */
async function clearEvents(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Clear events…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Clear events", exact: true }).click();
}

test("events come live, with what became of them and why; one that is chosen says how to fix it", async () => {
  const sandbox = await startSandboxProcess();
  await onPage(sandbox.url, async (page) => {
    await page.getByRole("heading", { name: "Events", exact: true }).waitFor();
    await sandbox.send({ uid: "u-1", eventName: "app_open" });
    await sandbox.send({ uid: "u-2", eventName: "purchase" });
    await sandbox.send({ eventName: "app_open" });
    const table = page.getByRole("table", { name: "Events" });
    await table.getByText("Rejected").waitFor();
    expect(await rowNames(page, "Events")).toEqual(["app_open", "purchase", "app_open"]);
    const purchase = table.getByRole("row", { name: /purchase/ });
    expect(await purchase.innerText()).toMatch(/Dropped.*purchase.*u-2 · tx_id is missing/s);
    await expect
      .poll(() => page.locator("[aria-live=polite]").innerText())
      .toContain("3 events: 1 recorded, 1 dropped, 1 rejected.");
    await purchase.getByRole("link", { name: "purchase" }).click();
    const pane = page.getByRole("region", { name: "Event", exact: true });
    await pane.getByText('The service answers "ok", but does not count this event.').waitFor();
    await pane.getByText(/"purchase" needs "tx_id".* Add "tx_id"\./).waitFor();
    expect(await pane.getByText("Rename these fields as well").count()).toBe(0);
    await pane.getByText("Body as sent").click();
    await pane.getByText('{"uid":"u-2","eventName":"purchase"}').waitFor();
    await page.keyboard.press("k");
    await expect.poll(() => page.url()).toMatch(/#\/events\/3$/);
    const covered = page.getByRole("table", { name: "Coverage" }).getByRole("row", { name: /^purchase/ });
    expect(await covered.getByRole("cell").allTextContents()).toEqual(["", "0 / 1", "✕ tx_id*currencyitems"]);
    await sandbox.send({ uid: "u-3", eventName: "purchase", tx_id: "t", items: "i" });
    await expect.poll(() => covered.getByRole("cell").last().innerText()).toBe("✕ tx_id*currency! items");
    expect(await rowNames(page, "Coverage")).toHaveLength(13);
  });
});

test("problems are grouped by cause, lead to their events, and a corrected event can be sent and then counts", async () => {
  const sandbox = await startSandboxProcess();
  await onPage(`${sandbox.url}/#/events`, async (page) => {
    await page.getByText("No events yet").waitFor();
    await page.getByText(`curl -X POST ${sandbox.url}/event -H "Authorization: sandbox-app-key"`).waitFor();
    for (let at = 0; at < 3; at += 1) {
      await sandbox.send({ uid: `u-${at}`, eventName: "Purchase", orderId: "o-1", platform: "web" });
    }
    await sandbox.send({ uid: "u", eventName: "sign_up" });
    await sandbox.send({ uid: "u", eventName: "Sign_up", method: "mail" });
    await sandbox.send({ uid: "u", eventName: "app_open" });
    const problems = page.getByRole("region", { name: /^3 problems/ });
    await problems.getByText("5 of 6 events not recorded").waitFor();
    await expect
      .poll(() => problems.getByRole("listitem").allInnerTexts())
      .toEqual([
        expect.stringMatching(
          /3×\s+Purchase\s+unknown event name; tx_id is missing\s+Fix: rename Purchase to purchase, rename orderId to tx_id\s+web/,
        ),
        expect.stringMatching(/1×\s+sign_up\s+method is missing\s+Fix: add method/),
        expect.stringMatching(/1×\s+Sign_up\s+unknown event name\s+Fix: rename Sign_up to sign_up/),
      ]);
    const dot = problems.locator(".dot").first();
    expect([await dot.getAttribute("title"), await dot.getAttribute("class")]).toEqual(["Dropped", "dot dropped"]);
    await problems.getByRole("button", { name: /Purchase/ }).click();
    await expect.poll(() => rowNames(page, "Events")).toEqual(["Purchase", "Purchase", "Purchase"]);
    const results = page.getByRole("group", { name: "Results" });
    expect(await results.locator("[aria-pressed=true]").count()).toBe(0);
    const pane = page.getByRole("region", { name: "Event", exact: true });
    await pane.getByText("Same problem in 3 events").waitFor();
    expect(await pane.locator("del").allTextContents()).toEqual(["Purchase", "orderId"]);
    await pane.getByText('"orderId → tx_id"').waitFor();
    expect(await pane.locator("ins").allTextContents()).toEqual(["purchase", "tx_id"]);
    await pane.getByText("Rename these fields as well: orderId → tx_id.").waitFor();
    await pane.getByRole("button", { name: "Send to the sandbox" }).click();
    await page.getByText("The corrected event was sent to the sandbox.").waitFor();
    await page.getByRole("button", { name: "Show all events" }).click();
    await expect.poll(async () => (await rowNames(page, "Events"))[0]).toBe("purchase");
    await page.getByRole("button", { name: "Recorded 2" }).click();
    await expect.poll(() => rowNames(page, "Events")).toEqual(["purchase", "app_open"]);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download tests" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("events.test.ts");
    // If the reason already says which field to rename, the page does not repeat it.
    await sandbox.send({ uid: "u", eventName: "purchase", orderId: "o-2" });
    await page.goto(`${sandbox.url}/#/events/8`);
    await pane.getByText(/Rename "orderId" to "tx_id"/).waitFor();
    expect(await pane.getByText("Rename these fields as well").count()).toBe(0);
  });
});

test("the event that is shown first is one of the problem that is the largest now, and stays while that problem does", async () => {
  const sandbox = await startSandboxProcess();
  const sendMany = (events: readonly object[]) => sandbox.sendAll(events.map((event) => ({ uid: "u", ...event })));
  await sendMany([{ eventName: "sign_up" }, { eventName: "sign_up" }]);
  await onPage(`${sandbox.url}/#/events`, async (page) => {
    const pane = page.getByRole("region", { name: "Event", exact: true });
    await pane.getByText(/"sign_up" needs "method"/).waitFor();
    await sendMany(Array.from({ length: 3 }, (_, at) => ({ eventName: "purchase", currency: `C${at}` })));
    await pane.getByText(/"purchase" needs "tx_id"/).waitFor();
    const seen = await pane.locator("pre").first().innerText();
    await sendMany([{ eventName: "purchase", currency: "LATER" }]);
    await page.getByText("received").getByText("6").or(page.locator(".counters").getByText("6")).first().waitFor();
    expect(await pane.locator("pre").first().innerText()).toBe(seen);
  });
});

test("times of another day have their date, in the list, in the problems and in the pane", async () => {
  const sandbox = await startSandboxProcess();
  const at = new Date(Date.now() - 50 * 3_600_000);
  const day = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" }).format(at);
  await sandbox.seed({ events: [{ at: at.toISOString(), event: { uid: "old", eventName: "purchase" } }] });
  await sandbox.send({ uid: "new", eventName: "app_open" });
  await onPage(`${sandbox.url}/#/events`, async (page) => {
    await page.locator(".problems").getByText(`${day}, `).waitFor();
    await page.getByRole("region", { name: "Event", exact: true }).getByText(`${day}, `).first().waitFor();
    const rows = page.getByRole("table", { name: "Events" }).getByRole("row");
    expect(await rows.filter({ hasText: "old" }).innerText()).toContain(`${day}, `);
    expect(await rows.filter({ hasText: "new" }).innerText()).not.toContain(`${day}, `);
  });
});

test("a filter shows what fits, also of what arrives later", async () => {
  const sandbox = await startSandboxProcess();
  await sandbox.send({ uid: "anna", eventName: "app_open" });
  await sandbox.send({ uid: "bert", eventName: "purchase", currency: "KRW" });
  await onPage(sandbox.url, async (page) => {
    const filter = page.getByLabel("Filter");
    for (const [text, names, words] of [
      ["PURCHASE", ["purchase"], "1 of 2 events match."],
      ["anna", ["app_open"], "1 of 2 events match."],
      ["krw ignored", ["purchase"], "1 of 2 events match."],
      ["krw recorded", [], "No event matches."],
    ] as const) {
      await filter.fill(text);
      await expect.poll(() => rowNames(page, "Events")).toEqual(names);
      await page.locator(".head").getByText(words, { exact: true }).waitFor();
    }
    await sandbox.send({ uid: "carl", eventName: "sign_up", method: "KRW" });
    await expect.poll(() => rowNames(page, "Events")).toEqual(["sign_up"]);
    // An event that arrives while the matching ones are read is shown as well.
    let [reads, release] = [0, () => {}];
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route("**/events?*", async (route) => {
      const response = await route.fetch();
      reads += 1;
      if (reads === 1) await released;
      await route.fulfill({ response });
    });
    await sandbox.send({ uid: "dora", eventName: "app_open", platform: "krw" });
    await expect.poll(() => reads).toBe(1);
    await sandbox.send({ uid: "emil", eventName: "page_view", page_id: "krw", page_url: "u" });
    await page.locator(".head").getByText("1 of 5 events match.", { exact: true }).waitFor();
    release();
    await expect.poll(() => rowNames(page, "Events")).toEqual(["page_view", "app_open", "sign_up"]);
    await filter.fill("");
    await expect.poll(() => rowNames(page, "Events")).toHaveLength(5);
    // A chosen problem shows all its events, whatever was filtered before.
    await filter.fill("nothing fits this");
    await page.locator(".head").getByText("No event matches.", { exact: true }).waitFor();
    await page
      .locator(".problems")
      .getByRole("button", { name: /purchase/ })
      .click();
    await expect.poll(() => rowNames(page, "Events"), { timeout: 5000 }).toEqual(["purchase"]);
    expect(await filter.inputValue()).toBe("");
  });
});

test("Pause holds the list while events arrive, Resume shows them, Clear events asks and then forgets all", async () => {
  const sandbox = await startSandboxProcess();
  await sandbox.send({ uid: "u", eventName: "app_open" });
  await onPage(sandbox.url, async (page) => {
    await expect.poll(() => rowNames(page, "Events")).toEqual(["app_open"]);
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await sandbox.send({ uid: "u", eventName: "page_view" });
    await page.getByText("1 of 2 events; paused").waitFor();
    expect(await rowNames(page, "Events")).toEqual(["app_open"]);
    await page.getByRole("button", { name: "Resume", exact: true }).click();
    await expect.poll(() => rowNames(page, "Events")).toEqual(["page_view", "app_open"]);
    await page.getByRole("button", { name: "Clear events…" }).click();
    await page.getByText("Remove 2 events from the sandbox? This cannot be undone.").waitFor();
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    expect(await rowNames(page, "Events")).toEqual(["page_view", "app_open"]);
    await clearEvents(page);
    await expect.poll(() => rowNames(page, "Events")).toEqual([]);
    expect(await (await fetch(`${sandbox.url}/_sandbox/events`)).json()).toMatchObject({ total: 0 });
    await sandbox.send({ uid: "u", eventName: "click" });
    await expect.poll(() => rowNames(page, "Events")).toEqual(["click"]);
  });
});

test("events that arrive move no row under the pointer or the focus of the keyboard", async () => {
  const sandbox = await startSandboxProcess();
  await sandbox.send({ uid: "u", eventName: "app_open" });
  await onPage(sandbox.url, async (page) => {
    const row = page.getByRole("table", { name: "Events" }).getByRole("link", { name: "app_open" });
    await row.hover();
    await sandbox.send({ uid: "u", eventName: "page_view" });
    await page.getByText("1 of 2 events; 1 new event").waitFor();
    expect(await rowNames(page, "Events")).toEqual(["app_open"]);
    await row.click();
    await page.mouse.move(5, 5);
    await expect.poll(() => rowNames(page, "Events")).toEqual(["page_view", "app_open"]);
    await page.keyboard.press("k");
    await sandbox.send({ uid: "u", eventName: "click" });
    await page.getByText("2 of 3 events; 1 new event").waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    expect(await rowNames(page, "Events")).toEqual(["page_view", "app_open"]);
    await page.getByRole("button", { name: "Pause", exact: true }).focus();
    await expect.poll(() => rowNames(page, "Events")).toEqual(["click", "page_view", "app_open"]);
  });
});

test("on a phone the list of events shows each reason whole", async () => {
  const sandbox = await startSandboxProcess();
  await sandbox.send({
    uid: "a-shopper-with-a-long-name",
    platform: "android",
    eventName: "purchase",
    currency: "KRW",
  });
  await onPage(sandbox.url, async (page) => {
    await page.setViewportSize({ width: 390, height: 844 });
    const cause = page.getByRole("table", { name: "Events" }).locator(".cause");
    await cause.getByText("tx_id").waitFor();
    expect(await cause.innerText()).toBe("tx_id is missing");
    const isWhole = await cause.evaluate((one) => one.scrollWidth <= one.clientWidth);
    const { x = 0, width = 390 } = (await cause.boundingBox()) ?? {};
    expect([isWhole, x > 0, x + width <= 390]).toEqual([true, true, true]);
  });
});

test("after Clear events nothing of before is left, neither behind a filter nor on an older page", async () => {
  const sandbox = await startSandboxProcess();
  await sandbox.send({ uid: "u", eventName: "purchase" });
  await onPage(sandbox.url, async (page) => {
    const next = page.getByRole("button", { name: "Next", exact: true });
    await page.getByLabel("Filter").fill("purchase");
    await expect.poll(() => rowNames(page, "Events")).toEqual(["purchase"]);
    await clearEvents(page);
    await page.getByRole("heading", { name: "No events yet" }).waitFor();
    expect(await rowNames(page, "Events")).toEqual([]);
    await sandbox.send({ uid: "u", eventName: "app_open" });
    await page.getByLabel("Filter").fill("");
    await page.getByText("1 of 1 events").waitFor();
    expect(await next.count()).toBe(0);
  });
});

test("targetings are a tree with counts, which changes with what it shows, and a search over all of it", async () => {
  const sandbox = await startSandboxProcess("--seed", "sample");
  await onPage(`${sandbox.url}/#/targetings`, async (page) => {
    await page.getByText("3 targetings · ").waitFor();
    await page.getByText("Bars compare Context IDs within a list.").waitFor({ timeout: 5000 });
    await page.getByRole("button", { name: "Shop Categories (2 groups and 7 options)" }).click();
    await page.getByRole("button", { name: "Shoes (2 sub-options)" }).click();
    const sneakers = page.getByRole("listitem").filter({ hasText: /^Sneakers/ });
    expect(await sneakers.innerText()).toMatch(/^Sneakers\s+3 Context IDs$/);
    // A bar shows the number beside it. For a group, that number includes the sub-options.
    const row = (name: RegExp) => page.locator(".tree-row").filter({ hasText: name });
    for (const name of [/^Shop Categories/, /^Shoes/, /^Sneakers/]) {
      const [, shown = ""] = /(\d+ Context IDs?)$/.exec((await row(name).innerText()).trim()) ?? [];
      expect(await row(name).getByRole("img").getAttribute("aria-label")).toMatch(new RegExp(`: ${shown}$`));
    }
    await sneakers.getByRole("button").click();
    const pane = page.getByRole("region", { name: "Chosen" });
    await pane.getByRole("heading", { name: "3 Context IDs" }).waitFor();
    await pane.getByText("Option in Shoes").waitFor();
    expect(await pane.locator("code.chip").count()).toBe(3);
    const { targeting, _id } = await optionNamed(sandbox.url, "Sneakers");
    await sandbox.seed({ options: [{ _id, targeting, name: "Trainers", contexts: ["a"] }] });
    const trainers = page.getByRole("listitem").filter({ hasText: /^Trainers/ });
    expect(await trainers.innerText()).toMatch(/^Trainers\s+changed just now\s+1 Context ID$/);
    await expect
      .poll(() =>
        page
          .getByRole("listitem")
          .filter({ hasText: /^Sneakers/ })
          .count(),
      )
      .toBe(0);
    await page.getByLabel("Search").fill("SALE");
    await expect.poll(() => rowNames(page, "Found")).toEqual(["Summer Sale", "Winter Sale"]);
    await page.getByLabel("Search").fill("brand-contoso-kids");
    await expect.poll(() => rowNames(page, "Found")).toEqual(["Contoso"]);
    const found = page.getByRole("table", { name: "Found" }).getByRole("row", { name: "Contoso" });
    expect(await found.getByRole("cell").allTextContents()).toEqual(["Shop Brands", "2 with brand-contoso-kids", ""]);
    // What was chosen before the search is not shown while its results are.
    await pane.getByText("Choose a targeting, a group or an option").waitFor();
    await found.getByRole("button").click();
    await expect.poll(() => pane.locator("mark").allTextContents()).toEqual(["brand-contoso-kids"]);
    await pane.getByRole("button", { name: "Close" }).click();
    await pane.getByText("Choose a targeting, a group or an option").waitFor();
  });
});

test("on a phone the sizes of targetings and options are bars, too", async () => {
  const sandbox = await startSandboxProcess("--seed", "sample");
  await onPage(`${sandbox.url}/#/targetings`, async (page) => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByRole("button", { name: "Shop Categories" }).click();
    await page.getByRole("button", { name: "Bags" }).waitFor();
    const widths = await Promise.all((await page.locator(".tree .bar").all()).map((bar) => bar.boundingBox()));
    expect(widths.length).toBeGreaterThan(6);
    for (const box of widths) expect(box?.width).toBe(124);
    await page
      .locator(".tree-row", { hasText: "Bags" })
      .getByText(/^\d+ Context IDs?$/)
      .waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
  });
});

test("faults are added, strike, and are removed one by one or all", async () => {
  const sandbox = await startSandboxProcess();
  const faults = async () => faultsOf.parse(await (await fetch(`${sandbox.url}/_sandbox/faults`)).json()).faults;
  await onPage(`${sandbox.url}/#/faults`, async (page) => {
    await page.getByLabel("Operation").selectOption("any");
    await page.getByLabel("Kind").selectOption("status");
    await page.getByLabel("Times").fill("2");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await expect.poll(faults).toMatchObject([{ fault: { on: "any", kind: "status", status: 500, times: 2 } }]);
    await page.getByLabel("Operation").selectOption("trackEvent");
    await page.getByLabel("Kind").selectOption("busy");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await expect.poll(() => rowNames(page, "Faults")).toEqual(["any", "trackEvent"]);
    await sandbox.send({ uid: "u", eventName: "app_open" });
    const first = page.getByRole("table", { name: "Faults" }).getByRole("row").nth(1);
    const struck = ["answered with status 500", "status 500", "2", "1", "1", "Remove"];
    await expect.poll(() => first.getByRole("cell").allTextContents()).toEqual(struck);
    await first.getByRole("button", { name: "Remove", exact: true }).click();
    await expect.poll(() => rowNames(page, "Faults")).toEqual(["trackEvent"]);
    await page.getByRole("button", { name: "Reset", exact: true }).click();
    await expect.poll(faults).toEqual([]);
    await page.getByText("No fault is active: the sandbox answers every request normally.").waitFor();
  });
});

test("presets and the fields of a kind make whole faults, and a banner in every view removes them", async () => {
  const sandbox = await startSandboxProcess();
  const faults = async () => faultsOf.parse(await (await fetch(`${sandbox.url}/_sandbox/faults`)).json()).faults;
  await onPage(`${sandbox.url}/#/faults`, async (page) => {
    await page.getByRole("button", { name: "Answer lost after the write" }).click();
    await page.getByRole("button", { name: "One in ten fails" }).click();
    await page.getByLabel("Kind").selectOption("late");
    await expect.poll(() => page.getByRole("spinbutton", { name: "Status" }).count()).toBe(0);
    await page.getByLabel("Delay in ms").fill("250");
    await page.getByLabel("Hold the write lock until then").uncheck();
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await expect
      .poll(faults)
      .toMatchObject([
        { fault: { on: "write", kind: "reset", applied: true, times: 1 } },
        { fault: { on: "any", kind: "status", status: 500, probability: 0.1 } },
        { fault: { on: "write", kind: "late", delayMs: 250, holdsLock: false, times: 1 } },
      ]);
    await page.getByRole("link", { name: "Events" }).click();
    await page.getByText("3 faults are active: the sandbox fails on purpose.").waitFor();
    await page.getByRole("button", { name: "Remove them" }).click();
    await expect.poll(faults).toEqual([]);
    await page.getByText("faults are active").waitFor({ state: "detached" });
  });
});

test("everything is reached and done by keyboard, and the focus is seen", async () => {
  const sandbox = await startSandboxProcess("--seed", "sample");
  await onPage(sandbox.url, async (page) => {
    await page.getByRole("heading", { name: "Events", exact: true }).waitFor();
    const tabTo = async (name: string): Promise<void> => {
      for (let steps = 0; steps < 40; steps += 1) {
        await page.keyboard.press("Tab");
        const focused = await page.evaluate("document.activeElement.innerText || document.activeElement.name || ''");
        if (String(focused).startsWith(name)) {
          expect(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")).toBe("solid");
          return;
        }
      }
      throw new Error(`no Tab leads to ${name}`);
    };
    await tabTo("Pause");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Resume", exact: true }).waitFor();
    await tabTo("Body as sent");
    await page.keyboard.press("Enter");
    await page.locator("details pre").waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Events", exact: true }).waitFor();
    await tabTo("Fault injection");
    await page.keyboard.press("Enter");
    await tabTo("times");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await expect.poll(() => rowNames(page, "Faults")).toEqual(["write"]);
    await page.getByRole("cell", { name: "2", exact: true }).waitFor();
  });
});

test("after a restart the page comes back by itself", async () => {
  const first = await startSandboxProcess();
  await first.send({ uid: "u", eventName: "app_open" });
  const refused = /Failed to load resource/;
  await onPage(
    first.url,
    async (page) => {
      await expect.poll(() => rowNames(page, "Events")).toEqual(["app_open"]);
      await page.getByRole("link", { name: "app_open" }).click();
      await page.getByText('"eventName":"app_open"').waitFor();
      first.child.kill("SIGKILL");
      await first.exited;
      await page.getByText("The connection to the server is lost. This page reconnects by itself.").waitFor();
      const second = await startSandboxProcess("--port", first.port);
      await second.send({ uid: "u", eventName: "page_view" });
      await expect.poll(() => rowNames(page, "Events")).toEqual(["page_view"]);
      // The new event has the number of the removed one, but the page does not show the removed one's body.
      await expect.poll(() => page.getByText('"eventName":"app_open"').count()).toBe(0);
      await page.getByText("The connection to the server is lost").waitFor({ state: "detached" });
      await clearEvents(page);
      await expect.poll(() => rowNames(page, "Events")).toEqual([]);
    },
    { mayLog: refused },
  );
});
