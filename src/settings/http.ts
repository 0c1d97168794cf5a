import type { Setting } from "./forms.ts";
import { SETTINGS } from "./registry.ts";

/** Who may call over HTTP, from where, and how many at once. */
export interface HttpSettings {
  /** Whether 2025-era clients get sessions. */
  readonly sessions: boolean;
  /** The JSON file of tokens and projects, not yet read. */
  readonly accessFile: string | undefined;
  readonly oauth: OAuthSettings | undefined;
  /** Is told of each run that waits for a yes. */
  readonly approvalWebhook: string | undefined;
  /** Whether callers may bring their own keys in headers. */
  readonly ownKeys: boolean;
  /** The address of `/mcp` as clients see it. */
  readonly publicUrl: string | undefined;
  readonly allowedHosts: readonly string[];
  readonly maxConcurrency: number;
  /** Whether figures are served at `/metrics`. */
  readonly metrics: boolean;
}

/** An authorization server whose access tokens are accepted. */
interface OAuthSettings {
  readonly issuer: string;
  /** Undefined: the public address of this server. */
  readonly audience: string | undefined;
  /** Undefined: where the issuer's metadata says. */
  readonly jwksUrl: string | undefined;
  /** The claim that names a project of the access file. */
  readonly projectClaim: string | undefined;
  /** The client by which people log in to the page; undefined: nobody does. */
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
}

/** Reads one setting. */
type Read = <Value, Fallback>(setting: Setting<Value, Fallback>) => Value | Fallback;

/** Reads the settings of the HTTP face. */
export function readHttpSettings(read: Read): HttpSettings {
  const issuer = read(SETTINGS.oauthIssuer);
  const audience = read(SETTINGS.oauthAudience);
  const jwksUrl = read(SETTINGS.oauthJwksUrl);
  const projectClaim = read(SETTINGS.oauthProjectClaim);
  const [clientId, clientSecret] = [read(SETTINGS.oauthClientId), read(SETTINGS.oauthClientSecret)];
  return {
    sessions: read(SETTINGS.sessions),
    accessFile: read(SETTINGS.accessFile),
    oauth: issuer === undefined ? undefined : { issuer, audience, jwksUrl, projectClaim, clientId, clientSecret },
    approvalWebhook: read(SETTINGS.approvalWebhook),
    ownKeys: read(SETTINGS.ownKeys),
    publicUrl: read(SETTINGS.publicUrl),
    allowedHosts: read(SETTINGS.allowedHosts),
    maxConcurrency: read(SETTINGS.maxConcurrency),
    metrics: read(SETTINGS.metrics),
  };
}
