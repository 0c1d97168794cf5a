import { createPublicKey } from "node:crypto";
import { createLocalJWKSet, type JWTVerifyGetKey } from "jose";
import * as z from "zod";
import type { Proxies } from "../settings/environment.ts";
import { issuerFetch, type KeptRead, keptRead } from "./issuer-reads.ts";

/** The location of an issuer's keys. */
export interface IssuerKeysOptions {
  readonly issuer: string;
  /** Undefined: taken from the issuer's metadata. */
  readonly jwksUrl: string | undefined;
  /** The proxies on the way to the issuer. */
  readonly proxies: Proxies;
}

/** Receives the problem with the issuer's keys, each time they are read. */
export type KeysProblem = (reason: string) => void;

/** What an issuer publishes: the usable keys, and the number of all members. */
interface PublishedKeys {
  readonly usable: readonly PublicJwk[];
  readonly count: number;
}

const keySet = z.object({ keys: z.array(z.unknown()) });
const text = z.string().exactOptional();
const publicJwk = z
  .looseObject({ kty: z.string(), crv: text, x: text, y: text, n: text, e: text })
  .refine((jwk) => !Object.hasOwn(jwk, "d"), "the private half may not be published");
type PublicJwk = z.infer<typeof publicJwk>;

/** Keeps the issuer's keys, and finds the key of a token among them, as jose requests it. */
export function issuerKeys(options: IssuerKeysOptions, problem: KeysProblem): KeptRead<JWTVerifyGetKey> {
  return keptRead(async () => {
    const { usable, count } = await publishedKeys(options);
    if (usable.length === 0) problem(noneUsable(count));
    return createLocalJWKSet({ keys: [...usable] });
  }, problem);
}

/** Describes what is wrong if an issuer publishes this many keys and none can be used. */
export function noneUsable(count: number): string {
  return count === 0 ? "no key is published" : `none of the ${count} published keys can be used`;
}

/** Reads the keys of an issuer. Unusable members are omitted (RFC 7517, 5). */
export async function publishedKeys(options: IssuerKeysOptions): Promise<PublishedKeys> {
  const { jwksUrl, proxies } = options;
  const address = jwksUrl ?? (await discovered(options));
  const answer = await issuerFetch(proxies)(address, { method: "GET", headers: {} });
  if (answer.status !== 200) throw new Error(`${address} answered ${answer.status}`);
  const { data } = keySet.safeParse(await answer.json().catch(() => undefined));
  if (data === undefined) throw new Error(`${address} did not answer with a set of keys`);
  return { usable: data.keys.flatMap(usableKey), count: data.keys.length };
}

async function discovered({ issuer, proxies }: IssuerKeysOptions): Promise<string> {
  // Loaded late: nothing is discovered if the address of the keys is set.
  const { endpointOf, readMetadata } = await import("./issuer-metadata.ts");
  return endpointOf(await readMetadata(issuer, proxies), "jwks_uri");
}

function usableKey(member: unknown): readonly PublicJwk[] {
  const { data } = publicJwk.safeParse(member);
  if (data === undefined) return [];
  try {
    createPublicKey({ key: data, format: "jwk" });
    return [data];
  } catch {
    // Of an unknown kind, or malformed.
    return [];
  }
}
