import { OAuthError } from "@modelcontextprotocol/server";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { IssuerUnreachable } from "../../src/http/issuer-reads.ts";
import { jwtVerifier } from "../../src/http/jwt.ts";
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
  const token = await issuer.token({ aud: AUDIENCE, iss: "https://login.example.test" });
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

  /** Returns a function that says what a verifier thinks of a token. The token is valid at any time of the test. */
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

  test("a token whose key is not among the known ones is wrong, whether they can be read again or not", async () => {
    const { issuer, verifier, later } = await start();
    await later(0);
    const other = await startIssuer();
    const stranger = await other.token({ aud: AUDIENCE, iss: issuer.url }, "issuer", "two");
    await expect(verifier.verify(stranger)).rejects.toThrow("the token is not valid");
    issuer.away(true);
    await later(1);
    const asked = issuer.received.length;
    await expect(verifier.verify(stranger)).rejects.toThrow("the token is not valid");
    expect(issuer.received.length).toBeGreaterThan(asked);
  });

  test("while no keys are known it is asked once in a while, and not at all for a token that no key could make valid", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const issuer = await startIssuer();
    issuer.away(true);
    const problems: string[] = [];
    const verifier = jwtVerifier({ ...options, issuer: issuer.url, jwksUrl: undefined, proxies: {} }, (reason) =>
      problems.push(reason),
    );
    const good = { aud: AUDIENCE, exp: issuer.now() + 86_400 };
    const token = await issuer.token(good);
    for (const wrong of [
      "no-token-at-all",
      "a.b.c",
      `${token.split(".").slice(0, 2).join(".")}`,
      await issuer.token({ ...good, aud: "https://other.example" }),
      await issuer.token({ ...good, iss: "https://other.example" }),
      await issuer.token({ ...good, exp: issuer.now() - 60 }),
      await issuer.token({ ...good, exp: undefined }),
    ]) {
      await expect(verifier.verify(wrong), wrong).rejects.toThrow(OAuthError);
    }
    expect(issuer.received).toEqual([]);
    await expect(verifier.verify(token)).rejects.toThrow(IssuerUnreachable);
    const asked = issuer.received.length;
    expect(asked).toBeGreaterThan(0);
    for (let times = 0; times < 20; times += 1) {
      await expect(verifier.verify(token)).rejects.toThrow(IssuerUnreachable);
    }
    expect(issuer.received).toHaveLength(asked);
    expect(problems).toEqual([expect.stringContaining("503")]);
    issuer.away(false);
    vi.setSystemTime(Date.now() + 6000);
    expect(await verifier.verify(token)).toMatchObject({ name: expect.any(String) });
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

describe("the keys that an issuer publishes", () => {
  const ISSUER = "https://login.example";

  /** Creates a verifier with these published keys, and tokens that the keys sign. */
  async function published(make: (keys: readonly Record<string, unknown>[]) => readonly unknown[], count = 2) {
    const pairs = await Promise.all(Array.from({ length: count }, () => generateKeyPair("ES256")));
    const keys = await Promise.all(pairs.map(async ({ publicKey }) => ({ ...(await exportJWK(publicKey)) })));
    const { url, received } = await startStub(() => ({ status: 200, json: { keys: make(keys) } }));
    const problems: string[] = [];
    const verifier = jwtVerifier({ ...options, issuer: ISSUER, jwksUrl: `${url}/keys`, proxies: {} }, (reason) =>
      problems.push(reason),
    );
    const signed = (nth: number, header: Record<string, unknown> = {}) => {
      const { privateKey } = pairs[nth] ?? {};
      if (privateKey === undefined) throw new Error("there is no such key");
      return new SignJWT({ iss: ISSUER, aud: AUDIENCE, sub: "alice", exp: Math.floor(Date.now() / 1000) + 300 })
        .setProtectedHeader({ alg: "ES256", ...header })
        .sign(privateKey);
    };
    return {
      verify: async (nth: number, header = {}) => verifier.verify(await signed(nth, header)),
      problems,
      received,
    };
  }

  test("may have members that cannot be used, which are ignored", async () => {
    const { verify, problems } = await published(([one, two]) => [
      null,
      "a text",
      7,
      [],
      {},
      { kty: 5 },
      { kty: "EC", crv: "P-256", kid: "one" },
      { kty: "RSA", n: "AQAB", kid: "one" },
      { kty: "unheard of", kid: "one" },
      { kty: "oct", k: "c2VjcmV0", kid: "one" },
      { ...two, d: two?.x, kid: "one" },
      { ...one, kid: "one", key_ops: "verify" },
      { ...one, kid: "one", use: 7 },
      { ...one, kid: "one", ext: "no" },
      { ...one, kid: "one", x5c: null },
    ]);
    expect(await verify(0, { kid: "one" })).toMatchObject({ name: `oauth:${ISSUER} alice` });
    await expect(verify(1, { kid: "one" })).rejects.toThrow("the token is not valid");
    expect(problems).toEqual([]);
  });

  test("may be none that can be used: a token is wrong then, and the reason is told", async () => {
    const { verify, problems } = await published(() => [{ kty: "EC", crv: "P-256" }, null]);
    await expect(verify(0)).rejects.toThrow("the token is not valid");
    expect(problems).toEqual(["none of the 2 published keys can be used"]);
  });

  test("may all fit a token that names none, which one of them signed", async () => {
    const { verify } = await published((keys) => keys.slice(0, 3), 4);
    for (const nth of [0, 1, 2]) expect(await verify(nth)).toMatchObject({ name: `oauth:${ISSUER} alice` });
    await expect(verify(3)).rejects.toThrow("the token is not valid");
  });

  test("are read again for a token that names none and that none of them signed", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    let count = 1;
    const { verify, received } = await published((keys) => keys.slice(0, count));
    expect(await verify(0)).toMatchObject({ name: `oauth:${ISSUER} alice` });
    count = 2;
    await expect(verify(1)).rejects.toThrow("the token is not valid");
    vi.setSystemTime(Date.now() + 31_000);
    expect(await verify(1)).toMatchObject({ name: `oauth:${ISSUER} alice` });
    expect(received).toHaveLength(2);
  });

  test("sign tokens of other kinds as well, which are no access tokens", async () => {
    const { verify } = await published((keys) => keys);
    for (const typ of [undefined, "JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt"]) {
      expect(await verify(0, typ === undefined ? {} : { typ }), typ).toMatchObject({ name: expect.any(String) });
    }
    for (const typ of ["logout+jwt", "id+jwt", "dpop+jwt", "secevent+jwt", "application/logout+jwt", "", "at+jwt "]) {
      await expect(verify(0, { typ }), typ).rejects.toThrow("the token's typ must be jwt or at+jwt");
    }
    const odd = { typ: ["at+jwt"] };
    await expect(verify(0, JSON.parse(JSON.stringify(odd)))).rejects.toThrow("the token's typ must be jwt or at+jwt");
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
  await expect(nameOf(one, { sub: undefined })).rejects.toThrow("has neither sub nor client_id");
});

test("a sub or client_id that a store could take for another one, or could not store, is refused", async () => {
  const issuer = await startIssuer();
  const verifier = jwtVerifier({ ...options, issuer: issuer.url, jwksUrl: undefined, proxies: {} });
  const verify = async (claims: Record<string, unknown>) =>
    verifier.verify(await issuer.token({ aud: AUDIENCE, sub: undefined, ...claims }));
  for (const claim of ["sub", "client_id"]) {
    for (const id of ["\ud800", "a\udc00", "a\0b", "a\nb", "\x7f", "x".repeat(2001), "", 5]) {
      await expect(verify({ [claim]: id }), JSON.stringify(id)).rejects.toThrow(`the token's ${claim} is not valid`);
    }
    for (const id of ["anna ☕ 안나 😀", "auth0|a b/c", "x".repeat(2000)]) {
      expect((await verify({ [claim]: id })).name).toMatch(new RegExp(` ${id.replaceAll("|", "\\|")}$`));
    }
  }
  await expect(verify({ sub: "a", scope: ["targeting:read"] })).rejects.toThrow("the token's scope is not valid");
});
