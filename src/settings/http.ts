import { SETTINGS } from "./registry.ts";
import type { Setting } from "./value-types.ts";

/** Reads one setting. */
export type Read = <Value, Fallback>(setting: Setting<Value, Fallback>) => Value | Fallback;

/** Who may call over HTTP, from where, and how many at once. */
export type HttpSettings = ReturnType<typeof readHttpSettings>;

/** Reads the settings of the HTTP face. */
export function readHttpSettings(read: Read) {
  const oauth = readOAuth(read);
  return {
    /** Whether 2025-era clients get sessions. */
    sessions: read(SETTINGS.sessions),
    /** The JSON file of tokens and projects, not yet read. */
    accessFile: read(SETTINGS.accessFile),
    oauth,
    /** Is told of each run that waits for a yes. */
    approvalWebhook: read(SETTINGS.approvalWebhook),
    /** Whether callers may bring their own keys in headers. */
    ownKeys: read(SETTINGS.ownKeys),
    /** The address of `/mcp` as clients see it. */
    publicUrl: read(SETTINGS.publicUrl),
    allowedHosts: read(SETTINGS.allowedHosts),
    maxConcurrency: read(SETTINGS.maxConcurrency),
    /** Whether figures are served at `/metrics`. */
    metrics: read(SETTINGS.metrics),
  } as const;
}

/** An authorization server whose access tokens are accepted; undefined where none is named. */
function readOAuth(read: Read) {
  const issuer = read(SETTINGS.oauthIssuer);
  const given = {
    /** Undefined: the public address of this server. */
    audience: read(SETTINGS.oauthAudience),
    /** Undefined: where the issuer's metadata says. */
    jwksUrl: read(SETTINGS.oauthJwksUrl),
    /** The claim that names a project of the access file. */
    projectClaim: read(SETTINGS.oauthProjectClaim),
    /** The client by which people log in to the page; undefined: nobody does. */
    clientId: read(SETTINGS.oauthClientId),
    clientSecret: read(SETTINGS.oauthClientSecret),
  } as const;
  return issuer === undefined ? undefined : ({ issuer, ...given } as const);
}
