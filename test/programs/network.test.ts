import { networkInterfaces } from "node:os";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { makeAuthority } from "../support/certificates.ts";
import { startProxy } from "../support/proxy.ts";
import { OPENING, startCommand, toolCall } from "../support/server-process.ts";
import { type Certificate, closedPort, type Received, type Reply, startStub } from "../support/stub-server.ts";

// The package contains only parts of the HTTP client, so the built command is tested with many kinds of networks. The
// checks use what agents see.

const TARGETING = "01JABCDEFGHJKMNPQRSTVWXYZ0";
const KEY = "key-of-targetings";
const EVENT_KEY = "key-of-events";

const answered = z.object({
  result: z.object({
    isError: z.boolean().optional(),
    structuredContent: z.looseObject({
      error: z.object({ message: z.string(), remedy: z.string().optional() }).optional(),
      failures: z.array(z.looseObject({ errorCode: z.string(), message: z.string(), remedy: z.string() })).optional(),
      status: z.string().optional(),
      targeting: z.looseObject({ name: z.string() }).optional(),
    }),
    content: z.array(z.object({ text: z.string() })).min(1),
  }),
});
const diagnosis = z.object({
  checks: z.array(z.object({ about: z.string(), state: z.string(), found: z.string(), remedy: z.string().optional() })),
});

/** A service that has an answer to every request. */
const answers = ({ url, method, body }: Received): unknown => {
  if (url.endsWith("/event")) return { message: "ok" };
  if (method === "GET") return { _id: TARGETING, name: "Spring" };
  const { length } = z.object({ items: z.array(z.unknown()) }).parse(JSON.parse(body)).items;
  const results = Array.from({ length }, (_, index) => ({ index, success: true, data: { _id: TARGETING } }));
  return { results, succeeded: length, failed: 0 };
};

async function startService(certificate?: Certificate) {
  return startStub((request) => ({ status: 200, json: answers(request) }), {
    ...(certificate !== undefined && { certificate }),
  });
}

/** Both APIs at one address, with short times for retries. */
const at = (url: string, more: Readonly<Record<string, string>> = {}) => ({
  TARGETING_API_URL: url,
  TARGETING_API_KEY: KEY,
  EVENT_API_URL: url,
  EVENT_APP_KEY: EVENT_KEY,
  TARGETING_MCP_RETRY_BUDGET_MS: "0",
  ...more,
});

const READ = ["get_targeting", { targetingId: TARGETING }] as const;
/** More than one part of a request can hold. */
const names = Array.from({ length: 3000 }, (_, number) => ({
  name: `Option ${number}`,
  contexts: [`context-${number}`],
}));
const WRITE = ["bulk_add_options", { targetingId: TARGETING, items: names }] as const;
const EVENT = ["track_event", { uid: "u-1", eventName: "app_open", platform: "web" }] as const;

/** Returns the answers to a read, a write and an event. */
async function calls(environment: Readonly<Record<string, string>>) {
  const command = startCommand([], environment);
  for (const message of OPENING) command.send(message);
  const call = async (id: number, [name, args]: readonly [string, unknown]) => {
    command.send(toolCall(id, name, args));
    return answered.parse(await command.answer(id)).result;
  };
  return { read: await call(1, READ), written: await call(2, WRITE), event: await call(3, EVENT) };
}

/** Returns the remedies in the answers to a read, a write and an event, and those of doctor for each API. */
async function remedies(environment: Readonly<Record<string, string>>) {
  const { read, written, event } = await calls(environment);
  const command = startCommand(["doctor", "--json"], environment);
  await command.exited;
  const { checks } = diagnosis.parse(JSON.parse(command.lines.join("\n")));
  const ofDoctor = checks.filter(({ about, state }) => state === "problem" && about.endsWith(" API"));
  const first = ({ structuredContent }: typeof written) => structuredContent.failures?.[0];
  return {
    found: [read.structuredContent.error, first(written), first(event), ...ofDoctor],
    all: [
      read.structuredContent.error?.remedy,
      first(written)?.remedy,
      first(event)?.remedy,
      ...ofDoctor.map(({ remedy }) => remedy),
    ],
    texts: [
      read.structuredContent.error?.message,
      first(written)?.message,
      first(event)?.message,
      ...ofDoctor.map(({ found }) => found),
    ],
  };
}

