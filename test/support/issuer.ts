import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { startStub } from "./stub-server.ts";

const ALGORITHM = "ES256";

/** Starts an authorization server that publishes its metadata and keys. Ends with the test. */
export async function startIssuer() {
  const pair = await generateKeyPair(ALGORITHM);
  const stranger = await generateKeyPair(ALGORITHM);
  const jwk = { ...(await exportJWK(pair.publicKey)), kid: "one", alg: ALGORITHM, use: "sig" };
  let isAway = false;
  const { url, received } = await startStub((request) => {
    if (isAway) return { status: 503, json: {} };
    if (request.url === "/.well-known/oauth-authorization-server") {
      return {
        status: 200,
        json: { issuer: `http://${request.headers.host}`, jwks_uri: `http://${request.headers.host}/keys` },
      };
    }
    return request.url === "/keys" ? { status: 200, json: { keys: [jwk] } } : { status: 404, json: {} };
  });
  const now = () => Math.floor(Date.now() / 1000);
  /** Makes the server refuse every request (true), or answer again (false). */
  const away = (is: boolean): void => {
    isAway = is;
  };
  /** Returns a valid access token, unless `claims` or another argument makes it invalid. */
  const token = (
    claims: Record<string, unknown>,
    by: "issuer" | "stranger" = "issuer",
    kid = "one",
    header: Readonly<Record<string, unknown>> = {},
  ) =>
    new SignJWT({ iss: url, sub: "alice", exp: now() + 300, ...claims })
      .setProtectedHeader({ alg: ALGORITHM, kid, ...header })
      .sign(by === "issuer" ? pair.privateKey : stranger.privateKey);
  return { url, token, now, away, received };
}
