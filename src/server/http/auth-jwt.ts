import { OAuthError, OAuthErrorCode } from "@modelcontextprotocol/server";
import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose";
import * as z from "zod";
import { type IssuerKeysOptions, IssuerUnreachable, issuerKeys } from "./issuer-keys.ts";

/** The claims of an access token that this server uses. */
export interface AccessClaims {
  /** Whom the token stands for: `sub` and `client_id` are names of two kinds, and one may be like the other. */
  readonly name: `oauth:${string}` | `client:${string}`;
  readonly scopes: readonly string[];
  /** What the project claim holds, where there is such a claim. */
  readonly project: string | undefined;
}

/** Checks access tokens. */
export interface JwtVerifier {
  /** Throws an OAuthError for a token that is not valid here, an IssuerUnreachable where that cannot be told. */
  verify(token: string): Promise<AccessClaims>;
}

/** Which tokens are valid. */
export interface JwtOptions extends IssuerKeysOptions {
  readonly audience: string;
  readonly projectClaim: string | undefined;
}

/** Only asymmetric signatures: the key that checks a token cannot make one. */
export const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
const CLOCK_TOLERANCE_S = 5;

const claims = z.object({
  sub: z.string().min(1).optional(),
  client_id: z.string().min(1).optional(),
  scope: z.string().optional(),
  scp: z.union([z.string(), z.array(z.string())]).optional(),
});

/** Verifies JWTs of one issuer: signature, issuer, audience, expiry. Its keys are read at the first token. */
export function jwtVerifier(options: JwtOptions): JwtVerifier {
  const keys = issuerKeys(options);
  return {
    verify: async (token) => claimsOf(await payloadOf(token, keys, options), options),
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
    if (thrown instanceof IssuerUnreachable) throw thrown;
    if (!(thrown instanceof errors.JOSEError) || thrown instanceof errors.JWKSInvalid)
      throw new IssuerUnreachable(thrown);
    throw new OAuthError(OAuthErrorCode.InvalidToken, reasonOf(thrown));
  }
}

/** Why the token is invalid, without any part of its content. */
function reasonOf(thrown: unknown): string {
  if (thrown instanceof errors.JWTExpired) return "the token has expired";
  if (thrown instanceof errors.JWTClaimValidationFailed)
    return `the token's ${thrown.claim} is not the one needed here`;
  return "the token is not valid";
}

function claimsOf(payload: JWTPayload, { issuer, projectClaim }: JwtOptions): AccessClaims {
  const { data } = claims.safeParse(payload);
  const name = data && nameIn(data, issuer);
  if (data === undefined || name === undefined) {
    throw new OAuthError(OAuthErrorCode.InvalidToken, "the token does not say whom it stands for");
  }
  const scp = typeof data.scp === "string" ? data.scp.split(" ") : (data.scp ?? []);
  const project = projectClaim === undefined ? undefined : payload[projectClaim];
  if (projectClaim !== undefined && typeof project !== "string") {
    throw new OAuthError(OAuthErrorCode.InvalidToken, `the token has no claim ${projectClaim}`);
  }
  return {
    name,
    scopes: [...(data.scope?.split(" ") ?? []), ...scp],
    project: typeof project === "string" ? project : undefined,
  };
}

function nameIn({ sub, client_id }: z.infer<typeof claims>, issuer: string): AccessClaims["name"] | undefined {
  if (sub !== undefined) return `oauth:${issuer} ${sub}`;
  return client_id === undefined ? undefined : `client:${issuer} ${client_id}`;
}
