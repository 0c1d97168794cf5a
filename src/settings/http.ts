import { SETTINGS } from "./registry.ts";
import type { Setting } from "./value-types.ts";

/** Reads one setting. */
export type Read = <Value, Fallback>(setting: Setting<Value, Fallback>) => Value | Fallback;

/** Who may call over HTTP, from where, and how many requests at once. */
export type HttpSettings = ReturnType<typeof readHttpSettings>;

/** Reads the settings of the HTTP server. */
export function readHttpSettings(read: Read) {
  const oauth = readOAuth(read);
  return {
    /** Whether clients of the 2025 protocol versions get sessions. */
    sessions: read(SETTINGS.sessions),
    /** The path of the JSON file of tokens and projects, which is not read here. */
    accessFile: read(SETTINGS.accessFile),
    oauth,
    /** Receives a POST for each run that waits for approval. */
    approvalWebhook: read(SETTINGS.approvalWebhook),
    /** Whether callers may bring their own keys in headers. */
    ownKeys: read(SETTINGS.ownKeys),
    /** The address of `/mcp` that clients use. */
    publicUrl: read(SETTINGS.publicUrl),
    allowedHosts: read(SETTINGS.allowedHosts),
    maxConcurrency: read(SETTINGS.maxConcurrency),
    /** Whether metrics are served at `/metrics`. */
    metrics: read(SETTINGS.metrics),
  } as const;
}

/** An authorization server whose access tokens are accepted; undefined if none is configured. */
function readOAuth(read: Read) {
  const issuer = read(SETTINGS.oauthIssuer);
  const given = {
    /** Undefined: the public address of this server. */
    audience: read(SETTINGS.oauthAudience),
    /** Undefined: taken from the issuer's metadata. */
    jwksUrl: read(SETTINGS.oauthJwksUrl),
    /** The claim that names a project of the access file. */
    projectClaim: read(SETTINGS.oauthProjectClaim),
    /** The OAuth client with which people log in to the web page; undefined if they cannot. */
    clientId: read(SETTINGS.oauthClientId),
    clientSecret: read(SETTINGS.oauthClientSecret),
  } as const;
  return issuer === undefined ? undefined : ({ issuer, ...given } as const);
}
