import { createHash, timingSafeEqual } from "node:crypto";
import { bearerAuthChallengeResponse, OAuthError, OAuthErrorCode } from "@modelcontextprotocol/server";
import { type Access, type AccessToken, callsTools, type ProjectKeys } from "../settings/access-file.ts";
import { headerKey } from "../settings/value-types.ts";
import { httpError } from "../web/http-errors.ts";
import { IssuerUnreachable } from "./issuer-reads.ts";
import type { AccessClaims, JwtVerifier } from "./jwt.ts";

/** Who calls over HTTP: under which name, with whose keys, and what they may do. */
export interface Caller {
  /**
   * `token:NAME` of the access file, `oauth:ISSUER SUB`, `client:ISSUER CLIENT_ID` of an access token without `sub`,
   * `key:HASH` of addresses and own keys, or `local` without authentication. Used in records and for shares.
   */
  readonly name: string;
  /**
   * Whose runs and confirmations they see. With keys other than the configured ones a caller works in another project,
   * and is another owner there: a run must not go on with the keys of a project that it was not begun in.
   */
  readonly owner: string;
  readonly readOnly: boolean;
  /** Folders that `file` and `saveTo` may use. */
  readonly folders: readonly string[];
  /** Undefined: the configured keys. */
  readonly keys: ProjectKeys | undefined;
  /** A caller who may only read could be given this scope; undefined where no scope would change that. */
  readonly missingScope?: string | undefined;
}

/** Authenticates a request: gives its caller, or the answer that refuses it. */
export type Authenticate = (request: Request) => Promise<Caller | Response>;

/** The scopes of access tokens. Writing includes reading. */
export const SCOPES = { read: "targeting:read", write: "targeting:write" } as const;

/** Headers in which callers bring their own keys. */
const KEY_HEADERS = { targetingApiKey: "x-targeting-api-key", eventAppKey: "x-event-app-key" } as const;

/** What a valid token of the issuer says of its caller. */
export interface SeenToken {
  /** The caller's name. */
  readonly name: string;
  /** The client that it was given to; empty where it names none. */
  readonly client: string;
  /** Whose runs it may see, as `Caller` has it; empty where its project is not known here. */
  readonly owner: string;
  /** Whether it may write. */
  readonly writes: boolean;
  /** When it expires, in milliseconds since 1970. */
  readonly until: number;
}

/** How callers authenticate. */
export interface AuthOptions {
  /** Where callers' own keys are sent. */
  readonly addresses: readonly string[];
  readonly access: Access;
  /**
   * The access file as it is now: what it takes away from a token counts at once, while tokens and keys that are new in
   * it count from the next start on. Absent: it does not change.
   */
  readonly accessOfNow?: () => Access;
  /** Absent: no access tokens of an authorization server are accepted. */
  readonly jwt?: JwtVerifier | undefined;
  /** Is told what each valid token of the issuer says, before its call is answered. */
  readonly noteToken?: (seen: SeenToken) => Promise<void>;
  readonly ownKeys: boolean;
  /** Where the protected-resource metadata is (RFC 9728), for challenges. */
  readonly resourceMetadataUrl?: string | undefined;
}

/** Whether callers have to authenticate. */
export function requiresAuthentication({
  access,
  jwt,
  ownKeys,
}: Pick<AuthOptions, "access" | "jwt" | "ownKeys">): boolean {
  return access.tokens.some(callsTools) || jwt !== undefined || ownKeys;
}

/**
 * Makes the authentication of callers: a bearer token of the access file, an access token of the issuer, and keys of
 * the caller's own where they are allowed. Nothing of the credentials is kept.
 */
export function authenticator(options: AuthOptions): Authenticate {
  const findToken = tokenFinder(options.access.tokens);
  const needsToken = requiresAuthentication({ ...options, ownKeys: false });
  return async (request) => {
    try {
      const caller = needsToken ? await tokenCaller(request, findToken, options) : NOBODY;
      if (caller instanceof Response) return caller;
      return withOwnKeys(caller, request, options, !needsToken && options.ownKeys);
    } catch (thrown) {
      if (thrown instanceof IssuerUnreachable) return httpError(503, thrown.message, { "retry-after": "5" });
      if (!(thrown instanceof OAuthError)) throw thrown;
      return challenge(thrown, SCOPES.read, options.resourceMetadataUrl);
    }
  };
}

/** The answer to a call that needs a scope which the caller's token lacks (RFC 6750, 3.1). */
export function scopeChallenge(scope: string, resourceMetadataUrl: string | undefined): Response {
  const error = new OAuthError(OAuthErrorCode.InsufficientScope, `this call needs the scope ${scope}`);
  return challenge(error, scope, resourceMetadataUrl);
}

const NOBODY: Caller = { name: "local", owner: "local", readOnly: false, folders: [], keys: undefined };

/**
 * The answer to a request without a token: what it needs, and no error, since nothing that it brought was wrong
 * (RFC 6750, 3.1).
 */
function bareChallenge(resourceMetadataUrl: string | undefined): Response {
  const metadata = resourceMetadataUrl === undefined ? "" : `, resource_metadata="${resourceMetadataUrl}"`;
  return httpError(401, "a bearer token is needed: Authorization: Bearer TOKEN", {
    "www-authenticate": `Bearer scope="${SCOPES.read}"${metadata}`,
  });
}

