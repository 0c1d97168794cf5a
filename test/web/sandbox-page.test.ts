import { networkInterfaces } from "node:os";
import { expect, test } from "vitest";
import { getWithHost, sessionIn, startSandboxProcess } from "../browser/sandbox-process.ts";

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/** Loads the page. Returns the session that this starts. */
async function openSession(url: string) {
  const page = await fetch(url);
  const html = await page.text();
  const token = sessionIn(html);
  const post = (path: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
    fetch(url + path, {
      method: "POST",
      headers: { origin: url, "content-type": "application/json", "x-page-token": token, ...headers },
      body: JSON.stringify(body),
    });
  return { page, html, token, post };
}

test("the page, its script, its style and its data come with the headers of the page", async () => {
  const sandbox = await startSandboxProcess();
  const { page, html, token } = await openSession(sandbox.url);
  expect(page.headers.getSetCookie()).toEqual([]);
  expect(token).toMatch(/^[\w-]{100,}$/);
  const paths = ["/", "/page/page.js", "/page/page.css", "/page/events", "/page/targetings?search=a", "/page/nothing"];
  for (const path of paths) {
    const { headers } = await fetch(sandbox.url + path, { headers: { "x-page-token": token } });
    expect(headers.get("content-security-policy"), path).toBe(CSP);
    expect(headers.get("referrer-policy"), path).toBe("no-referrer");
    expect(headers.get("x-content-type-options"), path).toBe("nosniff");
    expect(headers.get("cache-control"), path).toBe("no-store");
    expect(headers.get("access-control-allow-origin"), path).toBeNull();
  }
  expect(html).not.toMatch(/<script>|<style|style=|\son\w+=/);
});

test("data needs a session, and a change needs this page's Origin and token as well", async () => {
  const sandbox = await startSandboxProcess();
  const { post, token } = await openSession(sandbox.url);
  const other = await startSandboxProcess();
  const { token: ofOther } = await openSession(other.url);
  for (const path of ["/page/stream", "/page/events", "/page/events/1", "/page/targetings/x"]) {
    expect((await fetch(sandbox.url + path)).status, path).toBe(401);
    for (const wrong of [`${token}A`, ofOther]) {
      expect((await fetch(sandbox.url + path, { headers: { "x-page-token": wrong } })).status, path).toBe(401);
    }
  }
  const fault = { operation: "any", kind: "reset", times: 1 };
  const refused = [
    { "x-page-token": ofOther },
    { origin: "http://evil.example" },
    { origin: "null" },
    { origin: `http://localhost:${sandbox.port}` },
    { "x-page-token": "" },
    { "content-type": "text/plain" },
  ];
  for (const headers of refused) {
    const answer = await post("/page/faults", fault, headers);
    expect([401, 403, 415], JSON.stringify(headers)).toContain(answer.status);
  }
  expect(await (await fetch(`${sandbox.url}/_sandbox/faults`)).json()).toEqual({ faults: [] });
  expect((await post("/page/faults", fault)).status).toBe(200);
  expect(await (await fetch(`${sandbox.url}/_sandbox/faults`)).json()).toMatchObject({ faults: [{ met: 0 }] });
  expect((await post("/page/faults/1/remove", {})).status).toBe(200);
  expect((await post("/page/faults/1/remove", {})).status).toBe(404);
  expect((await post("/page/faults", { ...fault, kind: "no such kind" })).status).toBe(400);
  expect((await post("/page/nothing", {})).status).toBe(404);
});

test("a name that points here, and machines that are not this one, get no page", async () => {
  const sandbox = await startSandboxProcess("--host", "0.0.0.0");
  const loopback = `http://127.0.0.1:${sandbox.port}`;
  expect(await getWithHost(loopback, `127.0.0.1:${sandbox.port}`)).toBe(200);
  expect(await getWithHost(loopback, "rebound.example")).toBe(403);
  expect(await getWithHost(loopback, "rebound.example", "/page/page.js")).toBe(403);
  const outside = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ internal, family }) => !internal && family === "IPv4");
  if (outside === undefined) return;
  for (const path of ["/", "/page/page.js", "/page/stream"]) {
    expect(
      await getWithHost(`http://${outside.address}:${sandbox.port}`, `127.0.0.1:${sandbox.port}`, path),
      path,
    ).toBe(404);
  }
});

test("the terminal tells each event, and why it would be thrown away; with --quiet it does not", async () => {
  const sandbox = await startSandboxProcess();
  const quiet = await startSandboxProcess("--quiet");
  for (const { send } of [sandbox, quiet]) {
    await send({ uid: "u-1", eventName: "app_open" });
    await send({ uid: "u-2\u202E", eventName: "sign_up" });
    await send({ eventName: "app_open" });
  }
  await expect.poll(() => sandbox.lines.at(-1)).toContain("rejected");
  const lines = sandbox.lines.slice(-3).map((line) => line.replace(/^\d\d:\d\d:\d\d /, ""));
  expect(lines[0]).toBe("recorded  app_open  uid u-1");
  expect(lines[1]).toMatch(/^ignored {2}sign_up {2}uid u-2\\u\{202E\} {2}"sign_up" needs "method".*add "method"$/);
  expect(lines[2]).toMatch(/^rejected {2}app_open {2}uid \(none\) {2}"uid" is missing; add "uid"$/);
  expect(quiet.lines.join("\n")).not.toContain("app_open  uid");
});
