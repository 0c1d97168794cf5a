import { OAuthError, OAuthErrorCode } from "@modelcontextprotocol/server";
import { createRemoteJWKSet, customFetch, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose";
import * as z from "zod";
import { type HttpAnswer, openHttp } from "../api/http.ts";
import { isLoopback, type Proxies, proxyFor } from "../settings/proxy.ts";

/** What counts of an access token. */
export interface AccessClaims {
  /** Whom the token stands for. */
  readonly subject: string;
  readonly scopes: readonly string[];
  /** What the project claim holds, where there is such a claim. */
  readonly project: string | undefined;
}

/** Checks access tokens. */
export interface JwtVerifier {
  /** Throws an OAuthError for a token that is not valid here, an IssuerUnreachable where that cannot be told. */
  verify(token: string): Promise<AccessClaims>;
}

/** The keys of the issuer cannot be read: whether a token is valid cannot be told now. */
export class IssuerUnreachable extends Error {}

/** Which tokens are valid. */
export interface JwtOptions {
  readonly issuer: string;
  readonly audience: string;
  readonly jwksUrl: string | undefined;
  readonly projectClaim: string | undefined;
  /** On the way to the issuer. */
  readonly proxies: Proxies;
}

/** Only signatures with a key pair: nobody who can check a token can make one. */
const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
const CLOCK_TOLERANCE_S = 5;
const FETCH_TIMEOUT_MS = 5000;

const claims = z.object({
  sub: z.string().min(1).optional(),
  client_id: z.string().min(1).optional(),
  scope: z.string().optional(),
  scp: z.union([z.string(), z.array(z.string())]).optional(),
});
const metadata = z.object({ issuer: z.string(), jwks_uri: z.string() });

/** Verifies JWTs of one issuer: signature, issuer, audience, expiry. Its keys are read at the first token. */
export function jwtVerifier(options: JwtOptions): JwtVerifier {
  let keys: Promise<JWTVerifyGetKey> | undefined;
  return {
    async verify(token) {
      keys ??= keysOf(options);
      let getKey: JWTVerifyGetKey;
      try {
        getKey = await keys;
      } catch (cause) {
        keys = undefined;
        throw unreachable(cause);
      }
      return claimsOf(await payloadOf(token, getKey, options), options);
    },
  };
}

async function payloadOf(
  token: string,
  getKey: JWTVerifyGetKey,
  { issuer, audience }: JwtOptions,
): Promise<JWTPayload> {
  try {
    const { payload } = await jwtVerify(token, getKey, {
      issuer,
      audience,
      algorithms: ALGORITHMS,
      requiredClaims: ["exp"],
      clockTolerance: CLOCK_TOLERANCE_S,
    });
    return payload;
  } catch (thrown) {
    if (!isAboutToken(thrown)) throw unreachable(thrown);
    throw new OAuthError(OAuthErrorCode.InvalidToken, reasonOf(thrown));
  }
}

/** What is wrong with the token, without anything that stands in it. */
function reasonOf(thrown: unknown): string {
  if (thrown instanceof errors.JWTExpired) return "the token has expired";
  if (thrown instanceof errors.JWTClaimValidationFailed)
    return `the token's ${thrown.claim} is not the one needed here`;
  return "the token is not valid";
}

function isAboutToken(thrown: unknown): boolean {
  const aboutKeys = [errors.JWKSTimeout, errors.JWKSInvalid];
  if (aboutKeys.some((kind) => thrown instanceof kind)) return false;
  // The class itself, not one below it, stands for an answer of the key server that was none.
  return thrown instanceof errors.JOSEError && thrown.code !== "ERR_JOSE_GENERIC";
}

function unreachable(cause: unknown): IssuerUnreachable {
  return new IssuerUnreachable("the keys of the authorization server cannot be read now; try again", { cause });
}

function claimsOf(payload: JWTPayload, { projectClaim }: JwtOptions): AccessClaims {
  const { data } = claims.safeParse(payload);
  const subject = data?.sub ?? data?.client_id;
  if (data === undefined || subject === undefined) {
    throw new OAuthError(OAuthErrorCode.InvalidToken, "the token does not say whom it stands for");
  }
  const scp = typeof data.scp === "string" ? data.scp.split(" ") : (data.scp ?? []);
  const project = projectClaim === undefined ? undefined : payload[projectClaim];
  if (projectClaim !== undefined && typeof project !== "string") {
    throw new OAuthError(OAuthErrorCode.InvalidToken, `the token has no claim ${projectClaim}`);
  }
  return {
    subject,
    scopes: [...(data.scope?.split(" ") ?? []), ...scp],
    project: typeof project === "string" ? project : undefined,
  };
}

async function keysOf({ issuer, jwksUrl, proxies }: JwtOptions): Promise<JWTVerifyGetKey> {
  const url = jwksUrl ?? (await discovered(issuer, proxies));
  return createRemoteJWKSet(new URL(url), {
    timeoutDuration: FETCH_TIMEOUT_MS,
    async [customFetch](address) {
      const { statusCode, body } = await fetched(address, proxies);
      return new Response(body.toString("utf8"), { status: statusCode });
    },
  });
}

/** Reads something of the authorization server; redirects are not followed. Keys are asked for seldom: no connection is kept. */
async function fetched(address: string, proxies: Proxies): Promise<HttpAnswer> {
  const { origin, pathname, search } = new URL(address);
  const proxy = proxyFor(address, proxies);
  const http = openHttp({ url: origin, credential: {}, requestTimeoutMs: FETCH_TIMEOUT_MS, proxy });
  try {
    return await http.send({ operation: "issuerKeys", method: "GET", path: pathname + search });
  } finally {
    await http.close();
  }
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
  const { statusCode, body } = await fetched(place, proxies);
  if (statusCode !== 200) throw new Error(`${place} answered ${statusCode}`);
  const found = metadata.parse(JSON.parse(body.toString("utf8")));
  if (found.issuer !== issuer) throw new Error(`${place} is about another issuer`);
  const { protocol, href } = new URL(found.jwks_uri);
  if (protocol !== "https:" && !isLoopback(href)) throw new Error(`${place} names keys that travel in clear`);
  return href;
}
