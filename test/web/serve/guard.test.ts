import { expect, test } from "vitest";
import * as z from "zod";
import { pageApp, RefusedRequest } from "../../../src/web/page.ts";
import { pageSessions, sealFor } from "../../../src/web/sessions.ts";

const OURS = {
  host: "127.0.0.1:4010",
  origin: "http://127.0.0.1:4010",
  "content-type": "application/json",
};

function post(headers: Readonly<Record<string, string | undefined>>, body = "{}"): Request {
  const given = Object.entries({ ...OURS, ...headers }).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, value]],
  );
  return new Request("http://127.0.0.1:4010/page/reset", { method: "POST", headers: given, body });
}

const ADDRESS = "http://127.0.0.1:4010";

/** Returns the page's answer to a request. The page sends posted data back. The token "none" opens no session. */
async function answered(request: Request, address = ADDRESS): Promise<Response> {
  const app = pageApp({
    address,
    shownAt: ["/", "/open/:code{.*}"],
    about: () => ({ session: "" }),
    async enter({ headers }) {
      if (headers.get("x-page-token") === "none") throw new RefusedRequest(401, "no session");
    },
  });
  app.get("/page/runs", () => Response.json([]));
  app.post("/page/reset", ({ var: { posted } }) => Response.json({ posted }));
  return app.fetch(request);
}

test("a POST of the page itself is carried out", async () => {
  const { status, headers } = await answered(post({}));
  expect([status, headers.get("cache-control"), headers.get("x-content-type-options")]).toEqual([
    ...[200, "no-store", "nosniff"],
  ]);
  expect((await answered(post({ "sec-fetch-site": "same-origin" }))).status).toBe(200);
  const there = { host: "shop.example", origin: "https://shop.example" };
  expect((await answered(post(there), "https://shop.example/mcp")).status).toBe(200);
});

test.each([
  ["GET", "/", 200, "<!doctype"],
  ["HEAD", "/", 200, ""],
  ["HEAD", "/open/the-code", 200, ""],
  ["GET", "/open/", 200, "<!doctype"],
  ["GET", "/open", 401, '{"message":"no session"}'],
  ["GET", "/page/runs", 401, '{"message":"no session"}'],
  ["PUT", "/page/runs", 401, '{"message":"no session"}'],
] as const)("without a session, %s %s is %i", async (method, path, status, begin) => {
  const headers = { "x-page-token": "none" };
  const answer = await answered(new Request(ADDRESS + path, { method, headers }));
  expect(answer.status).toBe(status);
  expect((await answer.text()).toLowerCase().slice(0, begin.length || 1)).toBe(begin);
  expect(answer.headers.get("content-security-policy")).toContain("default-src 'none'");
});

test.each([
  ["GET", "/page/runs", 200, []],
  ["HEAD", "/page/runs", 405, undefined],
  ["PUT", "/page/runs", 405, { message: "This method is not allowed at this address." }],
  ["DELETE", "/page/other", 405, { message: "This method is not allowed at this address." }],
  ["GET", "/page/other", 404, { message: "There is nothing at this address." }],
] as const)("with a session, %s %s is %i", async (method, path, status, body) => {
  const answer = await answered(new Request(ADDRESS + path, { method }));
  expect(answer.status).toBe(status);
  if (body !== undefined) expect(await answer.json()).toEqual(body);
  expect(answer.headers.get("cache-control")).toBe("no-store");
});

test("a POST without a session is refused before its body is read", async () => {
  expect((await answered(post({ "x-page-token": "none" }, "{"))).status).toBe(401);
});