const succeeded = ({ read, written, event }: Awaited<ReturnType<typeof calls>>) => {
  expect(read.structuredContent.targeting?.name, JSON.stringify(read)).toBe("Spring");
  expect(written.structuredContent.status, JSON.stringify(written)).toBe("succeeded");
  expect(event.structuredContent.status, JSON.stringify(event)).toBe("succeeded");
};

/** A host name that only the proxy knows. */
const HOST = "api.example.test";
const basic = (credentials: string) => `Basic ${Buffer.from(credentials).toString("base64")}`;

describe("a proxy on the way", () => {
  test("forwards what is in clear, with the keys and whole bodies", async () => {
    const service = await startService();
    const proxy = await startProxy({ to: service.url });
    succeeded(await calls(at(`http://${HOST}/v1`, { HTTP_PROXY: proxy.url, HTTPS_PROXY: await closedPort() })));
    expect(proxy.asked.map(({ line }) => line)).toEqual(
      expect.arrayContaining([
        `GET http://${HOST}/v1/context-targeting/${TARGETING}`,
        `POST http://${HOST}/v1/context-targeting/category/bulk/create`,
        `POST http://${HOST}/v1/event`,
      ]),
    );
    expect(service.received).toHaveLength(proxy.asked.length);
    for (const { headers } of service.received) {
      expect(headers.host).toBe(HOST);
      expect([headers["x-api-key"], headers.authorization]).toContain(
        headers["x-api-key"] === undefined ? EVENT_KEY : KEY,
      );
    }
  });

  test("opens tunnels for https, in which the certificate of the service counts", async () => {
    const authority = makeAuthority();
    const service = await startService(authority.certificateFor(HOST));
    const proxy = await startProxy({ to: service.url });
    const environment = at(`https://${HOST}`, {
      https_proxy: proxy.url,
      HTTP_PROXY: await closedPort(),
      NODE_EXTRA_CA_CERTS: authority.file,
    });
    succeeded(await calls(environment));
    expect(new Set(proxy.asked.map(({ line }) => line))).toEqual(new Set([`CONNECT ${HOST}:443`]));
    expect(service.received.some(({ headers }) => headers["x-api-key"] === KEY)).toBe(true);
  });

  test("is spoken to by TLS where its address says so", async () => {
    const authority = makeAuthority();
    const service = await startService(authority.certificateFor(HOST));
    const inClear = await startService();
    const certificate = authority.certificateFor("localhost");
    const tunnelling = await startProxy({ to: service.url, certificate });
    const forwarding = await startProxy({ to: inClear.url, certificate });
    const byName = (url: string) => url.replace("127.0.0.1", "localhost");
    const more = { NODE_EXTRA_CA_CERTS: authority.file, HTTP_PROXY: byName(forwarding.url) };
    succeeded(await calls(at(`https://${HOST}:8443`, { ...more, HTTPS_PROXY: byName(tunnelling.url) })));
    expect(tunnelling.asked[0]?.line).toBe(`CONNECT ${HOST}:8443`);
    succeeded(await calls(at(`http://${HOST}:8080`, more)));
    expect(forwarding.asked[0]?.line).toBe(`GET http://${HOST}:8080/context-targeting/${TARGETING}`);
  });

  test.each([
    ["http", "HTTP_PROXY"],
    ["https", "HTTPS_PROXY"],
  ])("gets the user and the password of its address (%s), which nothing else shows", async (scheme, variable) => {
    const authority = makeAuthority();
    const service = await startService(scheme === "https" ? authority.certificateFor(HOST) : undefined);
    const proxy = await startProxy({ to: service.url, credentials: basic("jo@corp:p:ss") });
    const address = proxy.url.replace("http://", "http://jo%40corp:p%3Ass@");
    const environment = at(`${scheme}://${HOST}`, { NODE_EXTRA_CA_CERTS: authority.file });
    // The proxy's address may have no scheme.
    for (const given of [address, address.replace("http://", "")]) {
      succeeded(await calls({ ...environment, [variable]: given }));
    }
    expect(new Set(proxy.asked.map(({ credentials }) => credentials))).toEqual(new Set([basic("jo@corp:p:ss")]));
    for (const { headers } of service.received) expect(headers["proxy-authorization"]).toBeUndefined();

    const { all, texts } = await remedies({
      ...environment,
      [variable]: proxy.url.replace("http://", "http://jo:no@"),
    });
    expect(all).toHaveLength(5);
    for (const remedy of all) expect(remedy).toContain(`Put the user and the password into HTTPS_PROXY`);
    for (const text of texts) expect(text).toContain("the proxy asks for a user and a password (407)");
  });

  test("is not asked for the hosts of NO_PROXY", async () => {
    const service = await startService();
    const proxy = await startProxy({ to: service.url });
    const { texts } = await remedies(
      at(`http://${HOST}`, { HTTP_PROXY: proxy.url, NO_PROXY: "other.test,.example.test" }),
    );
    for (const text of texts) expect(text).toMatch(/the host name (is unknown|could not be looked up)/);
    expect(proxy.asked).toEqual([]);
    succeeded(await calls(at(`http://${HOST}`, { HTTP_PROXY: proxy.url, NO_PROXY: "other.test" })));
  });

  test("that refuses, or is not there, is named with what to do", async () => {
    const service = await startService();
    const proxy = await startProxy({ to: service.url, refusing: 403 });
    const refused = await remedies(at(`https://${HOST}`, { HTTPS_PROXY: proxy.url }));
    for (const text of refused.texts) expect(text).toContain("refused to connect to the service: status 403");
    for (const remedy of refused.all)
      expect(remedy).toMatch(/Have the proxy let the host in (TARGETING|EVENT)_API_URL/);
    for (const scheme of ["http", "https"]) {
      const nobody = await closedPort();
      const gone = await remedies(at(`${scheme}://${HOST}`, { HTTP_PROXY: nobody, HTTPS_PROXY: nobody }));
      for (const text of gone.texts)
        expect(text).toContain("the proxy could not be reached: the connection was refused");
      for (const remedy of gone.all) expect(remedy).toContain("Check the address in HTTPS_PROXY");
    }
  });
});

