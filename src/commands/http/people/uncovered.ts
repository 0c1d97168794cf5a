import { type Access, ALL_PROJECTS, callsTools } from "../../../settings/access.ts";
import type { Settings } from "../../../settings/settings.ts";
import { mayOpen } from "../../page/browser.ts";

/**
 * What is refused over HTTP for want of a person who could approve it, and what to do; undefined where all have one.
 * `asksWho` says whether callers have to say who they are: else the person of this machine decides.
 */
export function uncovered(
  settings: Settings,
  access: Access,
  { asksWho, environment }: { readonly asksWho: boolean; readonly environment: Parameters<typeof mayOpen>[1] },
): { readonly found: string; readonly remedy: string } | undefined {
  const { confirm, readOnly, page } = settings;
  if (confirm !== "strict" || readOnly) return undefined;
  const without = page === "off" ? [] : projectsWithout(settings, access);
  if (page !== "off" && (asksWho ? without.length === 0 : mayOpen(page, environment))) return undefined;
  const named = without.filter((name) => name !== undefined);
  return {
    found:
      `nobody can approve over HTTP what deletes or takes away${named.length > 0 ? ` (${named.join(", ")})` : ""}: ` +
      `TARGETING_MCP_CONFIRM is strict${page === "off" ? ", and TARGETING_MCP_PAGE is off" : ""}`,
    remedy:
      'Let an entry of TARGETING_MCP_ACCESS_FILE say "approves": true for the project (docs/guides/run-for-a-team.md), or set ' +
      "TARGETING_MCP_CONFIRM=ask.",
  };
}

/** The projects that callers work in and nobody approves for; undefined is that of the configured keys. */
function projectsWithout(
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