test.each([
  ["no Origin", { origin: undefined }, 403],
  ["Origin null", { origin: "null" }, 403],
  ["another host", { origin: "http://evil.example" }, 403],
  ["another port", { origin: "http://127.0.0.1:4011" }, 403],
  ["another name of this machine", { origin: "http://localhost:4010" }, 403],
  ["a file", { origin: "file://" }, 403],
  ["another scheme of this host", { origin: "ftp://127.0.0.1:4010" }, 403],
  ["a path", { origin: "http://127.0.0.1:4010/" }, 403],
  ["a longer path", { origin: "http://127.0.0.1:4010/page?x#y" }, 403],
  ["a name before the host", { origin: "http://ann@127.0.0.1:4010" }, 403],
  ["capitals", { origin: "HTTP://127.0.0.1:4010" }, 403],
  ["two origins", { origin: "http://127.0.0.1:4010, http://127.0.0.1:4010" }, 403],
  ["another site by what the browser says", { "sec-fetch-site": "cross-site" }, 403],
  ["a form", { "content-type": "text/plain" }, 415],
])("a POST with %s is refused with a sentence and the headers of the page", async (_, headers, status) => {
  const refused = await answered(post(headers));
  expect(refused.status).toBe(status);
  expect(await refused.json()).toEqual({ message: expect.any(String) });
  expect(refused.headers.get("content-security-policy")).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
  );
  expect(refused.headers.get("referrer-policy")).toBe("no-referrer");
  expect(refused.headers.get("x-content-type-options")).toBe("nosniff");
  expect(refused.headers.get("cache-control")).toBe("no-store");
});

test.each([
  // The server's address, Host, Origin, and whether the POST counts as sent by the page.
  ["https://shop.example/mcp", "shop.example", "https://shop.example", true],
  ["https://shop.example/mcp", "shop.example:443", "https://shop.example", true],
  ["https://shop.example/mcp", "shop.example", "http://shop.example", false],
  ["https://shop.example/mcp", "other.example", "https://other.example", true],
  ["https://shop.example/mcp", "other.example", "http://other.example", false],
  ["https://shop.example/mcp", "127.0.0.1:3000", "http://127.0.0.1:3000", true],
  ["https://shop.example/mcp", "127.0.0.1:3000", "https://127.0.0.1:3000", false],
  ["https://localhost:8443/mcp", "localhost:8443", "https://localhost:8443", true],
  ["https://localhost:8443/mcp", "localhost:8443", "http://localhost:8443", false],
  ["http://0.0.0.0:3000/mcp", "10.0.0.5:3000", "http://10.0.0.5:3000", true],
  ["http://127.0.0.1:3000/mcp", "127.0.0.1:3000", "https://127.0.0.1:3000", false],
  ["http://127.0.0.1:3000/mcp", "[::1]:3000", "http://[::1]:3000", true],
] as const)(
  "of a server at %s, a POST to %s from %s is that of its page: %s",
  async (address, host, origin, isOurs) => {
    expect((await answered(post({ host, origin }), address)).status).toBe(isOurs ? 200 : 403);
  },
);

test("a body is data, or refused", async () => {
  expect(await (await answered(post({}, '{"code":"c"}'))).json()).toEqual({ posted: { code: "c" } });
  expect(await (await answered(post({}, ""))).json()).toEqual({ posted: {} });
  const answers = await Promise.all([answered(post({}, "{")), answered(post({}, `"${"a".repeat(70_000)}"`))]);
  expect(answers.map(({ status }) => status)).toEqual([400, 413]);
});

const HOUR = 3_600_000;
const request = (token: string) => new Request("http://127.0.0.1/", { headers: { "x-page-token": token } });

test("a session is known by its token for 12 hours, where its key is the same", async () => {
  let now = 0;
  const given = { person: z.string(), key: new Uint8Array(32), now: () => now };
  const sessions = pageSessions(given);
  const token = sessions.open("ann.é\n1");
  expect(token).toMatch(/^[\w-]+$/);
  expect(await sessions.of(request(token))).toMatchObject({ person: "ann.é\n1", endsAt: 12 * HOUR });
  expect(await pageSessions(given).of(request(token))).toEqual(await sessions.of(request(token)));
  const another = await sessions.of(request(sessions.open("ann.é\n1")));
  expect(another?.id).not.toBe((await sessions.of(request(token)))?.id);
  expect(await pageSessions({ ...given, key: new Uint8Array(32).fill(1) }).of(request(token))).toBeUndefined();
  expect(await pageSessions({ person: z.string() }).of(request(token))).toBeUndefined();
  const flipped = [...token].map((one, at) => token.slice(0, at) + (one === "A" ? "B" : "A") + token.slice(at + 1));
  for (const forged of [...flipped, `${token}A`, `${token}=`, "", "A", "A".repeat(38), token.slice(0, -4)]) {
    expect(await sessions.of(request(forged)), forged).toBeUndefined();
  }
  const carried = new Request("http://127.0.0.1/", { headers: { cookie: `X-Page-Token=${token}; session=${token}` } });
  expect(await sessions.of(carried)).toBeUndefined();
  now = 12 * HOUR - 1;
  expect(await sessions.of(request(token))).toBeDefined();
  now = 12 * HOUR;
  expect(await sessions.of(request(token))).toBeUndefined();
});

