import { createPublicKey } from "node:crypto";
import { createLocalJWKSet, type JWTVerifyGetKey } from "jose";
import * as z from "zod";
import type { Proxies } from "../settings/environment.ts";
import { issuerFetch, type KeptRead, keptRead } from "./issuer-reads.ts";

export interface IssuerKeysOptions {
  readonly issuer: string;
  /** The address of the issuer's keys. If undefined, it is taken from the issuer's metadata. */
  readonly jwksUrl: string | undefined;
  readonly proxies: Proxies;
}

export type KeysProblem = (reason: string) => void;

const keySet = z.object({ keys: z.array(z.unknown()) });
const text = z.string().exactOptional();
const publicJwk = z
  .looseObject({ kty: z.string(), crv: text, x: text, y: text, n: text, e: text })
  .refine((jwk) => !Object.hasOwn(jwk, "d"), "a private key must not be published");
type PublicJwk = z.infer<typeof publicJwk>;

export function issuerKeys(options: IssuerKeysOptions, problem: KeysProblem): KeptRead<JWTVerifyGetKey> {
  return keptRead(async () => {
    const { usable, count } = await publishedKeys(options);
    if (usable.length === 0) problem(noneUsable(count));
    return createLocalJWKSet({ keys: [...usable] });
  }, problem);
}

export function noneUsable(count: number): string {
  return count === 0 ? "no key is published" : `none of the ${count} published keys can be used`;
}

/** Reads the issuer's keys. Returns the usable ones (RFC 7517, 5), and in `count` how many there are in all. */
export async function publishedKeys(options: IssuerKeysOptions) {
  const { jwksUrl, proxies } = options;
  const address = jwksUrl ?? (await discovered(options));
  const answer = await issuerFetch(proxies)(address, { method: "GET", headers: {} });
  if (answer.status !== 200) throw new Error(`${address} answered with status ${answer.status}`);
  const { data } = keySet.safeParse(await answer.json().catch(() => undefined));
  if (data === undefined) throw new Error(`${address} did not answer with a set of keys`);
  return { usable: data.keys.flatMap(usableKey), count: data.keys.length };
}

async function discovered({ issuer, proxies }: IssuerKeysOptions): Promise<string> {
  // Imported only when needed, so that the server starts fast.
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
    return [];
  }
}
