import { OAuthError, OAuthErrorCode } from "@modelcontextprotocol/server";
import {
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from "jose";
import * as z from "zod";
import { type IssuerKeysOptions, issuerKeys, type KeysProblem } from "./issuer-keys.ts";
import { ALGORITHMS, IssuerUnreachable, type KeptRead } from "./issuer-reads.ts";

export interface AccessClaims {
  /** The name of the caller. The prefix separates names from `sub` and from `client_id`, whose values may be equal. */
  readonly name: `oauth:${string}` | `client:${string}`;
  readonly client: string;
  readonly scopes: readonly string[];
  readonly until: number;
  /** The value of the project claim. Undefined only if no claim is configured. */
  readonly project: string | undefined;
}

export interface JwtVerifier {
  /** Verifies a token. Throws an OAuthError if it is invalid, or an IssuerUnreachable if it cannot be checked. */
  verify(token: string): Promise<AccessClaims>;
}

/** The allowed values of the header `typ`, without "application/" (RFC 9068, 2.1; OpenID Connect Core, 2). */
const TYPES = { access: ["jwt", "at+jwt"], id: ["jwt"] } as const;

interface JwtOptions extends IssuerKeysOptions {
  /** Which kind of token is verified. Default: `access`. */
  readonly kind?: keyof typeof TYPES;
  readonly audience: string;
  readonly projectClaim: string | undefined;
}

const CLOCK_TOLERANCE_S = 5;

const LONGEST_ID = 2000;

/**
 * The ID of a caller. Unpaired surrogates are refused, because a store may replace them, and different IDs would become
 * equal. Control characters are refused, because some stores cannot store them.
 */
const callerId = z
  .string()
  .min(1)
  .max(LONGEST_ID)
  .refine((id) => id.isWellFormed() && !/\p{Cc}/u.test(id));

const claims = z.object({
  sub: callerId.optional(),
  client_id: callerId.optional(),
  azp: z.string().optional().catch(undefined),
  exp: z.number(),
  scope: z.string().optional(),
  scp: z.union([z.string(), z.array(z.string())]).optional(),
});

/** Returns a verifier of JWTs of one issuer. `problem` gets the reason if the keys cannot be used. */
export function jwtVerifier(options: JwtOptions, problem: KeysProblem = () => undefined): JwtVerifier {
  const keys = issuerKeys(options, problem);
  return {
    async verify(token) {
      try {
        refuseAtSight(token, options);
        return claimsOf(await payloadOf(token, keys, options), options);
      } catch (thrown) {
        if (thrown instanceof OAuthError || thrown instanceof IssuerUnreachable) throw thrown;
        // If no keys could be read, an IssuerUnreachable was thrown before. So the token itself is invalid, or none of
        // the keys that were read fits it.
        throw invalid(reasonOf(thrown));
      }
    },
  };
}

/** Throws if typ, alg, iss, aud or exp of a token is invalid. Such a token causes no request to the issuer. */
function refuseAtSight(token: string, { issuer, audience, kind = "access" }: JwtOptions): void {
  const { typ = "jwt", alg }: { readonly typ?: unknown; readonly alg?: string } = decodeProtectedHeader(token);
  const type = typeof typ === "string" ? typ.toLowerCase().replace(/^application\//, "") : undefined;
  if (!TYPES[kind].some((one) => one === type)) throw invalid(`the token's typ must be ${TYPES[kind].join(" or ")}`);
  if (alg === undefined || !ALGORITHMS.includes(alg))
    throw invalid(`the token's alg must be one of ${ALGORITHMS.join(", ")}`);
  const { iss, aud = [], exp } = decodeJwt(token);
  if (iss !== issuer) throw invalid("the token's iss is not the issuer that this server trusts");
  if (![aud].flat().includes(audience)) throw invalid("the token's aud does not contain the audience of this server");
  if (exp === undefined) throw invalid("the token has no valid exp (the time when it expires)");
  if (!(exp + CLOCK_TOLERANCE_S > Date.now() / 1000)) throw invalid("the token has expired");
}

async function payloadOf(
  token: string,
  { value, newer }: KeptRead<JWTVerifyGetKey>,
  { issuer, audience }: JwtOptions,
): Promise<JWTPayload> {
  const rules = {
    issuer,
    audience,
    algorithms: ALGORITHMS,
    requiredClaims: ["exp"],
    clockTolerance: CLOCK_TOLERANCE_S,
  };
  const found = await verified(token, await value(), rules);
  if (found !== undefined) return found;
  const newest = await newer();
  const again = newest && (await verified(token, newest, rules));
  if (again === undefined) throw new errors.JWKSNoMatchingKey();
  return again;
}

/**
 * Returns the content of a token. Undefined if no key matches: the issuer may have newer keys, which are tried next.
 * Throws if the token is invalid for another reason.
 */
async function verified(
  token: string,
  keys: JWTVerifyGetKey,
  rules: JWTVerifyOptions,
): Promise<JWTPayload | undefined> {
  try {
    return (await jwtVerify(token, keys, rules)).payload;
  } catch (thrown) {
    if (thrown instanceof errors.JWKSMultipleMatchingKeys) return verifiedByOne(token, thrown, rules);
    const isUnnamed = decodeProtectedHeader(token).kid === undefined;
    if (thrown instanceof errors.JWSSignatureVerificationFailed && isUnnamed) return undefined;
    if (thrown instanceof errors.JWKSNoMatchingKey) return undefined;
    throw thrown;
  }
}

/** Tries each key that may have signed a token without a (unique) key name. Undefined if none has. */
async function verifiedByOne(
  token: string,
  keys: errors.JWKSMultipleMatchingKeys,
  rules: JWTVerifyOptions,
): Promise<JWTPayload | undefined> {
  for await (const key of keys) {
    try {
      return (await jwtVerify(token, key, rules)).payload;
    } catch (thrown) {
      const isOther = thrown instanceof errors.JWSSignatureVerificationFailed || thrown instanceof TypeError;
      if (!isOther) throw thrown;
    }
  }
  return undefined;
}

function invalid(reason: string): OAuthError {
  return new OAuthError(OAuthErrorCode.InvalidToken, reason);
}

/** Returns why a token is invalid. The reason contains no part of the token. */
function reasonOf(thrown: unknown): string {
  if (thrown instanceof errors.JWTExpired) return "the token has expired";
  if (thrown instanceof errors.JWTClaimValidationFailed) return `the token's ${thrown.claim} is not the required one`;
  return "the token is not valid";
}

function claimsOf(payload: JWTPayload, { issuer, projectClaim }: JwtOptions): AccessClaims {
  const { data, error } = claims.safeParse(payload);
  if (data === undefined) throw invalid(`the token's ${String(error.issues[0]?.path[0])} is not valid`);
  const name = nameIn(data, issuer);
  if (name === undefined) throw invalid("the token has neither sub nor client_id");
  const scp = typeof data.scp === "string" ? data.scp.split(" ") : (data.scp ?? []);
  const scopes = [...(data.scope?.split(" ") ?? []), ...scp];
  const { client_id, azp, exp } = data;
  const token = { name, client: client_id ?? azp ?? "", scopes, until: Math.min(exp * 1000, Number.MAX_SAFE_INTEGER) };
  if (projectClaim === undefined) return { ...token, project: undefined };
  const project = Object.hasOwn(payload, projectClaim) ? payload[projectClaim] : undefined;
  if (typeof project !== "string") throw invalid(`the token's claim ${projectClaim} is missing or not a text`);
  return { ...token, project };
}

/** Returns a caller's name. Undefined without `sub` and `client_id`. Names are unique: issuers contain no spaces. */
function nameIn({ sub, client_id }: z.infer<typeof claims>, issuer: string): AccessClaims["name"] | undefined {
  if (sub !== undefined) return `oauth:${issuer} ${sub}`;
  return client_id === undefined ? undefined : `client:${issuer} ${client_id}`;
}
