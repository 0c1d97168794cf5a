import { originOf } from "../platform/listen.ts";
import { type Access, ALL_PROJECTS, callsTools } from "../settings/access-file.ts";
import type { Settings } from "../settings/settings.ts";
import { isLoopback, SettingsError } from "../settings/value-types.ts";
import { mayOpenBrowser } from "../web/browser.ts";

const ISSUER_SETTINGS = [
  "TARGETING_MCP_OAUTH_AUDIENCE",
  "TARGETING_MCP_OAUTH_JWKS_URL",
  "TARGETING_MCP_OAUTH_PROJECT_CLAIM",
  "TARGETING_MCP_OAUTH_CLIENT_ID",
  "TARGETING_MCP_OAUTH_CLIENT_SECRET",
] as const;

/** Throws a SettingsError if settings for HTTP are invalid or incomplete, or would let in every caller. */
export function checkAccess({ http, environment, sources }: Settings, access: Access, host: string): void {
  const { oauth, ownKeys, accessFile } = http;
  const alone = ISSUER_SETTINGS.find((variable) => sources.get(variable) !== "default");
  if (oauth === undefined && alone !== undefined) {
    throw new SettingsError(
      `TARGETING_MCP_OAUTH_ISSUER is missing: ${alone} is set, but has no effect without it`,
      "TARGETING_MCP_OAUTH_ISSUER",
    );
  }
  if (http.approvalWebhook !== undefined && !/^https?:\/\/./i.test(http.approvalWebhook)) {
    throw new SettingsError(
      "TARGETING_MCP_APPROVAL_WEBHOOK must be an http:// or https:// address",
      "TARGETING_MCP_APPROVAL_WEBHOOK",
    );
  }
  const asks = access.tokens.some(callsTools) || oauth !== undefined || ownKeys;
  if (accessFile !== undefined && !asks) {
    throw new SettingsError(
      `${accessFile} (TARGETING_MCP_ACCESS_FILE) contains no token that can call tools, so no caller would need a token`,
      "TARGETING_MCP_ACCESS_FILE",
    );
  }
  const isHere = (): boolean => isLoopback(originOf(host, 80));
  if (!asks && !isHere()) {
    throw new SettingsError(
      `every program that reaches ${host} could call tools: set TARGETING_MCP_ACCESS_FILE, TARGETING_MCP_OAUTH_ISSUER or ` +
        "TARGETING_MCP_OWN_KEYS (docs/guides/run-for-a-team.md), or serve on 127.0.0.1",
      "TARGETING_MCP_ACCESS_FILE",
    );
  }
  if (oauth !== undefined && http.publicUrl === undefined && oauth.audience === undefined && !isHere()) {
    throw new SettingsError(
      "TARGETING_MCP_PUBLIC_URL is missing: it is the audience that access tokens must have",
      "TARGETING_MCP_PUBLIC_URL",
    );
  }
  if (oauth?.projectClaim !== undefined && access.projects.size === 0) {
    throw new SettingsError(
      "TARGETING_MCP_OAUTH_PROJECT_CLAIM is set, but TARGETING_MCP_ACCESS_FILE contains no projects",
      "TARGETING_MCP_ACCESS_FILE",
    );
  }
  const hasKeys =
    environment.kind === "sandbox" || environment.management !== undefined || environment.events !== undefined;
  const someoneNeedsThem =
    access.tokens.some((token) => token.project === undefined && callsTools(token)) ||
    (oauth !== undefined && oauth.projectClaim === undefined);
  if (!hasKeys && someoneNeedsThem && !ownKeys) {
    throw new SettingsError(
      "TARGETING_API_KEY and EVENT_APP_KEY are missing, but callers without a project in the access file need them",
      "TARGETING_API_KEY",
    );
  }
}

const APPROVES =
  'Add "approves": true to an entry of TARGETING_MCP_ACCESS_FILE for the project (docs/guides/run-for-a-team.md)';

export function projectsWithoutApprover(
  settings: Settings,
  access: Access,
  { asksWho, environment }: { readonly asksWho: boolean; readonly environment: Parameters<typeof mayOpenBrowser>[1] },
): { readonly found: string; readonly remedy: string } | undefined {
  const { confirm, readOnly, page } = settings;
  if (confirm !== "strict" || readOnly) return undefined;
  const without = page === "off" ? [] : projectNamesWithoutApprover(settings, access);
  if (page !== "off" && (asksWho ? without.length === 0 : mayOpenBrowser(page, environment))) return undefined;
  const named = without.filter((name) => name !== undefined);
  return {
    found:
      `nobody can approve deletions over HTTP, except in a client that can ask${named.length > 0 ? ` (${named.join(", ")})` : ""}: ` +
      `TARGETING_MCP_CONFIRM is strict${page === "off" ? ", and TARGETING_MCP_PAGE is off" : ""}`,
    remedy: `${page === "off" ? "Remove TARGETING_MCP_PAGE=off" : APPROVES}, or set TARGETING_MCP_CONFIRM=ask.`,
  };
}

function projectNamesWithoutApprover(
  { http: { oauth, ownKeys } }: Settings,
  { tokens, projects }: Access,
): readonly (string | undefined)[] {
  const asked = new Set(tokens.filter(callsTools).map(({ project }) => project));
  const ofIssuer = oauth?.projectClaim === undefined ? [undefined] : [...projects.keys()];
  if (oauth !== undefined) for (const name of ofIssuer) asked.add(name);
  if (ownKeys) asked.add("keys of callers");
  const covered = new Set(tokens.filter(({ approves }) => approves).map(({ project }) => project));
  if (oauth?.clientId !== undefined) for (const name of ofIssuer) covered.add(name);
  return covered.has(ALL_PROJECTS) ? [] : [...asked].filter((name) => !covered.has(name));
}
