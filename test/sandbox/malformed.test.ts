import { connect } from "node:net";
import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod";
import { ROUTE, type SandboxService, withSandbox } from "./service.ts";

/** 200, and the statuses that the documents give for wrong requests and missing objects. */
const DOCUMENTED = [200, 400, 401, 403, 404, 405, 413];

/** The body of a refusal: a code with details, or for the event endpoint only a message. */
const refusal = z.union([
  z.strictObject({
    statusCode: z.number(),
    message: z.union([z.string(), z.array(z.string())]),
    error: z.string().optional(),
  }),
  z.strictObject({ statusCode: z.number(), errorCode: z.string(), timestamp: z.string() }),
  z.strictObject({ message: z.literal("!invalid") }),
]);

const ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const path = fc.oneof(
  fc.constantFrom(...Object.values(ROUTE), "/event", "/", "/context-targeting/", "//", "/context-targeting/%00"),
  fc.constantFrom("", "x", ULID, "__proto__", "%E0%A4%A", "..", "a/b").map((id) => `/context-targeting/${id}`),
  fc.constantFrom("", "x", ULID, "constructor", "%2F").map((id) => `/context-targeting/category/${id}`),
  fc
    .constantFrom("", "?limit=1", "?limit=x", "?limit=1&limit=2", "?parent=x", "?__proto__=1", "?offset=1e3", "?%")
    .map((query) => `/context-targeting/${ULID}/category${query}`),
);
const method = fc.constantFrom("GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS");

const key = fc.constantFrom(
  "items",
  "ids",
  "_id",
  "name",
  "contexts",
  "parent",
  "children",
  "options",
  "__proto__",
  "uid",
  "eventName",
);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, 0, -1, 1e308, "", "aa", ULID, "x".repeat(300), "\ud800", "constructor"),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.array(fc.tuple(key, tie("value")), { maxLength: 4 }).map((entries) => Object.fromEntries(entries)),
  ),
}));
const text = fc.oneof(
  value.map((json) => JSON.stringify(json)),
  value.map((json) => JSON.stringify({ items: [json] })),
  value.map((json) => JSON.stringify({ items: [{ _id: ULID, targeting: ULID, name: "aa", contexts: json }] })),
  value.map((json) => JSON.stringify({ uid: "u", eventName: "purchase", tx_id: json, items: json })),
  value.map((json) => JSON.stringify(json).slice(1)),
  fc.constantFrom("", "{", "[]]", "\u0000", "[".repeat(20_000), `{"items":${"[".repeat(5000)}${"]".repeat(5000)}}`),
  fc.string({ unit: "binary", maxLength: 40 }),
);

test("no request crashes the sandbox, and every answer is a documented one", () =>
  withSandbox(async (service) => {
    await fc.assert(
      fc.asyncProperty(method, path, text, async (sentMethod, sentPath, sentText) => {
        const bodiless = sentMethod === "GET" || sentMethod === "HEAD" || sentMethod === "OPTIONS";
        const headers = { "x-api-key": "sandbox-key", Authorization: "sandbox-app-key" };
        const reply = await service.sendText(sentMethod, sentPath, bodiless ? "" : sentText, headers);
        if (sentMethod === "OPTIONS" && sentPath === "/event") return;
        expect(DOCUMENTED).toContain(reply.status);
        if (reply.status === 200 || sentMethod === "HEAD") return;
        expect(refusal.safeParse(reply.body).data, JSON.stringify(reply.body)).toBeDefined();
      }),
      { seed: 20_264, numRuns: 1500 },
    );
    await stillServes(service);
  }));

test("what is no HTTP at all, or breaks off, leaves the sandbox as it was", () =>
  withSandbox(async (service) => {
    const start = "HTTP/1.1\r\nHost: localhost\r\n";
    const raw = [
      "nonsense\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      `CONNECT a:1 ${start}\r\n`,
      `OPTIONS * ${start}\r\n`,
      `POST /event ${start}Content-Length: 50\r\n\r\n{"uid"`,
      `POST ${ROUTE.addOptions} ${start}x-api-key: sandbox-key\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
      `POST ${ROUTE.addOptions} ${start}x-api-key: sandbox-key\r\nContent-Length: -1\r\n\r\n`,
      `GET / ${start}X: ${"y".repeat(100_000)}\r\n\r\n`,
    ];
    for (const sent of raw) await sendRaw(service, sent);
    await stillServes(service);
  }));

/** Sends raw text, and waits until the connection is closed. Ignores the answer. */
function sendRaw(service: SandboxService, sent: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(service.url).port), "127.0.0.1", () => socket.end(sent));
    socket.on("error", () => socket.destroy());
    socket.on("close", () => resolve());
    socket.resume();
  });
}

async function stillServes(service: SandboxService): Promise<void> {
  await service.control("POST", "/reset");
  const targeting = await service.create("Still here");
  expect(await service.get(`/context-targeting/${targeting}`)).toMatchObject({ name: "Still here" });
}
