import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS } from "../support/clients.ts";
import { startHttp } from "../support/http-server.ts";
import { clientOf, TOKENS, writeAccess } from "../support/page-http.ts";
import { browserOfTest } from "../support/page-person.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";
import { findingsOfAxe, rowNames, withBrowser } from "./browser.ts";
import { startSandboxProcess } from "./sandbox-process.ts";

const { onPage } = withBrowser();

const EMBEDDED = { TARGETING_MCP_MODE: "sandbox", TARGETING_MCP_SANDBOX_PORT: "0", TARGETING_MCP_WAIT_MS: "6000" };
const created = z.looseObject({ results: z.array(z.looseObject({ _id: z.string() })) });

/** Returns the address of the sandbox that the page shows. */
async function addressOn(page: Page): Promise<string> {
  return `http://${await page.locator(".environment span span:not(.link)").innerText()}`;
}

/** Sends events directly to the sandbox, because the tools would correct or refuse them. */
async function sendAll(url: string, events: readonly unknown[]): Promise<void> {
  const headers = { authorization: "sandbox-app-key", "content-type": "application/json" };
  for (const event of events) await fetch(`${url}/event`, { method: "POST", headers, body: JSON.stringify(event) });
}

test("the page of a server over stdio has the views of its embedded sandbox, with all that they can do", async () => {
  const browser = browserOfTest();
  const env = cleanEnvironment({ ...EMBEDDED, ...browser.env, TARGETING_MCP_CONFIRM: "strict" });
  const client = await CLIENTS["2026 client, legacy"]({ args: [COMMAND], env });
  const { structuredContent } = await client.callTool("create_targetings", { items: [{ name: "Spring" }] });
  const ids = created.parse(structuredContent).results.map(({ _id }) => _id);
  await client.callTool("track_event", { uid: "u-1", eventName: "app_open" });
  const asked = client.callTool("delete_targeting", { ids });
  await onPage(await browser.address(), async (page) => {
    const views = ["Overview", "Approvals", "Runs", "Targetings", "Events", "Fault injection"];
    await page.getByRole("link", { name: "Events" }).waitFor();
    const links = page.getByRole("navigation", { name: "Views" }).getByRole("link");
    await expect
      .poll(async () => (await links.allTextContents()).map((text) => text.replace(/ ?1 waiting$/, "")))
      .toEqual(views);
    await page.getByRole("link", { name: "Events" }).click();
    await expect.poll(() => rowNames(page, "Events")).toEqual(["app_open"]);
    await client.callTool("track_event", { uid: "u-2", eventName: "page_view", page_id: "home" });
    await expect.poll(() => rowNames(page, "Events")).toEqual(["page_view", "app_open"]);
    expect(await findingsOfAxe(page)).toEqual([]);
    await page.getByRole("link", { name: "Targetings" }).click();
    await page.getByRole("button", { name: "Spring (0 options)" }).click();
    await page.getByRole("link", { name: "Fault injection" }).click();
    await page.getByRole("button", { name: "Answer lost after the write" }).click();
    await page.getByText("1 fault is active").waitFor();
    await page.getByRole("button", { name: "Remove it" }).click();
    await page.getByText("1 fault is active").waitFor({ state: "detached" });
    const names = ["Purchase", "Purchase", "purchase", "구매", "sign_up"];
    await sendAll(
      await addressOn(page),
      names.map((eventName) => ({ uid: "u", eventName, platform: "web" })),
    );
    await page.getByRole("link", { name: "Overview" }).click();
    const problems = page.locator(".item").filter({ hasText: "not recorded" });
    await expect
      .poll(async () =>
        (await problems.allInnerTexts()).map((text) =>
          text.replaceAll(/\s+/g, " ").replace(/ latest (?:just now|\d+ s ago) · web$/, " latest, web"),
        ),
      )
      .toEqual([
        "3 of 3 purchase test events not recorded Show Dismiss 2 unknown event name; tx_id is missing rename Purchase to purchase, add tx_id 1 tx_id is missing add tx_id latest, web",
        "1 of 1 구매 test event not recorded: unknown event name Fix: send one of the supported event names Show Dismiss latest, web",
        "1 of 1 sign_up test event not recorded: method is missing Fix: add method Show Dismiss latest, web",
      ]);
    await problems.first().getByRole("button", { name: "Dismiss" }).click();
    await expect.poll(() => problems.count()).toBe(2);
    // The coverage has the same total.
    await page.getByRole("link", { name: "Events" }).click();
    const row = page.getByRole("table", { name: "Coverage" }).getByRole("row", { name: /^purchase/ });
    await row.getByText("0 / 3", { exact: true }).waitFor();
    await row.getByText("misspelt as Purchase (2)").waitFor();
  });
  await asked;
});