describe("certificates", () => {
  test("of a private authority are accepted with NODE_EXTRA_CA_CERTS, and its lack is named", async () => {
    const authority = makeAuthority();
    const service = await startService(authority.certificateFor("localhost"));
    const environment = at(service.url.replace("127.0.0.1", "localhost"));
    succeeded(await calls({ ...environment, NODE_EXTRA_CA_CERTS: authority.file }));
    const { all, texts } = await remedies(environment);
    expect(all).toHaveLength(5);
    for (const remedy of all) expect(remedy).toContain("Set NODE_EXTRA_CA_CERTS to a PEM file");
    for (const text of texts) expect(text).toContain("signed by an authority that Node does not know");
  });

  test.each([
    ["for another host", "other.example.test", 2, /Set (TARGETING|EVENT)_API_URL to a host name/],
    ["that has expired", "localhost", -1, /Check the clock of this machine/],
  ])("%s", async (_case, host, days, words) => {
    const authority = makeAuthority();
    const service = await startService(authority.certificateFor(host, days));
    const url = service.url.replace("127.0.0.1", "localhost");
    const { all } = await remedies(at(url, { NODE_EXTRA_CA_CERTS: authority.file }));
    expect(all).toHaveLength(5);
    for (const remedy of all) expect(remedy).toMatch(words);
    expect(service.received).toEqual([]);
  });

  test("a port that speaks no TLS", async () => {
    const service = await startService();
    const { all } = await remedies(at(service.url.replace("http:", "https:")));
    for (const remedy of all) expect(remedy).toMatch(/Check the scheme and the port in (TARGETING|EVENT)_API_URL/);
  });
});

