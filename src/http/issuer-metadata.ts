import * as oauth from "oauth4webapi";
import type { Proxies } from "../settings/environment.ts";
import { isLoopback } from "../settings/value-types.ts";
import { ALGORITHMS, issuerFetch, reasonOf } from "./issuer-reads.ts";

/** Returns the options of requests to an issuer. They allow plain HTTP only if the issuer runs on this machine. */
export function requestOptions(issuer: string, proxies: Proxies) {
  return { [oauth.customFetch]: issuerFetch(proxies), [oauth.allowInsecureRequests]: isLoopback(issuer) };
}

const PLACES = { oauth2: "oauth-authorization-server", oidc: "openid-configuration" } as const;

/** Reads the metadata of an authorization server (RFC 8414, or OpenID Connect Discovery). */
export async function readMetadata(issuer: string, proxies: Proxies): Promise<oauth.AuthorizationServer> {
  const at = new URL(issuer);
  const options = requestOptions(issuer, proxies);
  const problems: string[] = [];
  for (const algorithm of ["oauth2", "oidc"] as const) {
    try {
      const answer = await oauth.discoveryRequest(at, { ...options, algorithm });
      if (answer.status !== 200) throw new Error(`status ${answer.status}`);
      return await oauth.processDiscoveryResponse(at, answer);
    } catch (problem) {
      problems.push(`${PLACES[algorithm]}: ${reasonOf(problem)}`);
    }
  }
  throw new Error(`the metadata of ${issuer} cannot be read (${problems.join("; ")})`);
}

/** Reads the metadata of the issuer for the login. Throws if an endpoint is missing. */
export async function readLoginMetadata(issuer: string, proxies: Proxies): Promise<oauth.AuthorizationServer> {
  const found = await readMetadata(issuer, proxies);
  for (const name of ["authorization_endpoint", "token_endpoint"] as const) endpointOf(found, name);
  // If the metadata does not name the signing algorithms, those that this server can verify are expected.
  return { id_token_signing_alg_values_supported: ALGORITHMS, ...found };
}

/** Returns the address of an endpoint. Throws if there is none, or if it uses plain HTTP to another machine. */
export function endpointOf(
  server: oauth.AuthorizationServer,
  name: "authorization_endpoint" | "token_endpoint" | "jwks_uri",
): string {
  const { [name]: address = "" } = server;
  const isSafe =
    URL.canParse(address) && (/^https:/i.test(address) || (/^http:/i.test(address) && isLoopback(address)));
  if (!isSafe) throw new Error(`the metadata of ${server.issuer} has no ${name} that begins with https://`);
  return address;
}
