import { noneUsable, publishedKeys } from "../../server/http/issuer-keys.ts";
import { readLoginMetadata } from "../../server/http/issuer-metadata.ts";
import { reasonOf } from "../../server/http/issuer-reads.ts";
import type { Settings } from "../../settings/settings.ts";
import { type Check, ok, problem } from "./machine.ts";

const ABOUT = "authorization server";
const REMEDY =
  "Check TARGETING_MCP_OAUTH_ISSUER, TARGETING_MCP_OAUTH_JWKS_URL, the network, and HTTPS_PROXY, HTTP_PROXY and NO_PROXY.";

/** Reads what a server over HTTP reads of the authorization server: its keys, and where people log in. */
export async function checkIssuer(
  oauth: NonNullable<Settings["http"]["oauth"]>,
  proxies: Settings["proxies"],
): Promise<readonly Check[]> {
  const { issuer, clientId } = oauth;
  const keys = orProblem("its keys cannot be read", async () => {
    const { usable, count } = await publishedKeys({ ...oauth, proxies });
    if (usable.length === 0) throw new Error(noneUsable(count));
    return `${usable.length} of ${count} published keys can be used`;
  });
  const login = orProblem("people cannot log in there", async () => {
    await readLoginMetadata(issuer, proxies);
    return "people can log in there";
  });
  return Promise.all(clientId === undefined ? [keys] : [keys, login]);
}

async function orProblem(what: string, look: () => Promise<string>): Promise<Check> {
  try {
    return ok(ABOUT, await look());
  } catch (thrown) {
    return problem(ABOUT, `${what}: ${reasonOf(thrown)}`, REMEDY);
  }
}