test("a host that no one knows, and a port on which nobody listens", async () => {
  const unknown = await remedies(at("http://no-such-host.invalid"));
  expect(unknown.all).toHaveLength(5);
  for (const remedy of unknown.all) expect(remedy).toMatch(/Check the host in (TARGETING|EVENT)_API_URL/);
  const nobody = await remedies(at(await closedPort()));
  for (const remedy of nobody.all)
    expect(remedy).toMatch(/No program listens at this address\. Check .* (TARGETING|EVENT)_API_URL/);
});

describe("answers that were changed on the way", () => {
  test("bodies that were compressed, though nobody asked for it", async () => {
    const pack = {
      gzip: gzipSync,
      deflate: deflateSync,
      // Some servers send this encoding without the header of zlib.
      Deflate: deflateRawSync,
      br: brotliCompressSync,
      "gzip, br": (body: Buffer) => brotliCompressSync(gzipSync(body)),
    };
    const left = Object.entries(pack);
    const used: string[] = [];
    const service = await startStub((request) => {
      const [encoding, compress] = left[used.length % left.length] ?? ["gzip", gzipSync];
      used.push(encoding);
      const text = compress(Buffer.from(JSON.stringify(answers(request))));
      return { status: 200, text, headers: { "content-encoding": encoding } };
    });
    succeeded(await calls(at(service.url)));
    succeeded(await calls(at(service.url)));
    expect(new Set(used)).toEqual(new Set(Object.keys(pack)));
  });

  test("bodies whose compression cannot be read, or that become huge, are named", async () => {
    const replies: Readonly<Record<string, readonly [string, Buffer]>> = {
      GET: ["br", brotliCompressSync(Buffer.alloc(65 * 1_048_576, 0x20))],
      POST: ["zstd", Buffer.from("whatever")],
    };
    const service = await startStub(({ method }) => {
      const [encoding, text] = replies[method] ?? ["gzip", Buffer.from("no gzip")];
      return { status: 200, text, headers: { "content-encoding": encoding } };
    });
    const { read, written } = await calls(at(service.url));
    expect(read.structuredContent.error?.message).toContain("the answer is too large to read");
    expect(JSON.stringify(written.structuredContent.failures)).toContain("compressed in a way that cannot be read");
  });

  test("a redirect is not followed, and its end is named", async () => {
    const elsewhere = await startService();
    const reply: Reply = { status: 308, text: "", headers: { location: `${elsewhere.url}/moved` } };
    const service = await startStub(() => reply);
    const { all, texts } = await remedies(at(service.url));
    expect(all).toHaveLength(5);
    for (const text of texts) expect(text).toMatch(/a redirect \(status 308\) to "http:\/\/127\.0\.0\.1:\d+\/moved"/);
    for (const remedy of all) expect(remedy).toMatch(/Set (TARGETING|EVENT)_API_URL to the final address/);
    expect(elsewhere.received).toEqual([]);
  });

  test.each([401, 403])("a page of a firewall with status %i is told from the service", async (status) => {
    const page =
      "<!DOCTYPE html>\n<html><head><title>Access &amp; identity\n check</title></head><body>No</body></html>";
    const service = await startStub(() => ({ status, text: page, headers: { "content-type": "text/html" } }));
    const { all, texts } = await remedies(at(service.url));
    expect(all).toHaveLength(5);
    for (const text of texts) {
      expect(text).toContain(`status ${status} came from something between this server and the service`);
      expect(text).toContain('"Access & identity check"');
    }
    for (const remedy of all) expect(remedy).toMatch(/^Check (TARGETING|EVENT)_API_URL, and have the firewall/);
  });
});

const hasIpv6 = Object.values(networkInterfaces()).some((of) => of?.some(({ address }) => address === "::1"));

test.skipIf(!hasIpv6)("an address of IPv6", async () => {
  const service = await startStub((request) => ({ status: 200, json: answers(request) }), { host: "::1" });
  expect(service.url).toContain("[::1]");
  succeeded(await calls(at(service.url)));
});
