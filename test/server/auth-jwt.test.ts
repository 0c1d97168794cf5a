import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { jwtVerifier } from "../../src/server/http/auth-jwt.ts";
import { IssuerUnreachable } from "../../src/server/http/issuer-keys.ts";
import { startIssuer } from "../support/issuer.ts";
import { startProxy } from "../support/proxy.ts";
import { startStub } from "../support/stub-server.ts";

const AUDIENCE = "https://mcp.example.com/mcp";

const options = { audience: AUDIENCE, projectClaim: undefined };

test("the issuer's keys are read through the proxy, once for many tokens", async () => {
  const issuer = await startIssuer();
  const proxy = await startProxy({ to: issuer.url });
  const jwksUrl = "http://keys.example.test/keys";
  const verifier = jwtVerifier({ ...options, issuer: issuer.url, jwksUrl, proxies: { http: proxy.url } });
  for (const sub of ["alice", "bob"]) {
    const token = await issuer.token({ aud: AUDIENCE, sub, scope: "targeting:read" });
    expect(await verifier.verify(token)).toMatchObject({
      name: `oauth:${issuer.url} ${sub}`,
      scopes: ["targeting:read"],
    });
  }
  expect(proxy.asked.map(({ line }) => line)).toEqual([`GET ${jwksUrl}`]);
});

test("the issuer's metadata is asked for through the proxy for https, and hosts of NO_PROXY without", async () => {
  const issuer = await startIssuer();
  const proxy = await startProxy({ to: issuer.url });
  const token = await issuer.token({ aud: AUDIENCE });
  const at = { ...options, issuer: "https://login.example.test", jwksUrl: undefined };
  await expect(jwtVerifier({ ...at, proxies: { https: proxy.url } }).verify(token)).rejects.toThrow(IssuerUnreachable);
  expect(new Set(proxy.asked.map(({ line }) => line))).toEqual(new Set(["CONNECT login.example.test:443"]));
  const around = { https: proxy.url, none: "login.example.test" };
  const before = proxy.asked.length;
  await expect(jwtVerifier({ ...at, proxies: around }).verify(token)).rejects.toThrow(IssuerUnreachable);
  expect(proxy.asked).toHaveLength(before);
});

describe("while the issuer is away", () => {
  const MINUTE = 60_000;
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Says what a verifier makes of a token that is valid at any time of the test. */
  async function start() {
    vi.useFakeTimers({ toFake: ["Date"] });
    const issuer = await startIssuer();
    const verifier = jwtVerifier({ ...options, issuer: issuer.url, jwksUrl: undefined, proxies: {} });
    const token = await issuer.token({ aud: AUDIENCE, exp: issuer.now() + 86_400 });
    const later = (minutes: number) => {
      vi.setSystemTime(Date.now() + minutes * MINUTE);
      return verifier.verify(token);
    };
    return { issuer, verifier, later };
  }

  test("the last good keys are used on for an hour, and no longer", async () => {
    const { issuer, later } = await start();
    await later(0);
    issuer.away(true);
    for (const minutes of [5, 15, 20, 19]) expect(await later(minutes)).toMatchObject({ name: expect.any(String) });
    await expect(later(2)).rejects.toThrow(IssuerUnreachable);
    issuer.away(false);
    expect(await later(1)).toMatchObject({ name: expect.any(String) });
  });

  test("it is not asked anew for every token", async () => {
    const { issuer, later } = await start();
    await later(0);
    issuer.away(true);
    await later(20);
    const asked = issuer.received.length;
    await Promise.all([later(0), later(0), later(0.1)]);
    expect(issuer.received).toHaveLength(asked);
    await later(1);
    expect(issuer.received.length).toBeGreaterThan(asked);
  });

  test("a token whose key is not among them cannot be judged, but for a while after they were read", async () => {
    const { issuer, verifier, later } = await start();
    await later(0);
    const other = await startIssuer();
    const stranger = await other.token({ aud: AUDIENCE }, "issuer", "two");
    await expect(verifier.verify(stranger)).rejects.toThrow("the token is not valid");
    issuer.away(true);
    await later(1);
    await expect(verifier.verify(stranger)).rejects.toThrow(IssuerUnreachable);
  });
});

describe("what an issuer answers", () => {
  const LARGEST = 1_048_576;

  test("is read up to 1 MB", async () => {
    const keys = '{"keys":[]}';
    const padded = (bytes: number) => keys + " ".repeat(bytes - keys.length);
    let bytes = LARGEST;
    const { url } = await startStub(() => ({ status: 200, text: padded(bytes) }));
    const verified = async () => {
      const issuer = await startIssuer();
      const verifier = jwtVerifier({ ...options, issuer: issuer.url, jwksUrl: `${url}/keys`, proxies: {} });
      return verifier.verify(await issuer.token({ aud: AUDIENCE }));
    };
    await expect(verified()).rejects.toThrow("the token is not valid");
    bytes = LARGEST + 1;
    await expect(verified()).rejects.toThrow(IssuerUnreachable);
  });

  test("does not have to end by itself", async () => {
    let sent = 0;
    const { url } = await startStub(() => (response) => {
      response.writeHead(200);
      const chunk = Buffer.alloc(65_536, 0x20);
      const more = (): void => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length;
      };
      response.on("drain", more);
      more();
    });
    onTestFinished(() => expect(sent).toBeLessThan(64 * LARGEST));
    const issuer = await startIssuer();
    const verifier = jwtVerifier({ ...options, issuer: issuer.url, jwksUrl: `${url}/keys`, proxies: {} });
    await expect(verifier.verify(await issuer.token({ aud: AUDIENCE }))).rejects.toThrow(IssuerUnreachable);
  });
});

test("whom a token stands for: a sub and a client_id are never the same, nor those of two issuers", async () => {
  const [one, two] = [await startIssuer(), await startIssuer()];
  const nameOf = async (issuer: typeof one, claims: Record<string, unknown>) => {
    const verifier = jwtVerifier({ ...options, issuer: issuer.url, jwksUrl: undefined, proxies: {} });
    return (await verifier.verify(await issuer.token({ aud: AUDIENCE, ...claims }))).name;
  };
  expect(await nameOf(one, { sub: "alice", client_id: "app" })).toBe(`oauth:${one.url} alice`);
  expect(await nameOf(one, { sub: undefined, client_id: "alice" })).toBe(`client:${one.url} alice`);
  expect(await nameOf(two, { sub: "alice" })).toBe(`oauth:${two.url} alice`);
  await expect(nameOf(one, { sub: undefined })).rejects.toThrow("does not say whom it stands for");
});