test("a sandbox that does not answer is said in its views, with what it reported last, until it is back", async () => {
  const first = await startSandboxProcess();
  await first.send({ uid: "u-1", eventName: "app_open" });
  const browser = browserOfTest();
  const sandbox = {
    TARGETING_MCP_MODE: "sandbox",
    TARGETING_MCP_SANDBOX_URL: first.url,
    TARGETING_MCP_WAIT_MS: "6000",
  };
  const env = cleanEnvironment({ ...sandbox, ...browser.env, TARGETING_MCP_CONFIRM: "strict" });
  const client = await CLIENTS["2026 client, legacy"]({ args: [COMMAND], env });
  const { structuredContent } = await client.callTool("create_targetings", { items: [{ name: "Spring" }] });
  const ids = created.parse(structuredContent).results.map(({ _id }) => _id);
  const asked = client.callTool("delete_targeting", { ids });
  await onPage(
    await browser.address(),
    async (page) => {
      await page.getByRole("link", { name: "Events" }).click();
      await expect.poll(() => rowNames(page, "Events")).toEqual(["app_open"]);
      first.child.kill("SIGKILL");
      await first.exited;
      const banner = page.getByText("The sandbox does not answer. This is what it reported last.");
      await banner.waitFor();
      await page.locator(".environment").getByText("Not connected").waitFor();
      expect(await rowNames(page, "Events")).toEqual(["app_open"]);
      expect(await page.getByRole("button", { name: "Clear events…" }).isDisabled()).toBe(true);
      expect(await findingsOfAxe(page)).toEqual([]);
      // The runs are not the sandbox's, so their views have no banner.
      await page.getByRole("link", { name: "Runs", exact: true }).click();
      await banner.waitFor({ state: "detached" });
      await page.getByRole("link", { name: "Events" }).click();
      await banner.waitFor();
      await startSandboxProcess("--port", first.port);
      await banner.waitFor({ state: "detached" });
      // A session that the server does not know has ended, and the page says how to get another one.
      await page.evaluate('sessionStorage.setItem("session", "unknown")');
      await page.reload();
      await page.getByRole("heading", { name: "This page needs a link" }).waitFor();
      await page.getByText("Your session has ended: it lasts 12 hours, or until the server stops.").waitFor();
    },
    { mayLog: /Failed to load resource/ },
  );
  await asked;
});

test("an approver over HTTP looks at the events and targetings of an embedded sandbox, and changes nothing there", async () => {
  const folder = cleanEnvironment().TARGETING_MCP_STATE_DIR ?? "";
  const accessFile = join(folder, "access.json");
  writeAccess(accessFile, [{ name: "both", approves: true, tools: true }]);
  const server = await startHttp(cleanEnvironment({ ...EMBEDDED, TARGETING_MCP_ACCESS_FILE: accessFile }));
  const client = await clientOf(server.url, "both");
  await client.callTool("track_event", { uid: "u-1", eventName: "app_open" });
  await onPage(
    `${new URL(server.url).origin}/#/events`,
    async (page) => {
      await page.getByLabel("Token", { exact: true }).fill(TOKENS.both);
      await page.getByRole("button", { name: "Log in", exact: true }).click();
      await expect.poll(() => rowNames(page, "Events")).toEqual(["app_open"]);
      expect(await page.getByRole("button", { name: "Clear events…" }).count()).toBe(0);
      expect(await page.getByRole("link", { name: "Fault injection" }).count()).toBe(0);
      await page.getByRole("link", { name: "Targetings" }).click();
      await page.getByRole("heading", { name: "No targetings yet" }).waitFor();
      const faults = [{ on: "any", kind: "hold", times: 1 }];
      const added = await fetch(`${await addressOn(page)}/_sandbox/faults`, {
        method: "POST",
        body: JSON.stringify({ faults }),
      });
      expect(added.status).toBe(200);
      const banner = page.getByRole("region", { name: "Active faults" });
      await banner.getByText("1 fault is active: the sandbox fails on purpose.").waitFor();
      expect(await banner.locator("a, button").count()).toBe(0);
      await page.goto(`${new URL(server.url).origin}/#/faults`);
      await page.getByRole("heading", { name: "Nothing is waiting for you" }).waitFor();
      expect(await banner.count()).toBe(1);
    },
    { mayLog: /Failed to load resource.*401/ },
  );
});
