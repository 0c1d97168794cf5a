import { createHash, timingSafeEqual } from "node:crypto";
import { bearerAuthChallengeResponse, OAuthError, OAuthErrorCode } from "@modelcontextprotocol/server";
import { type Access, type AccessToken, callsTools, type ProjectKeys } from "../settings/access-file.ts";
import { headerKey } from "../settings/value-types.ts";
import { httpError } from "../web/http-errors.ts";
import { IssuerUnreachable } from "./issuer-reads.ts";
import type { AccessClaims, JwtVerifier } from "./jwt.ts";

/** A caller over HTTP: its name, its keys, and its rights. */
export interface Caller {
  /**
   * `token:NAME` of the access file, `oauth:ISSUER SUB`, `client:ISSUER CLIENT_ID` without `sub`, `key:HASH` for own
   * keys, or `local` without authentication. Used in records and for shares.
   */
  readonly name: string;
  /**
   * The owner of the caller's runs and confirmations. Callers with their own keys work in another project, and are
   * another owner there: a run must not continue with another project's keys.
   */
  readonly owner: string;
  readonly readOnly: boolean;
  /** The folders that `file` and `saveTo` may use. */
  readonly folders: readonly string[];
  /** Undefined: the configured keys. */
  readonly keys: ProjectKeys | undefined;
  /** The scope that would let a read-only caller write; undefined if no scope would. */
  readonly missingScope?: string | undefined;
}

/** Authenticates a request. Returns its caller, or the response that refuses it. */
export type Authenticate = (request: Request) => Promise<Caller | Response>;

/** The scopes of access tokens. Writing includes reading. */
export const SCOPES = { read: "targeting:read", write: "targeting:write" } as const;

/** The headers in which callers bring their own keys. */
const KEY_HEADERS = { targetingApiKey: "x-targeting-api-key", eventAppKey: "x-event-app-key" } as const;

/** The facts about a caller in a valid token of the issuer. */
export interface SeenToken {
  /** The caller's name. */
  readonly name: string;
  /** The client that received the token; empty if the token names none. */
  readonly client: string;
  /** The owner of the runs that it may see, as in `Caller`; empty if this server does not know its project. */
  readonly owner: string;
  /** Whether it may write. */
  readonly writes: boolean;
  /** When it expires, in milliseconds since 1970. */
  readonly until: number;
}

/** How callers authenticate. */
export interface AuthOptions {
  /** The addresses that callers' own keys are sent to. */
  readonly addresses: readonly string[];
  readonly access: Access;
  /**
   * Returns the current access file. Removed rights end at once; new tokens and keys work from the next start. Absent:
   * the file does not change.
   */
  readonly accessOfNow?: () => Access;
  /** Absent: no access tokens of an authorization server are accepted. */
  readonly jwt?: JwtVerifier | undefined;
  /** Receives the facts in each valid token of the issuer, before its call is answered. */
  readonly noteToken?: (seen: SeenToken) => Promise<void>;
  readonly ownKeys: boolean;
  /** The address of the protected-resource metadata (RFC 9728), for challenges. */
  readonly resourceMetadataUrl?: string | undefined;
}

/** Returns whether callers must authenticate. */
export function requiresAuthentication({
  access,
  jwt,
  ownKeys,
}: Pick<AuthOptions, "access" | "jwt" | "ownKeys">): boolean {
  return access.tokens.some(callsTools) || jwt !== undefined || ownKeys;
}

/**
 * Creates the authentication of callers: tokens of the access file or the issuer, and callers' own keys if allowed.
 * Credentials are not stored.
 */
export function authenticator(options: AuthOptions): Authenticate {
  const findToken = tokenFinder(options.access.tokens);
  const needsToken = requiresAuthentication({ ...options, ownKeys: false });
  return async (request) => {
    if (options.accessOfNow?.().isUnreadable)
      return httpError(
        503,
        "the access file of this server cannot be read, so every caller is refused; its log says more",
      );
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

/** Returns the response to a call that needs a scope which the caller's token lacks (RFC 6750, 3.1). */
export function scopeChallenge(scope: string, resourceMetadataUrl: string | undefined): Response {
  const error = new OAuthError(OAuthErrorCode.InsufficientScope, `this call needs the scope ${scope}`);
  return challenge(error, scope, resourceMetadataUrl);
}

const NOBODY: Caller = { name: "local", owner: "local", readOnly: false, folders: [], keys: undefined };

/** Returns the response to a request without a token: it states what is needed, but no error (RFC 6750, 3.1). */
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
    if (!callsTools(known)) return httpError(403, "this token can approve on the page, but cannot call tools");
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
 * Returns the project of a token by its claim. Without a claim it is the project of the configured keys. Undefined if
 * the access file has no project of this name.
 */
export function claimedProject(
  claimed: string | undefined,
  projects: Access["projects"],
): { readonly keys: ProjectKeys | undefined } | undefined {
  if (claimed === undefined) return { keys: undefined };
  const keys = projects.get(claimed);
  return keys && { keys };
}

/** Compares all tokens in constant time, so that the response time reveals nothing about them. */
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

/** Replaces the configured keys by those in the headers. A caller without a token is named after these keys. */
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
  if (!ownKeys) return httpError(403, `this server does not accept keys of callers: leave out ${names}`);
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

/** Returns the owner of a caller's runs, see `Caller`. */
export function ownerOf(name: string, keys: ProjectKeys | undefined): string {
  // No caller's name begins like this, so owners with other keys are never confused with names.
  return keys === undefined ? name : `keys:${hashOf(keyTexts(keys))} ${name}`;
}

function keyTexts({ targetingApiKey = "", eventAppKey = "" }: ProjectKeys): readonly string[] {
  return [targetingApiKey, eventAppKey];
}

function hashOf(texts: readonly string[]): string {
  return digestOf(JSON.stringify(texts)).toString("hex").slice(0, 32);
}
