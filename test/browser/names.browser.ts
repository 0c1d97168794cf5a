import { expect, test } from "vitest";
import { rowNames, withBrowser } from "./browser.ts";
import { startSandboxProcess } from "./sandbox-process.ts";

const { onPage } = withBrowser();

const MARKUP = '<img src=x onerror="alert(1)"><b>bold</b>';
const SCRIPT = "</td></table><script>alert(2)</script>{{7*7}}";
const BIDI = "safe\u202Egnp.exe\u200B\nRunning";
const SHOWN_BIDI = "safe\\u{202E}gnp.exe\\u{200B}\\u{A}Running";
const SPACED = "two  spaces";
const LONG = "n".repeat(200_000);

test("names of markup, scripts, bidirectional marks and 200 KB are plain text in every view", async () => {
  const sandbox = await startSandboxProcess();
  const _id = "01HZZZZZZZZZZZZZZZZZZZZZZZ";
  await sandbox.seed({
    targetings: [{ _id, name: MARKUP }],
    options: [SCRIPT, BIDI, LONG, SPACED].map((name) => ({ targeting: _id, name, contexts: [SCRIPT] })),
  });
  for (const uid of [MARKUP, SCRIPT, BIDI, LONG])
    await sandbox.send({ uid, eventName: uid.slice(0, 200), [uid.slice(0, 900)]: uid });
  await onPage(sandbox.url, async (page) => {
    await expect.poll(() => rowNames(page, "Events")).toHaveLength(4);
    const events = await rowNames(page, "Events");
    expect(events.slice(1)).toEqual([SHOWN_BIDI, SCRIPT, MARKUP]);
    const rows = page.getByRole("table", { name: "Events" }).getByRole("rowheader").getByRole("link");
    for (const [at, body] of [LONG, SHOWN_BIDI.replace("\\u{A}", "\\n")].entries()) {
      await rows.nth(at).click();
      await expect.poll(() => page.locator("details pre").allTextContents()).toEqual([expect.stringContaining(body)]);
    }
    // While the pointer is on the list, new events are not shown, so it is moved away.
    await page.mouse.move(5, 5);
    // A sentence of the server is English, even if it begins with a name that is written from right to left.
    await sandbox.send({ uid: "u", eventName: "شراء" });
    await page.getByRole("link", { name: "شراء" }).click();
    const reason = page.getByRole("region", { name: "Event", exact: true }).locator(".reasons bdi").first();
    await expect.poll(() => reason.innerText()).toMatch(/^"شراء" is not a supported event/);
    expect(await reason.getAttribute("dir")).toBe("ltr");
    await page.getByLabel("Filter").fill("<script>");
    await expect.poll(() => rowNames(page, "Events")).toEqual([SCRIPT]);
    await page.getByRole("link", { name: "Targetings" }).click();
    await page.getByRole("button", { name: MARKUP }).click();
    await page.getByText(SHOWN_BIDI).waitFor();
    expect(await page.getByRole("button", { name: SCRIPT }).count()).toBe(1);
    expect(await page.locator("main").innerText()).toContain(SPACED);
    await page.getByLabel("Search").fill(SCRIPT);
    await expect.poll(() => rowNames(page, "Found")).toHaveLength(4);
    const found = await rowNames(page, "Found");
    expect(found.slice(0, 2)).toEqual([SCRIPT, SHOWN_BIDI]);
    expect(found[2]?.length).toBeLessThan(1000);
    expect(await page.locator("main script, main img, main b").count()).toBe(0);
  });
});
