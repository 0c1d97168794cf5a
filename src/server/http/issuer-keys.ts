import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import * as z from "zod";
import { openHttp } from "../../api/http.ts";
import { isLoopback } from "../../settings/loopback.ts";
import { type Proxies, proxyFor } from "../../settings/proxy.ts";

/** Keys that are younger than this are not read again. */
const FRESH_MS = 10 * 60_000;
/** How long keys stay in use while they cannot be read again. */
const USABLE_MS = 60 * 60_000;
/** The least time between two reads, successful or not, while usable keys are known. */
const PAUSE_MS = 30_000;
const FETCH_TIMEOUT_MS = 5000;
/** An answer above this many bytes is not read. */
const LARGEST_ANSWER = 1_048_576;

/** Where an issuer's keys are. */
export interface IssuerKeysOptions {
  readonly issuer: string;
  /** Undefined: where the issuer's metadata says. */
  readonly jwksUrl: string | undefined;
  /** The proxies on the way to the issuer. */
  readonly proxies: Proxies;
}

/** The keys of the issuer cannot be read: so that tokens cannot be checked now. */
export class IssuerUnreachable extends Error {
  constructor(cause: unknown) {
    super("the keys of the authorization server cannot be read now; try again", { cause });
  }
}

interface Read {
  readonly keys: JWTVerifyGetKey;
  readonly at: number;
}

const keySet = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) });
const metadata = z.object({ issuer: z.string(), jwks_uri: z.string() });

/**
 * Finds the key of a token among the issuer's. The keys are read at the first token, when they are old, and for a key
 * that is not among them. Throws an IssuerUnreachable where no keys can be read, and the error of jose for a token with
 * an unknown key.
 */
export function issuerKeys(options: IssuerKeysOptions): JWTVerifyGetKey {
  let last: Read | undefined;
  let triedAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<Read> | undefined;
  const read = async (): Promise<Read> => {
    triedAt = Date.now();
    last = { keys: createLocalJWKSet(await keySetOf(options)), at: Date.now() };
    return last;
  };
  const readOnce = async (): Promise<Read> => {
    reading ??= read();
    try {
      return await reading;
    } catch (cause) {
      throw new IssuerUnreachable(cause);
    } finally {
      reading = undefined;
    }
  };
  const isPausing = () => Date.now() - triedAt < PAUSE_MS;
  const usable = async (): Promise<Read> => {
    const old = last !== undefined && Date.now() - last.at < USABLE_MS ? last : undefined;
    if (old !== undefined && (Date.now() - old.at < FRESH_MS || isPausing())) return old;
    try {
      return await readOnce();
    } catch (thrown) {
      if (old === undefined) throw thrown;
      return old;
    }
  };
  return async (header, token) => {
    const { keys } = await usable();
    try {
      return await keys(header, token);
    } catch (thrown) {
      if (!(thrown instanceof errors.JWKSNoMatchingKey) || isPausing()) throw thrown;
      const { keys: newest } = await readOnce();
      return newest(header, token);
    }
  };
}

async function keySetOf({ issuer, jwksUrl, proxies }: IssuerKeysOptions): Promise<JSONWebKeySet> {
  return keySet.parse(await fetched(jwksUrl ?? (await discovered(issuer, proxies)), proxies));
}

/** The `jwks_uri` of the issuer's metadata (RFC 8414, or OpenID Connect Discovery). */
async function discovered(issuer: string, proxies: Proxies): Promise<string> {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/+$/, "");
  const places = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ];
  let problem: unknown;
  for (const place of places) {
    try {
      return await jwksUriAt(place, issuer, proxies);
    } catch (thrown) {
      problem = thrown;
    }
  }
  throw new Error(`no metadata of ${issuer}`, { cause: problem });
}

async function jwksUriAt(place: string, issuer: string, proxies: Proxies): Promise<string> {
  const found = metadata.parse(await fetched(place, proxies));
  if (found.issuer !== issuer) throw new Error(`${place} is about another issuer`);
  const { protocol, href } = new URL(found.jwks_uri);
  if (protocol !== "https:" && !isLoopback(href)) throw new Error(`${place} names keys that travel in clear`);
  return href;
}

/** Reads JSON of the authorization server; redirects are not followed. Keys are read seldom: no connection is kept. */
async function fetched(address: string, proxies: Proxies): Promise<unknown> {
  const { origin, pathname, search } = new URL(address);
  const http = openHttp({
    url: origin,
    credential: {},
    requestTimeoutMs: FETCH_TIMEOUT_MS,
    largestAnswer: LARGEST_ANSWER,
    proxy: proxyFor(address, proxies),
  });
  try {
    const { statusCode, body } = await http.send({ operation: "issuerKeys", method: "GET", path: pathname + search });
    if (statusCode !== 200) throw new Error(`${address} answered ${statusCode}`);
    return JSON.parse(body.toString("utf8"));
  } finally {
    await http.close();
  }
}