test("a session that is renewed lasts no longer, and one that was ended is over with all its tokens", async () => {
  let now = 0;
  const sessions = pageSessions({ person: z.string(), now: () => now });
  const first = sessions.open("ann", HOUR);
  now = HOUR - 1;
  const session = await sessions.of(request(first));
  if (session === undefined) throw new Error("there is no session");
  const second = sessions.renew(session, "ann, seen again");
  expect(await sessions.of(request(second))).toEqual({ ...session, person: "ann, seen again", endsAt: HOUR });
  const other = sessions.open("bob", 99 * HOUR);
  expect((await sessions.of(request(other)))?.endsAt).toBe(13 * HOUR - 1);
  await sessions.end(session);
  for (const token of [first, second]) expect(await sessions.of(request(token))).toBeUndefined();
  expect(await sessions.of(request(other))).toBeDefined();
});

test("a session that was ended stays over where the clock is wrong for a while", async () => {
  let now = 10 * HOUR;
  const shared = new Set<string>();
  const given = { person: z.string(), key: new Uint8Array(32), now: () => now };
  const store = { add: async (id: string) => void shared.add(id), has: async (id: string) => shared.has(id) };
  for (const one of [given, { ...given, shared: store }]) {
    const sessions = pageSessions(one);
    const token = sessions.open("ann");
    const [session, other] = [await sessions.of(request(token)), await sessions.of(request(sessions.open("bob")))];
    if (session === undefined || other === undefined) throw new Error("there is no session");
    await sessions.end(session);
    now += 20 * HOUR;
    await sessions.end(other);
    now -= 20 * HOUR;
    expect(await sessions.of(request(token))).toBeUndefined();
  }
  // After the clock was set back, sessions that another process has ended still count as ended.
  const sessions = pageSessions({ ...given, shared: store });
  const token = sessions.open("ann");
  const session = await sessions.of(request(token));
  now -= HOUR / 2;
  const kept = sessions.renew({ id: "", person: "", ...session, endsAt: now + HOUR }, "ann");
  shared.add(session?.id ?? "");
  expect(await sessions.of(request(kept))).toBeUndefined();
});

test("a session whose end cannot be stored stays open, so that its person can log out again", async () => {
  let isAway = true;
  const shared = new Set<string>();
  const store = {
    async add(id: string) {
      if (isAway) throw new Error("the store is away");
      shared.add(id);
    },
    has: async (id: string) => shared.has(id),
  };
  const sessions = pageSessions({ person: z.string(), shared: store });
  const token = sessions.open("ann");
  const session = await sessions.of(request(token));
  if (session === undefined) throw new Error("there is no session");
  await expect(sessions.end(session)).rejects.toThrow("the store is away");
  expect(await sessions.of(request(token))).toEqual(session);
  isAway = false;
  await sessions.end(session);
  expect(await sessions.of(request(token))).toBeUndefined();
  expect(shared).toEqual(new Set([session.id]));
});

test("what is sealed for one purpose is nothing for another, and an end that is no finite number, or too far away, is over", () => {
  const given = { key: new Uint8Array(32), content: z.string(), mostMs: 10, now: () => 0 };
  const [one, other] = [sealFor({ ...given, purpose: "one" }), sealFor({ ...given, purpose: "other" })];
  expect(one.open(one.seal("text", 1))).toEqual({ content: "text", endsAt: 1 });
  expect(other.open(one.seal("text", 1))).toBeUndefined();
  for (const end of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, -1, 11, 1e300]) {
    expect(one.open(one.seal("text", end)), String(end)).toBeUndefined();
  }
  expect(sealFor({ ...given, purpose: "one", now: () => Number.NaN }).open(one.seal("text", 1))).toBeUndefined();
  expect(sealFor({ ...given, purpose: "one", content: z.number() }).open(one.seal("text", 1))).toBeUndefined();
});
