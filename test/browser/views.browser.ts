import { createServer } from "node:http";
import { build } from "esbuild";
import type { Frame, Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { optionItems, startService } from "../support/service.ts";
import { served } from "../support/stub-server.ts";
import { madeTargeting, VIEW_HOSTS, VIEW_URI, type ViewHost, type ViewResult } from "../support/view-hosts.ts";
import { findingsOfAxe, SCHEMES, withBrowser } from "./browser.ts";

const { onPage: onAnyPage } = withBrowser();
/** The console may only have messages that the official package writes. */
const PACKAGE_LOG = /^debug: (?:Parsed|Sending) message /;
const onPage = (
  url: string,
  work: (page: Page) => Promise<void>,
  more: { readonly colorScheme?: "light" | "dark" } = {},
) => onAnyPage(url, work, { ...more, mayLog: PACKAGE_LOG });
const HOSTS = Object.entries(VIEW_HOSTS);
/** The host that most tests use. */
const start = VIEW_HOSTS["stdio, 2026 era"];

let script = "";
beforeAll(async () => {
  const { outputFiles } = await build({
    entryPoints: ["test/browser/host-page.mjs"],
    bundle: true,
    format: "iife",
    write: false,
    logLevel: "warning",
  });
  script = outputFiles[0]?.text ?? "";
});

/** Serves a host's page, in which views are then shown. */
async function hostPage(): Promise<string> {
  const server = createServer((_, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8");
    const head = `<meta charset="utf-8"><title>Host</title><link rel="icon" href="data:,"><style>:root{color-scheme:light dark}</style>`;
    response.end(
      `<!doctype html><html lang="en"><head>${head}<script>${script.replaceAll("</", "<\\/")}</script></head><body></body></html>`,
    );
  });
  return served(server);
}

interface Shown {
  readonly tool: string;
  readonly input: Record<string, unknown>;
  readonly result: ViewResult;
}

/** Shows the result of a call in a view. Returns the view, and the calls that the view makes. */
async function shown(page: Page, host: ViewHost, { input, result }: Shown, theme: "light" | "dark" = "light") {
  const calls: string[] = [];
  await page.exposeFunction("hostCalls", (name: string, args: Record<string, unknown>) => {
    calls.push(name);
    return host.call(name, args);
  });
  const [content] = (await host.read(VIEW_URI)).contents;
  const html = content !== undefined && "text" in content ? content.text : "";
  await page.evaluate(`showView(${[html, theme, { input, result }].map((part) => JSON.stringify(part)).join()})`);
  const frame = page.frames().find((one) => one !== page.mainFrame());
  if (frame === undefined) throw new Error("no view is shown");
  await frame.getByRole("heading", { level: 1 }).waitFor();
  return { frame, calls };
}

async function called(host: ViewHost, tool: string, input: Record<string, unknown>): Promise<Shown> {
  return { tool, input, result: await host.call(tool, input) };
}

async function deleting(host: ViewHost, name?: string): Promise<Shown & { readonly targetingId: string }> {
  const targetingId = await madeTargeting(host, name);
  return { ...(await called(host, "delete_targeting", { ids: [targetingId] })), targetingId };
}

/** Returns a button of the view by its action, because its label names what is approved. */
function button(frame: Frame, action: "approve" | "decline" | "cancel") {
  return frame.locator(`button[data-action=${action}]`);
}

describe.each(HOSTS)("a view over %s", (_, begin) => {
  test("shows what would happen; an approval carries it out, and its progress is followed to the end", async () => {
    const host = await begin();
    const call = await deleting(host);
    await onPage(await hostPage(), async (page) => {
      const { frame, calls } = await shown(page, host, call);
      await frame.getByRole("heading", { name: /^Delete .*\?$/ }).waitFor();
      await frame.getByText("Sports fans").first().waitFor();
      expect(await button(frame, "approve").innerText()).toBe("Delete the targeting");
      await button(frame, "approve").click();
      await frame.getByText("The run has ended: done.").waitFor();
      await frame.getByText("Approved in the view by ").waitFor();
      await frame.getByRole("heading", { name: /^Deleted / }).waitFor();
      expect(await button(frame, "approve").count()).toBe(0);
      expect(calls).toContain("decide_run");
    });
    expect((await host.call("get_targeting", { targetingId: call.targetingId })).isError).toBe(true);
  });

  test("a no ends it", async () => {
    const host = await begin();
    const call = await deleting(host);
    await onPage(await hostPage(), async (page) => {
      const { frame } = await shown(page, host, call);
      await frame
        .locator(".pill")
        .getByText(/^(?:Live|Sandbox)/)
        .waitFor();
      await button(frame, "decline").click();
      await frame.getByText("The run has ended: declined.").waitFor();
      expect(await frame.getByRole("img", { name: "Progress" }).count()).toBe(0);
      expect(await frame.getByRole("list", { name: "Failures" }).count()).toBe(0);
    });
    expect((await host.call("get_targeting", { targetingId: call.targetingId })).isError).not.toBe(true);
  });
});

test("what is approved after a while is followed request by request, and Cancel stops it between two", async () => {
  const service = await startService();
  const host = await start({ env: service.live });
  const targetingId = await madeTargeting(host);
  const children = optionItems(300);
  await host.call("bulk_add_options", { targetingId, items: [{ name: "Group", contexts: ["g"], children }] });
  const names = children.map(({ name }) => name);
  const call = await called(host, "delete_options", { targetingId, names });
  await service.slow("deleteOptions", 5000);
  await onPage(await hostPage(), async (page) => {
    const { frame, calls } = await shown(page, host, call);
    // The view polls for a decision that may be made elsewhere.
    await expect.poll(() => calls).toContain("get_run");
    await button(frame, "approve").click();
    await frame.getByText("1 request sent.").waitFor();
    await frame.getByText("Running", { exact: true }).waitFor();
    await button(frame, "cancel").click();
    await frame.getByText("The run has ended: cancelled.").waitFor();
    expect(await button(frame, "cancel").count()).toBe(0);
    expect(calls).toContain("cancel_run");
  });
  expect(await service.count("deleteOptions")).toBe(1);
});

test("what has changed since is told, and cannot be approved any more", async () => {
  const host = await start();
  const call = await deleting(host);
  await host.call("bulk_add_options", { targetingId: call.targetingId, items: [{ name: "Rowing", contexts: ["o"] }] });
  await onPage(await hostPage(), async (page) => {
    const { frame } = await shown(page, host, call);
    await button(frame, "approve").click();
    await frame.getByText("Changed since it was planned", { exact: true }).waitFor();
    expect(await button(frame, "approve").isDisabled()).toBe(true);
    await button(frame, "decline").click();
    await frame.getByText("The run has ended: declined.").waitFor();
  });
});

test("a call that fails before anything is sent says why, and not how many requests were sent", async () => {
  const host = await start();
  const call = await called(host, "delete_options", { targetingId: await madeTargeting(host), names: ["Nothing"] });
  await onPage(await hostPage(), async (page) => {
    const { frame } = await shown(page, host, call);
    await frame.getByText("0 of 1 option, 1 failed").waitFor();
    await frame.getByText('the targeting has no option named "Nothing"').waitFor();
    expect(await frame.locator("main").innerText()).not.toContain("request");
  });
});

test("a view that is shown again decides nothing a second time", async () => {
  const host = await start();
  const call = await deleting(host);
  const url = await hostPage();
  await onPage(url, async (page) => {
    const { frame } = await shown(page, host, call);
    await button(frame, "decline").click();
    await frame.getByText("The run has ended: declined.").waitFor();
  });
  await onPage(url, async (page) => {
    const { frame } = await shown(page, host, call);
    // The view may already know that the run was decided, so the button may be gone.
    await button(frame, "approve")
      .click({ timeout: 1000 })
      .catch(() => undefined);
    const refused = frame.getByText("Declined in the view by ");
    await refused.or(frame.getByText("The run has ended: declined.")).first().waitFor();
    expect(await button(frame, "approve").count()).toBe(0);
  });
  expect((await host.call("get_targeting", { targetingId: call.targetingId })).isError).not.toBe(true);
});

test("names are text, everything goes by keyboard, and the host learns the height", async () => {
  const host = await start();
  const targetingId = await madeTargeting(host);
  const name = "A & B%~+-";
  await host.call("bulk_add_options", { targetingId, items: [{ name, contexts: ["x"] }] });
  const call = await called(host, "delete_options", { targetingId, names: [name, "Running"] });
  await onPage(await hostPage(), async (page) => {
    const { frame } = await shown(page, host, call);
    await frame.getByText(name).first().waitFor();
    expect(await frame.locator("main script, main img").count()).toBe(0);
    await expect.poll(() => page.evaluate<number>("heights.at(-1) ?? 0")).toBeGreaterThan(100);
    expect(await page.evaluate<number>("Math.max(...heights)")).toBeLessThanOrEqual(300);
    await page.locator("iframe").focus();
    for (let steps = 0; steps < 30; steps += 1) {
      await page.keyboard.press("Tab");
      if ((await frame.evaluate("document.activeElement.innerText")) === "Decline") break;
    }
    await expect.poll(() => button(frame, "decline").isEnabled()).toBe(true);
    await page.keyboard.press("Enter");
    await frame.getByText("The run has ended: declined.").waitFor();
  });
});

test("a deletion of many stays within 300 pixels on a narrow screen, with its buttons in sight", async () => {
  const host = await start();
  const targetingId = await madeTargeting(host);
  const items = optionItems(300);
  await host.call("bulk_add_options", { targetingId, items });
  const call = await called(host, "delete_options", { targetingId, names: items.map(({ name }) => name) });
  await onPage(await hostPage(), async (page) => {
    await page.setViewportSize({ width: 340, height: 700 });
    const { frame } = await shown(page, host, call);
    await frame.getByText(/^300/).first().waitFor();
    await frame.getByText(/of 30\d options/).waitFor();
    await frame.getByText("and 200 more").waitFor();
    await expect.poll(() => page.evaluate<number>("heights.at(-1) ?? 0")).toBeGreaterThan(200);
    expect(await page.evaluate<number>("Math.max(...heights)")).toBeLessThanOrEqual(300);
    const lowest =
      "Math.max(...[...document.querySelectorAll('button')].map((one) => one.getBoundingClientRect().bottom))";
    expect(await frame.evaluate(lowest)).toBeLessThanOrEqual(300);
    expect(await frame.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  });
});

test("a deletion says before the decision what stays, what was not found, and what another run deletes as well", async () => {
  const host = await start();
  const targetingId = await madeTargeting(host);
  const children = ["Boots", "Caps"].map((name) => ({ name, contexts: [name] }));
  const items = [{ name: "Clothing", type: "collection", children }, ...optionItems(30)];
  await host.call("bulk_add_options", { targetingId, items });
  await host.call("delete_options", { targetingId, names: ["Boots"] });
  const names = ["Boots", "Caps", "Nowhere", ...optionItems(30).map(({ name }) => name)];
  const call = await called(host, "delete_options", { targetingId, names });
  await onPage(await hostPage(), async (page) => {
    const { frame } = await shown(page, host, call);
    const words = frame.locator(".scroll > p");
    await words
      .getByText(/1 requested option stays: "Clothing" keeps "(?:Boots|Caps)", since a group cannot be empty\./)
      .waitFor();
    await words
      .getByText('1 of 33 items is left out ("Nowhere"): the targeting has no option named "Nowhere".')
      .waitFor();
    await words.getByText("in another request").waitFor();
    // The group is named once.
    expect((await frame.locator("body").innerText()).split("Clothing")).toHaveLength(2);
    await frame.getByText(/^3\d in all: scroll to see them$/).waitFor();
    await button(frame, "decline").click();
    await frame.getByText("The run has ended: declined.").waitFor();
  });
});

test("long Korean names stand whole in the narrowest view: the act, its size and what comes back, then the names", async () => {
  const host = await start();
  const long = (at: number) => `서울특별시강남구역삼동겨울신발특별기획전한정판매상품목록${String(at).padStart(6, "0")}`;
  const targetingId = await madeTargeting(host, long(1));
  await host.call("bulk_add_options", { targetingId, items: [{ name: long(2), contexts: ["x", "y"] }] });
  const call = await called(host, "delete_options", { targetingId, names: [long(2)] });
  await onPage(await hostPage(), async (page) => {
    const { frame } = await shown(page, host, call);
    const heading = frame.getByRole("heading", { level: 1 });
    expect(await heading.innerText()).toBe(`Delete ${long(2)} from ${long(1)}?`);
    const isWhole = "{ const one = document.querySelector('h1'); one.scrollHeight <= one.clientHeight; }";
    expect(await frame.evaluate(isWhole)).toBe(true);
    const words = await frame.locator(".scroll").innerText();
    const order = [
      /1 of \d+ options/,
      /Removes 2 Context IDs/,
      /Undo within 30 days: same Context IDs, new option ID/,
      long(2),
    ];
    const places = order.map((part) => words.search(part));
    expect(places).toEqual(places.toSorted((one, other) => one - other));
    expect(places[0]).toBeGreaterThanOrEqual(0);
    expect(await page.evaluate<number>("Math.max(...heights)")).toBeLessThanOrEqual(300);
    expect(await frame.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  });
});

test.each(SCHEMES)("axe-core finds nothing in any state of the view, %s", async (theme) => {
  const host = await start();
  const call = await deleting(host);
  const desired = { version: 1, targeting: { _id: call.targetingId }, options: [{ name: "Rowing", contexts: ["o"] }] };
  const plan = await called(host, "plan_targeting", { desired });
  // The colours of the host take precedence over those of the system.
  const colorScheme = theme === "light" ? "dark" : "light";
  for (const one of [plan, call]) {
    await onPage(
      await hostPage(),
      async (page) => {
        const { frame } = await shown(page, host, one, theme);
        expect(await frame.evaluate("getComputedStyle(document.body).backgroundColor")).toBe(
          theme === "light" ? "rgb(255, 255, 255)" : "rgb(15, 17, 21)",
        );
        expect(await findingsOfAxe(frame)).toEqual([]);
        if (one === plan) {
          await frame.getByRole("list", { name: "Plan" }).waitFor();
          return;
        }
        await button(frame, "approve").click();
        await frame.getByText("The run has ended: done.").waitFor();
        expect(await findingsOfAxe(frame)).toEqual([]);
        await page.evaluate(`changeTheme("${colorScheme}")`);
        await expect
          .poll(() => frame.evaluate("getComputedStyle(document.body).backgroundColor"))
          .toBe(theme === "light" ? "rgb(15, 17, 21)" : "rgb(255, 255, 255)");
        expect(await findingsOfAxe(frame)).toEqual([]);
        await page.evaluate("tearDown()");
      },
      { colorScheme },
    );
  }
});
