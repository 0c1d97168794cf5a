import { expect, test } from "vitest";
import { bodyOf, refusedPost } from "../../../src/page/serve/guard.ts";
import { pageSessions } from "../../../src/page/serve/sessions.ts";

const session = { token: "the-token" };
const OURS = {
  host: "127.0.0.1:4010",
  origin: "http://127.0.0.1:4010",
  "content-type": "application/json",
  "x-page-token": "the-token",
};

function post(headers: Readonly<Record<string, string | undefined>>, body = "{}"): Request {
  const given = Object.entries({ ...OURS, ...headers }).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, value]],
  );
  return new Request("http://127.0.0.1:4010/page/reset", { method: "POST", headers: given, body });
}

test("a POST of the page itself is carried out", () => {
  expect(refusedPost(post({}), session)).toBeUndefined();
  expect(refusedPost(post({ "sec-fetch-site": "same-origin" }), session)).toBeUndefined();
  expect(refusedPost(post({ host: "shop.example", origin: "https://shop.example" }), session)).toBeUndefined();
});

test.each([
  ["no Origin", { origin: undefined }, 403],
  ["Origin null", { origin: "null" }, 403],
  ["another host", { origin: "http://evil.example" }, 403],
  ["another port", { origin: "http://127.0.0.1:4011" }, 403],
  ["another name of this machine", { origin: "http://localhost:4010" }, 403],
  ["a file", { origin: "file://" }, 403],
  ["another site by what the browser says", { "sec-fetch-site": "cross-site" }, 403],
  ["no token", { "x-page-token": undefined }, 403],
  ["another token", { "x-page-token": "the-toke" }, 403],
  ["a form", { "content-type": "text/plain" }, 415],
])("a POST with %s is refused with a sentence and the headers of the page", async (_, headers, status) => {
  const refused = refusedPost(post(headers), session);
  expect(refused?.status).toBe(status);
  expect(await refused?.json()).toEqual({ message: expect.any(String) });
  expect(refused?.headers.get("content-security-policy")).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
  );
  expect(refused?.headers.get("referrer-policy")).toBe("no-referrer");
  expect(refused?.headers.get("x-content-type-options")).toBe("nosniff");
  expect(refused?.headers.get("cache-control")).toBe("no-store");
});

test("a body is data, or refused", async () => {
  expect(await bodyOf(post({}, '{"code":"c"}'))).toEqual({ data: { code: "c" } });
  expect(await bodyOf(post({}, ""))).toEqual({ data: {} });
  const answers = await Promise.all([bodyOf(post({}, "{")), bodyOf(post({}, `"${"a".repeat(70_000)}"`))]);
  expect(answers.map((answer) => answer instanceof Response && answer.status)).toEqual([400, 413]);
});

test("a session is known by its cookie for 12 hours, where its key is the same", () => {
  let now = 0;
  const given = { cookieName: "page-4010", key: new Uint8Array(32), now: () => now };
  const sessions = pageSessions(given);
  const cookie = sessions.open("ann.é\n1");
  expect(cookie).toMatch(/^page-4010=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/);
  const value = /=([^;]*)/.exec(cookie)?.[1] ?? "";
  const request = (text: string) => new Request("http://127.0.0.1/", { headers: { cookie: text } });
  const carried = request(`other=1; page-4010=${value}`);
  const opened = sessions.of(carried);
  expect(opened?.who).toBe("ann.é\n1");
  expect(pageSessions(given).of(carried)).toEqual(opened);
  expect(sessions.of(request(`page-4010=${/=([^;]*)/.exec(sessions.open("ann.é\n1"))?.[1]}`))?.token).not.toBe(
    opened?.token,
  );
  expect(pageSessions({ cookieName: "page-4010" }).of(carried)).toBeUndefined();
  for (const forged of [`page-4011=${value}`, `page-4010=${opened?.token}`, `page-4010=9${value}`, "page-4010=", ""]) {
    expect(sessions.of(request(forged)), forged).toBeUndefined();
  }
  now = 12 * 3_600_000;
  expect(sessions.of(carried)).toBeUndefined();
  expect(pageSessions({ cookieName: "p", secure: true }).open("ann")).toMatch(/; Secure$/);
});
