import * as oauth from "oauth4webapi";
import { openHttp } from "../../../api/http.ts";
import { PATHS } from "../../../page/paths.ts";
import { cookieOf } from "../../../page/serve/sessions.ts";
import { ALGORITHMS, jwtVerifier } from "../../../server/http/auth-jwt.ts";
import { isLoopback } from "../../../settings/loopback.ts";
import { type Proxies, proxyFor } from "../../../settings/proxy.ts";
import type { Settings } from "../../../settings/settings.ts";
import { issuerWho } from "./approvers.ts";

/** The scope of those who approve. */
const APPROVE = "targeting:approve";
const REQUEST_MS = 10_000;
const LARGEST_ANSWER = 1_048_576;
/** How long a person may take at the authorization server, in seconds. */
const LOGIN_S = 600;

/** A person is not let in, and why. */
export class NotLetIn extends Error {}

/**
 * The login through the authorization server, for the page at an address: authorization code with PKCE. `cookieName` is
 * that of what is kept until the person comes back.
 */
export function issuerLogin(
  { http, proxies }: Pick<Settings, "http" | "proxies">,
  { address, cookieName }: { readonly address: string; readonly cookieName: string },
) {
  const { issuer, clientId = "", clientSecret, jwksUrl, projectClaim } = http.oauth ?? {};
  if (issuer === undefined) throw new TypeError("there is no issuer");
  const client = { client_id: clientId };
  const options = { [oauth.customFetch]: fetchOver(proxies), [oauth.allowInsecureRequests]: isLoopback(issuer) };
  const redirect = new URL(PATHS.callback, address).href;
  const idTokens = jwtVerifier({ issuer, audience: clientId, jwksUrl, projectClaim, proxies });
  const cookie = (value: string, seconds: number): string => {
    const attributes = [`Path=${PATHS.callback}`, "HttpOnly", "SameSite=Lax", `Max-Age=${seconds}`];
    return [`${cookieName}=${value}`, ...attributes, ...(address.startsWith("https:") ? ["Secure"] : [])].join("; ");
  };
  return {
    /** Sends the person there. Throws where its metadata cannot be read. */
    async begin() {
      const server = await metadataOf(issuer, options);
      const [state, nonce] = [oauth.generateRandomState(), oauth.generateRandomState()];
      const verifier = oauth.generateRandomCodeVerifier();
      const code_challenge = await oauth.calculatePKCECodeChallenge(verifier);
      const to = new URL(server.authorization_endpoint ?? "");
      const asked = {
        ...{ client_id: clientId, redirect_uri: redirect, response_type: "code", scope: `openid ${APPROVE}` },
        ...{ state, nonce, code_challenge, code_challenge_method: "S256" },
      };
      for (const [name, value] of Object.entries(asked)) to.searchParams.set(name, value);
      const headers = { Location: to.href, "Set-Cookie": cookie([state, nonce, verifier].join("."), LOGIN_S) };
      return new Response(null, { status: 303, headers: { ...headers, "Cache-Control": "no-store" } });
    },
    /**
     * What a session is opened for after the person has come back; `forget` is the `Set-Cookie` that ends the login.
     * Throws where they are not let in, or it cannot be told.
     */
    async end(request: Request) {
      const [state = "", nonce = "", verifier = ""] = (cookieOf(request, cookieName) ?? "").split(".");
      if (state === "")
        throw new NotLetIn("This login was not begun in this browser, or took longer than ten minutes.");
      const server = await metadataOf(issuer, options);
      const parameters = validated(server, client, new URL(request.url), state);
      const secret = clientAuth(server, clientSecret);
      const sent = [server, client, secret, parameters, redirect, verifier, options] as const;
      const answer = await oauth.authorizationCodeGrantRequest(...sent);
      const { id_token, scope } = await oauth.processAuthorizationCodeResponse(server, client, answer, {
        expectedNonce: nonce,
        requireIdToken: true,
      });
      // Without a scope in the answer it is the one that was asked for (RFC 6749, 5.1).
      if (scope !== undefined && !scope.split(" ").includes(APPROVE)) {
        throw new NotLetIn(`The authorization server did not give you the scope ${APPROVE}.`);
      }
      const { name, project } = await idTokens.verify(id_token ?? "");
      return { who: issuerWho(name, project), forget: cookie("", 0) };
    },
  };
}

function validated(server: oauth.AuthorizationServer, client: oauth.Client, from: URL, state: string) {
  try {
    return oauth.validateAuthResponse(server, client, from, state);
  } catch (thrown) {
    if (!(thrown instanceof oauth.AuthorizationResponseError)) throw thrown;
    throw new NotLetIn("The authorization server did not let you in.", { cause: thrown });
  }
}

function clientAuth(
  { token_endpoint_auth_methods_supported: ways }: oauth.AuthorizationServer,
  secret: string | undefined,
) {
  if (secret === undefined) return oauth.None();
  return ways === undefined || ways.includes("client_secret_basic")
    ? oauth.ClientSecretBasic(secret)
    : oauth.ClientSecretPost(secret);
}

/** The metadata of the issuer (RFC 8414, or OpenID Connect Discovery). */
async function metadataOf(
  issuer: string,
  options: Parameters<typeof oauth.discoveryRequest>[1],
): Promise<oauth.AuthorizationServer> {
  const at = new URL(issuer);
  const read = async (algorithm: "oauth2" | "oidc") =>
    oauth.processDiscoveryResponse(at, await oauth.discoveryRequest(at, { ...options, algorithm }));
  const found = await read("oauth2").catch(() => read("oidc"));
  for (const endpoint of [found.authorization_endpoint, found.token_endpoint]) {
    const isSafe = endpoint !== undefined && (/^https:/i.test(endpoint) || isLoopback(endpoint));
    if (!isSafe) throw new Error(`the metadata of ${issuer} names an endpoint that is missing, or travels in clear`);
  }
  // What signs ID tokens is checked with the keys of the issuer, whatever its metadata leaves out.
  return { id_token_signing_alg_values_supported: ALGORITHMS, ...found };
}

/** Requests to the authorization server, through the proxies of the settings. Redirects are not followed. */
function fetchOver(proxies: Proxies) {
  return async (address: string, { method, headers, body }: oauth.CustomFetchOptions<"GET" | "POST", unknown>) => {
    const { origin, pathname, search } = new URL(address);
    const http = openHttp({
      url: origin,
      credential: headers,
      requestTimeoutMs: REQUEST_MS,
      largestAnswer: LARGEST_ANSWER,
      proxy: proxyFor(address, proxies),
    });
    try {
      const {
        statusCode,
        headers: given,
        body: content,
      } = await http.send({
        ...{ operation: "issuerKeys", method, path: pathname + search },
        ...(body instanceof URLSearchParams && { body: body.toString(), type: "application/x-www-form-urlencoded" }),
      });
      const all = Object.entries(given).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, String(value)]],
      );
      return new Response(content, { status: statusCode, headers: Object.fromEntries(all) });
    } finally {
      await http.close();
    }
  };
}
