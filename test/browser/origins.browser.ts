import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { startLoginIssuer } from "../support/login-issuer.ts";
import { clientOf, startApproved, TOKENS } from "../support/page-http.ts";
import { pageOfPeople } from "../support/page-of-people.ts";
import { browserOfTest } from "../support/page-person.ts";
import { startCommand } from "../support/server-process.ts";
import { served } from "../support/stub-server.ts";
import { checkedReport } from "../support/writing.ts";
import { button, typeName, waitingRun, withBrowser } from "./browser.ts";
import { startDeciding } from "./deciding.ts";

const { onPage } = withBrowser();
const named = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
/** The browser logs what the server refuses. */
const REFUSED = { mayLog: /Failed to load resource|CORS policy|Refused to|Content Security Policy|frame/ } as const;

/** Starts another server on the same host, which records the cookies that it gets. */
async function startNeighbour() {
  const cookies: string[] = [];
  const server = createServer((request, response) => {
    cookies.push(request.headers.cookie ?? "");
    response.setHeader("content-type", "text/html").end("<!doctype html><title>Neighbour</title>");
  });
  return { url: await served(server), cookies };
}

/** Checks what a page on another port of the same host can do in the browser of a person who has a session. */
async function attack(page: Page, origin: string, runId: string): Promise<void> {
  const neighbour = await startNeighbour();
  const other = await page.context().newPage();
  for (const path of ["/", "/callback", "/login", "/page/stream"]) await other.goto(neighbour.url + path);
  expect(neighbour.cookies.join("")).toBe("");
  // The attacker's server uses the cookies that it got. The attacker's page uses what the browser adds by itself.
  const cookie = neighbour.cookies.join("; ");
  const stream = await fetch(`${origin}/page/stream`, { headers: { cookie } });
  expect(stream.status).toBe(401);
  await stream.body?.cancel();
  const approve = `${origin}/page/runs/${runId}/approve`;
  const headers = { cookie, origin, "content-type": "application/json" };
  expect((await fetch(approve, { method: "POST", headers, body: "{}" })).status).toBe(401);
  const got: unknown = await other.evaluate(
    `Promise.all([
      fetch("${origin}/page/stream", { credentials: "include" }).then((answer) => answer.text(), () => "refused"),
      fetch("${origin}/page/stream", { credentials: "include", headers: { "X-Page-Token": "a" } }).then((answer) => answer.text(), () => "refused"),
      fetch("${approve}", { method: "POST", credentials: "include", mode: "no-cors", body: "{}" }).then(({ type }) => type, () => "refused"),
      Promise.resolve(JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie])),
      new Promise((resolve) => {
        const frame = document.createElement("iframe");
        frame.src = "${origin}/";
        frame.onload = () => {
          try { resolve(frame.contentWindow.sessionStorage.length); } catch { resolve("refused"); }
        };
        document.body.append(frame);
      }),
    ])`,
  );
  expect(got).toEqual(["refused", "refused", "opaque", '[{},{},""]', "refused"]);
  await other.close();
}