function challenge(error: OAuthError, scope: string, resourceMetadataUrl: string | undefined): Response {
  return bearerAuthChallengeResponse(error, {
    requiredScopes: [scope],
    ...(resourceMetadataUrl !== undefined && { resourceMetadataUrl }),
  });
}

async function tokenCaller(
  request: Request,
  findToken: (token: string) => AccessToken | undefined,
  { access, accessOfNow = () => access, jwt, noteToken, resourceMetadataUrl }: AuthOptions,
): Promise<Caller | Response> {
  const [, token] = /^bearer +([\x21-\x7e]+)$/i.exec(request.headers.get("authorization") ?? "") ?? [];
  if (token === undefined) return bareChallenge(resourceMetadataUrl);
  const first = findToken(token);
  const known = first && accessOfNow().tokens.find((one) => one.name === first.name && one.token === first.token);
  if (known !== undefined) {
    if (!callsTools(known)) return httpError(403, "this token approves on the page, and calls no tool");
    const keys = known.project === undefined ? undefined : access.projects.get(known.project);
    if (known.project !== undefined && keys === undefined)
      return httpError(403, "the token's project is not known here");
    return named(`token:${known.name}`, { readOnly: known.readOnly, folders: known.folders, keys });
  }
  if (jwt === undefined || first !== undefined)
    throw new OAuthError(OAuthErrorCode.InvalidToken, "the bearer token is not known");
  const claims = await jwt.verify(token);
  await noteToken?.(seenToken(claims, access));
  return claimedCaller(claims, access);
}

function seenToken({ name, client, scopes, project, until }: AccessClaims, { projects }: Access): SeenToken {
  const its = claimedProject(project, projects);
  const owner = its === undefined ? "" : ownerOf(name, its.keys);
  return { name, client, owner, writes: scopes.includes(SCOPES.write), until };
}

function claimedCaller({ name, scopes, project }: AccessClaims, { projects }: Access): Caller | Response {
  const writes = scopes.includes(SCOPES.write);
  if (!writes && !scopes.includes(SCOPES.read)) {
    throw new OAuthError(
      OAuthErrorCode.InsufficientScope,
      `the token needs the scope ${SCOPES.read} or ${SCOPES.write}`,
    );
  }
  const its = claimedProject(project, projects);
  if (its === undefined) return httpError(403, "the token's project is not known here");
  const caller = named(name, { readOnly: !writes, folders: [], keys: its.keys });
  return writes ? caller : { ...caller, missingScope: SCOPES.write };
}

/**
 * The project that a token opens by its claim, for calls and for the page alike: without a claim (undefined) that of the
 * configured keys. Undefined where the access file has no project of this name.
 */
export function claimedProject(
  claimed: string | undefined,
  projects: Access["projects"],
): { readonly keys: ProjectKeys | undefined } | undefined {
  if (claimed === undefined) return { keys: undefined };
  const keys = projects.get(claimed);
  return keys && { keys };
}

/** Compares every token in constant time, so that the time of an answer tells nothing about the tokens. */
export function tokenFinder(tokens: readonly AccessToken[]): (token: string) => AccessToken | undefined {
  const known = tokens.map((one) => ({ one, digest: digestOf(one.token) }));
  return (token) => {
    const digest = digestOf(token);
    return known.filter((candidate) => timingSafeEqual(candidate.digest, digest))[0]?.one;
  };
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** Replaces the configured keys by those in the headers; a caller without a token is named after these keys. */
function withOwnKeys(
  caller: Caller,
  { headers }: Request,
  options: AuthOptions,
  isKnownByKeys: boolean,
): Caller | Response {
  const { ownKeys, addresses } = options;
  const keys: ProjectKeys = {
    targetingApiKey: headers.get(KEY_HEADERS.targetingApiKey) ?? undefined,
    eventAppKey: headers.get(KEY_HEADERS.eventAppKey) ?? undefined,
  };
  const given = [keys.targetingApiKey, keys.eventAppKey].filter((key) => key !== undefined);
  const names = Object.values(KEY_HEADERS).join(" or ");
  if (given.length === 0) {
    if (isKnownByKeys) return httpError(401, `your own key is needed, in the header ${names}`);
    return caller;
  }
  if (!ownKeys) return httpError(403, `this server takes no keys of callers: leave out ${names}`);
  if (given.some((key) => headerKey.read(key) === undefined)) {
    return httpError(403, `a key in ${names} must be ${headerKey.words}`);
  }
  if (!isKnownByKeys) return named(caller.name, { ...caller, keys });
  const name = `key:${hashOf([...addresses, ...keyTexts(keys)])}`;
  return { ...caller, name, owner: name, keys };
}

function named(name: string, rest: Omit<Caller, "name" | "owner">): Caller {
  return { ...rest, name, owner: ownerOf(name, rest.keys) };
}

/** Whose runs a caller's are, see `Caller`. */
export function ownerOf(name: string, keys: ProjectKeys | undefined): string {
  // No caller's name begins like this, so that owners of other keys are never mixed up with names.
  return keys === undefined ? name : `keys:${hashOf(keyTexts(keys))} ${name}`;
}

function keyTexts({ targetingApiKey = "", eventAppKey = "" }: ProjectKeys): readonly string[] {
  return [targetingApiKey, eventAppKey];
}

function hashOf(texts: readonly string[]): string {
  return digestOf(JSON.stringify(texts)).toString("hex").slice(0, 32);
}
