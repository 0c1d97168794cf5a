import { createHash, randomUUID } from "node:crypto";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { startStub } from "./stub-server.ts";

const ALGORITHM = "ES256";

/** How a test's authorization server behaves. */
interface LoginIssuer {
  readonly clientId: string;
  readonly secret?: string;
  /** Additional claims of the ID token. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /**
   * The scope in the token answer; absent: the answer names no scope, which means that the requested scope was granted.
   */
  readonly scope?: string;
  /** If set, logins fail with this error instead of returning a code. */
  readonly error?: string;
  /** Whether the server issues refresh tokens, each of which works once (RFC 9700, 4.14.2). */
  readonly refreshes?: boolean;
}

/**
 * Starts an authorization server that accepts every login: authorization code flow with PKCE (RFC 7636), and OpenID
 * Connect ID tokens. Each code works once. Ends with the test.
 */
export async function startLoginIssuer({ clientId, secret, claims = {}, scope, error, refreshes }: LoginIssuer) {
  const { publicKey, privateKey } = await generateKeyPair(ALGORITHM);
  const jwk = { ...(await exportJWK(publicKey)), kid: "one", alg: ALGORITHM, use: "sig" };
  const codes = new Map<string, URLSearchParams>();
  const asked: URLSearchParams[] = [];
  const { url, received } = await startStub((request) => {
    const { pathname, searchParams } = new URL(request.url, "http://issuer");
    if (pathname === "/.well-known/openid-configuration") {
      const endpoints = {
        authorization_endpoint: `${url}/authorize`,
        token_endpoint: `${url}/token`,
        revocation_endpoint: `${url}/revoke`,
      };
      return { status: 200, json: { issuer: url, jwks_uri: `${url}/keys`, ...endpoints } };
    }
    if (pathname === "/keys") return { status: 200, json: { keys: [jwk] } };
    if (pathname === "/authorize") {
      asked.push(searchParams);
      const code = `code-${asked.length}-of-the-login`;
      codes.set(code, searchParams);
      const back = new URL(searchParams.get("redirect_uri") ?? "");
      back.searchParams.set("state", searchParams.get("state") ?? "");
      back.searchParams.set(error === undefined ? "code" : "error", error ?? code);
      return { status: 302, text: "", headers: { location: back.href } };
    }
    if (pathname === "/revoke") {
      refreshTokens.delete(new URLSearchParams(request.body).get("token") ?? "");
      return { status: 200, json: {} };
    }
    if (pathname !== "/token" || request.method !== "POST") return { status: 404, json: {} };
    return (response) => {
      tokenAnswer(request.body, request.headers.authorization).then(({ status, json }) => {
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(json));
      }, response.destroy.bind(response));
    };
  });
  const refreshTokens = new Map<string, { readonly nonce: string }>();
  let isAway = false;
  let held = Promise.resolve();
  let rights: { readonly scope?: string; readonly claims?: Readonly<Record<string, unknown>> } = {
    claims,
    ...(scope !== undefined && { scope }),
  };
  const tokenAnswer = async (text: string, authorization: string | undefined) => {
    await held;
    if (isAway) return { status: 503, json: {} };
    const body = new URLSearchParams(text);
    if (body.get("grant_type") === "refresh_token") {
      const known = refreshTokens.get(body.get("refresh_token") ?? "");
      refreshTokens.delete(body.get("refresh_token") ?? "");
      return known === undefined ? { status: 400, json: { error: "invalid_grant" } } : tokensOf(known.nonce);
    }
    const code = body.get("code") ?? "";
    const of = codes.get(code);
    codes.delete(code);
    const challenge = createHash("sha256")
      .update(body.get("code_verifier") ?? "")
      .digest("base64url");
    const given = Buffer.from(authorization?.replace(/^Basic /, "") ?? "", "base64").toString();
    const isClient =
      secret === undefined ? body.get("client_id") === clientId : decodeURIComponent(given) === `${clientId}:${secret}`;
    const isRight =
      isClient && of?.get("code_challenge") === challenge && of.get("redirect_uri") === body.get("redirect_uri");
    if (!isRight) return { status: 400, json: { error: "invalid_grant" } };
    return tokensOf(of.get("nonce") ?? "");
  };
  const tokensOf = async (nonce: string) => {
    const now = Math.floor(Date.now() / 1000);
    const about = { iss: url, sub: "ann", aud: clientId, iat: now, exp: now + 300, nonce };
    const id_token = await new SignJWT({ ...about, ...rights.claims })
      .setProtectedHeader({ alg: ALGORITHM, kid: "one" })
      .sign(privateKey);
    const refresh_token = `a-refresh-token-of-the-login-${randomUUID()}`;
    if (refreshes) refreshTokens.set(refresh_token, { nonce });
    const json = { access_token: "an-access-token-of-the-login", token_type: "bearer", id_token };
    const more = { ...(refreshes && { refresh_token }), ...(rights.scope !== undefined && { scope: rights.scope }) };
    return { status: 200, json: { ...json, ...more } };
  };
  return {
    url,
    received,
    asked,
    /** Returns the number of requests to a path. */
    count: (path: string) => received.filter((request) => request.url.split("?")[0] === path).length,
    /** Changes the claims about the person in tokens that are issued from now on. */
    becomes(now: typeof rights): void {
      rights = now;
    },
    /** Revokes all issued tokens. */
    endsAll: (): void => refreshTokens.clear(),
    /** Holds the answers of the token endpoint until the returned function is called. */
    holds(): () => void {
      let release = (): void => undefined;
      held = new Promise((resolve) => {
        release = resolve;
      });
      return release;
    },
    /** Makes the server refuse to issue tokens (true), or issue them again (false). */
    away(is: boolean): void {
      isAway = is;
    },
  };
}