/** Checks that a session works only in this tab, even after the tab is loaded again. */
async function staysInTab(page: Page, origin: string, otherwise: string): Promise<void> {
  expect(new URL(page.url()).href.replace(/#.*/, "")).toBe(`${origin}/`);
  await page.reload();
  await button(page, "approve").waitFor();
  const tab = await page.context().newPage();
  await tab.goto(`${origin}/`);
  await tab.getByText(otherwise).waitFor();
  expect(await button(tab, "approve").count()).toBe(0);
  await tab.close();
  expect(await page.context().cookies()).toEqual([]);
}

test("over stdio another port of the host gets nothing, and the person decides in this tab alone", async () => {
  const session = await startDeciding();
  const answer = session.ask();
  const link = await session.browser.address();
  const { origin } = new URL(link);
  await onPage(
    link,
    async (page) => {
      const runId = await waitingRun(page);
      await attack(page, origin, runId);
      await staysInTab(page, origin, "Open this page with a one-time link");
      await button(page, "approve").click();
      expect((await answer).structuredContent).toMatchObject({
        runId,
        status: "succeeded",
        approval: { decision: "approved", channel: "page" },
      });
    },
    REFUSED,
  );
});

test("so does the page of targeting-mcp page", async () => {
  const session = await startDeciding();
  const answer = session.ask();
  await session.browser.address();
  const other = browserOfTest();
  startCommand(["page"], { ...session.environment, ...other.env });
  const link = await other.address();
  const { origin } = new URL(link);
  await onPage(
    `${link}#/approvals`,
    async (page) => {
      const runId = await waitingRun(page);
      await attack(page, origin, runId);
      await staysInTab(page, origin, "Open this page with a one-time link");
      await button(page, "decline").click();
      expect((await answer).structuredContent).toMatchObject({
        runId,
        status: "cancelled",
        approval: { decision: "declined", channel: "page" },
      });
    },
    REFUSED,
  );
});

test("over HTTP as well, until the person logs out", async () => {
  const server = await startApproved([{ name: "agent" }, { name: "boss", approves: true }], {
    env: { TARGETING_MCP_WAIT_MS: "1500" },
  });
  const targetingId = await server.sandbox.targeting("Sports fans");
  const agent = await clientOf(server.url, "agent");
  const { runId } = checkedReport(await agent.callTool("delete_targeting", { ids: [targetingId] }));
  await onPage(
    `${server.origin}/#/approvals`,
    async (page) => {
      await page.getByLabel("Token", { exact: true }).fill(TOKENS.boss);
      await named(page, "Log in").click();
      expect(await waitingRun(page)).toBe(runId);
      await attack(page, server.origin, runId ?? "");
      await staysInTab(page, server.origin, "Log in to approve or decline changes");
      const logout = `${server.origin}/page/logout`;
      await page.route(logout, (route) => route.fulfill({ status: 500, json: { message: "not ended" } }));
      await named(page, "Log out").click();
      await page.getByText("not ended").waitFor();
      await page.unroute(logout);
      await named(page, "Log out").click();
      await named(page, "Log in").waitFor();
      expect(await page.evaluate("sessionStorage.length")).toBe(0);
      await page.reload();
      await named(page, "Log in").waitFor();
    },
    REFUSED,
  );
});

test("through the issuer a person comes back to this tab, and the code of the login leaves the address", async () => {
  const issuer = await startLoginIssuer({ clientId: "page-client", claims: { project: "shop" } });
  const server = await startApproved([{ name: "agent", project: "shop" }], {
    more: { projects: { shop: { targetingApiKey: "sandbox-key" } } },
    env: {
      TARGETING_MCP_OAUTH_ISSUER: issuer.url,
      TARGETING_MCP_OAUTH_CLIENT_ID: "page-client",
      TARGETING_MCP_OAUTH_PROJECT_CLAIM: "project",
      TARGETING_MCP_WAIT_MS: "1500",
    },
  });
  const targetingId = await server.sandbox.targeting("Sports fans");
  const agent = await clientOf(server.url, "agent");
  const { runId } = checkedReport(await agent.callTool("delete_targeting", { ids: [targetingId] }));
  await onPage(
    `${server.origin}/#/approvals`,
    async (page) => {
      await page.getByRole("link", { name: "Log in through the authorization server" }).click();
      expect(await waitingRun(page)).toBe(runId);
      await attack(page, server.origin, runId ?? "");
      await staysInTab(page, server.origin, "Log in to approve or decline changes");
      await typeName(page);
      await button(page, "approve").click();
      await page.getByText("No run is waiting for a decision").waitFor();
      // A person who follows a link to the callback, but did not start a login in this tab, is not logged in.
      const asked = issuer.received.length;
      await page.goto(`${server.origin}/callback?code=stolen&state=guessed`);
      await page.getByText("This login was not started in this tab").waitFor();
      expect(new URL(page.url()).pathname).toBe("/");
      expect(new URL(page.url()).search).toBe("");
      expect(issuer.received).toHaveLength(asked);
    },
    REFUSED,
  );
});

test("a link that is opened a second time shows nothing, and tells the first page", async () => {
  const session = await startDeciding();
  const answer = session.ask();
  const link = await session.browser.address();
  await onPage(
    link,
    async (page) => {
      await button(page, "approve").waitFor();
      const second = await page.context().newPage();
      await second.goto(link);
      await second.getByText("This link was used before").waitFor();
      expect(await button(second, "approve").count()).toBe(0);
      expect(await second.evaluate("sessionStorage.length")).toBe(0);
      await page.getByText("A second attempt to open this page").waitFor();
      // The page ignores clicks for a second after something has moved, for example when the list of changes arrives.
      const decline = button(page, "decline");
      const left = async () => {
        if ((await decline.count()) > 0) await decline.click();
        return decline.count();
      };
      await expect.poll(left, { interval: 1100 }).toBe(0);
      expect((await answer).structuredContent).toMatchObject({ status: "cancelled" });
    },
    REFUSED,
  );
});

test("a session is renewed every ten minutes without the person's doing, until the issuer ends it", async () => {
  const server = createServer();
  const origin = await served(server);
  const { page: serve, issuer, pass } = await pageOfPeople(`${origin}/`, { refreshes: true });
  server.on(
    "request",
    getRequestListener((request) => serve(request, "127.0.0.1"), { overrideGlobalObjects: false }),
  );
  await onPage(
    `${origin}/`,
    async (page) => {
      await page.getByRole("link", { name: "Log in through the authorization server" }).click();
      await page.locator(".environment").getByText("shop", { exact: true }).waitFor();
      issuer.becomes({ claims: { project: "other" } });
      pass(10);
      await page.locator(".environment").getByText("other", { exact: true }).waitFor();
      expect(issuer.count("/token")).toBe(2);
      issuer.away(true);
      pass(10);
      await page.getByText("The connection to the server is lost.").waitFor();
      issuer.away(false);
      await page.getByText("The connection to the server is lost.").waitFor({ state: "detached" });
      issuer.endsAll();
      pass(10);
      await named(page, "Log in").waitFor();
      expect(await page.evaluate("sessionStorage.length")).toBe(0);
    },
    REFUSED,
  );
});
