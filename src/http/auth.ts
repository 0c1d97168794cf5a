import { hash, timingSafeEqual } from "node:crypto";
import { bearerAuthChallengeResponse, OAuthError, OAuthErrorCode } from "@modelcontextprotocol/server";
import { type Access, type AccessToken, callsTools, type ProjectKeys } from "../settings/access-file.ts";
import { headerKey } from "../settings/value-types.ts";
import { httpError } from "../web/http-errors.ts";
import { IssuerUnreachable } from "./issuer-reads.ts";
import type { AccessClaims, JwtVerifier } from "./jwt.ts";

export interface Caller {
  /** The name: `token:NAME`, `oauth:ISSUER SUB`, `client:ISSUER CLIENT_ID` (without `sub`), `key:HASH` or `local`. */
  readonly name: string;
  /**
   * The owner of the caller's runs and confirmations: the caller's name, and a hash of the keys if these are not the
   * configured ones. So a run never continues with the keys of another project.
   */
  readonly owner: string;
  readonly readOnly: boolean;
  readonly folders: readonly string[];
  /** The keys for requests to the APIs. Undefined for the configured keys. */
  readonly keys: ProjectKeys | undefined;
  readonly missingScope?: string | undefined;
}

export type Authenticate = (request: Request) => Promise<Caller | Response>;

/** The OAuth scopes of access tokens. A token with `write` may also read. */
export const SCOPES = { read: "targeting:read", write: "targeting:write" } as const;

const KEY_HEADERS = { targetingApiKey: "x-targeting-api-key", eventAppKey: "x-event-app-key" } as const;

export interface SeenToken {
  readonly name: string;
  readonly client: string;
  /** The owner that runs of this token get. Empty if this server has no project for the token. */
  readonly owner: string;
  readonly writes: boolean;
  readonly until: number;
}

export interface AuthOptions {
  readonly addresses: readonly string[];
  readonly access: Access;
  /**
   * Returns the access file as it is now, so that removed tokens and rights stop working at once. Added tokens and keys
   * work only after a restart, because tokens are looked up in `access`.
   */
  readonly accessOfNow?: () => Access;
  /** Verifies access tokens of an authorization server. Absent if none are accepted. */
  readonly jwt?: JwtVerifier | undefined;
  /** Stores the rights in a token of the authorization server. The caller's runs are later checked against them. */
  readonly noteToken?: (seen: SeenToken) => Promise<void>;
  readonly ownKeys: boolean;
  readonly resourceMetadataUrl?: string | undefined;
}

export function requiresAuthentication(options: Pick<AuthOptions, "access" | "jwt" | "ownKeys">): boolean {
  return options.access.tokens.some(callsTools) || options.jwt !== undefined || options.ownKeys;
}

export const ACCESS_UNREADABLE =
  "The access file of this server cannot be read, so all callers are refused. The server's log has the reason.";

/** Authenticates callers by tokens and, if allowed, by their own keys. Without both, every caller is `local`. */
export function authenticator(options: AuthOptions): Authenticate {
  const findToken = tokenFinder(options.access.tokens);
  const needsToken = requiresAuthentication({ ...options, ownKeys: false });
  return async (request) => {
    if (options.accessOfNow?.().isUnreadable) return httpError(503, ACCESS_UNREADABLE);
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

/** Returns the response to a call whose token lacks a scope (RFC 6750, 3.1). */
export function scopeChallenge(scope: string, resourceMetadataUrl: string | undefined): Response {
  const error = new OAuthError(OAuthErrorCode.InsufficientScope, `This call needs a token with the scope ${scope}.`);
  return challenge(error, scope, resourceMetadataUrl);
}

const NOBODY: Caller = { name: "local", owner: "local", readOnly: false, folders: [], keys: undefined };

/** Returns the response to a request without a token. It contains no error code (RFC 6750, 3.1). */
function bareChallenge(resourceMetadataUrl: string | undefined): Response {
  const metadata = resourceMetadataUrl === undefined ? "" : `, resource_metadata="${resourceMetadataUrl}"`;
  return httpError(401, "A bearer token is required. Send it in the header Authorization: Bearer TOKEN.", {
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
    if (!callsTools(known))
      return httpError(403, "This token can only log in to the page for approvals. It cannot call tools.");
    const its = claimedProject(known.project, access.projects);
    if (its === undefined) return unknownProject();
    return named(`token:${known.name}`, { readOnly: known.readOnly, folders: known.folders, keys: its.keys });
  }
  if (jwt === undefined || first !== undefined)
    throw new OAuthError(OAuthErrorCode.InvalidToken, "The bearer token is unknown.");
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
      `The token must have the scope ${SCOPES.read} or ${SCOPES.write}.`,
    );
  }
  const its = claimedProject(project, projects);
  if (its === undefined) return unknownProject();
  const caller = named(name, { readOnly: !writes, folders: [], keys: its.keys });
  return writes ? caller : { ...caller, missingScope: SCOPES.write };
}

/** Returns a project's keys as `{ keys }`: undefined `keys` are the configured ones. Undefined if it is unknown. */
export function claimedProject(
  claimed: string | undefined,
  projects: Access["projects"],
): { readonly keys: ProjectKeys | undefined } | undefined {
  if (claimed === undefined) return { keys: undefined };
  const keys = projects.get(claimed);
  return keys && { keys };
}

function unknownProject(): Response {
  return httpError(
    403,
    "This server has no project with the name in the token. Add it to TARGETING_MCP_ACCESS_FILE, and restart the server.",
  );
}

/** Returns a function that finds a token's entry. It compares all in constant time, so that timing reveals nothing. */
export function tokenFinder(tokens: readonly AccessToken[]): (token: string) => AccessToken | undefined {
  const known = tokens.map((one) => ({ one, digest: digestOf(one.token) }));
  return (token) => {
    const digest = digestOf(token);
    return known.filter((candidate) => timingSafeEqual(candidate.digest, digest))[0]?.one;
  };
}

export function digestOf(text: string): Buffer {
  return hash("sha256", text, "buffer");
}

/** Adds the API keys in the headers to the caller. Without tokens (`isKnownByKeys`), the keys also name the caller. */
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
    if (isKnownByKeys) return httpError(401, `Your own API key is required, in the header ${names}.`);
    return caller;
  }
  if (!ownKeys) return httpError(403, `This server does not accept callers' own keys. Omit ${names}.`);
  if (given.some((key) => headerKey.read(key) === undefined)) {
    return httpError(403, `A key in ${names} must be ${headerKey.words}.`);
  }
  if (!isKnownByKeys) return named(caller.name, { ...caller, keys });
  const name = `key:${hashOf([...addresses, ...keyTexts(keys)])}`;
  return { ...caller, name, owner: name, keys };
}

function named(name: string, rest: Omit<Caller, "name" | "owner">): Caller {
  return { ...rest, name, owner: ownerOf(name, rest.keys) };
}

export function ownerOf(name: string, keys: ProjectKeys | undefined): string {
  // Names of callers never start with `keys:`, so this text is never the name of a caller.
  return keys === undefined ? name : `keys:${hashOf(keyTexts(keys))} ${name}`;
}

function keyTexts({ targetingApiKey = "", eventAppKey = "" }: ProjectKeys): readonly string[] {
  return [targetingApiKey, eventAppKey];
}

function hashOf(texts: readonly string[]): string {
  return digestOf(JSON.stringify(texts)).toString("hex").slice(0, 32);
}
