import { OAuthError } from "@modelcontextprotocol/server";
import * as oauth from "oauth4webapi";
import * as z from "zod";
import type { Settings } from "../settings/settings.ts";
import { sealFor } from "../web/sessions.ts";
import { type IssuerLogin, PATHS } from "../web/wire.ts";
import { CHECK_MS, type IssuerPerson } from "./approver-sessions.ts";
import { endpointOf, readLoginMetadata, requestOptions } from "./issuer-metadata.ts";
import { keptRead } from "./issuer-reads.ts";
import { jwtVerifier } from "./jwt.ts";

const APPROVE = "targeting:approve";
const LOGIN_MS = 600_000;
/** The maximum length of a refresh token. It is part of the session in a header of each request. */
const LONGEST_REFRESH_TOKEN = 4000;
/**
 * The limits for redirects from the login page. Each one, even if forged, causes a request to the issuer. One address
 * has few that fail, so that strangers cannot use up the limit for all.
 */
const BACK: Cap = { atOnce: 32, aMinute: 60, ofOne: 4, ofOneAMinute: 6 };
const CHECKS: Cap = { atOnce: 8, aMinute: Number.POSITIVE_INFINITY, ofOne: 8, ofOneAMinute: Number.POSITIVE_INFINITY };

const NO_LOGIN = "This login was not started in this tab, was used before, or took over 10 minutes. Log in again.";

/** A login was refused. The message is shown to the person. */
export class LoginRefused extends Error {}

export class TooManyLogins extends Error {
  constructor() {
    super("Too many people are logging in now. Try again in a minute.");
  }
}

interface LoginParts {
  readonly settings: Pick<Settings, "http" | "proxies">;
  readonly address: string;
  readonly key: Uint8Array;
  readonly problem: (what: string, reason: string) => void;
  readonly now: () => number;
}

const begun = z.object({ state: z.string(), nonce: z.string(), verifier: z.string() });

/** Logs people in through the authorization server (authorization code flow with PKCE). */
export function issuerLogin({ settings: { http, proxies }, address, key, problem, now }: LoginParts) {
  const { issuer, clientId, clientSecret, jwksUrl, projectClaim } = http.oauth ?? {};
  if (issuer === undefined || clientId === undefined)
    throw new TypeError("a login needs TARGETING_MCP_OAUTH_ISSUER and TARGETING_MCP_OAUTH_CLIENT_ID");
  const client = { client_id: clientId };
  const options = requestOptions(issuer, proxies);
  const redirect = new URL(PATHS.callback, address).href;
  const idTokens = jwtVerifier({ kind: "id", issuer, audience: clientId, jwksUrl, projectClaim, proxies }, (reason) =>
    problem("the keys of the authorization server cannot be read", reason),
  );
  const metadata = keptRead(
    () => readLoginMetadata(issuer, proxies),
    (reason) => problem("the metadata of the authorization server cannot be read", reason),
  );
  const logins = sealFor({ key, purpose: "login through the issuer", content: begun, mostMs: LOGIN_MS, now });
  const used = usedOnce(now);
  const back = capped(BACK, now);
  const capChecks = capped(CHECKS, now);
  const checks = <Result>(work: () => Promise<Result>) => capChecks("", work);
  /** Returns the person in an answer. `before`: as known so far. Throws a LoginRefused if the person may not log in. */
  const personOf = async (answer: oauth.TokenEndpointResponse, before?: IssuerPerson): Promise<IssuerPerson> => {
    const { id_token, scope, refresh_token = before?.refreshToken } = answer;
    // If the answer has no scope, the requested or previous scope applies (RFC 6749, 5.1 and 6).
    if (scope !== undefined && !scope.split(" ").includes(APPROVE)) {
      throw new LoginRefused(`The authorization server did not grant you the scope ${APPROVE}.`);
    }
    const known = before && { name: before.name, project: before.project };
    const { name, project } = id_token === undefined && known ? known : await claimsIn(id_token ?? "", idTokens);
    if (before !== undefined && before.name !== name)
      throw new LoginRefused("The authorization server returned a different person. Log in again.");
    const isKept = refresh_token !== undefined && refresh_token.length <= LONGEST_REFRESH_TOKEN;
    return {
      by: "issuer",
      issuer,
      clientId,
      projectClaim,
      name,
      project,
      ...(isKept && { refreshToken: refresh_token, checkAt: now() + CHECK_MS }),
    };
  };
  return {
    /** Starts a login: returns the address to open and the encrypted state. Throws an IssuerUnreachable. */
    async begin(): Promise<IssuerLogin> {
      const server = await metadata.value();
      const [state, nonce] = [oauth.generateRandomState(), oauth.generateRandomState()];
      const verifier = oauth.generateRandomCodeVerifier();
      const code_challenge = await oauth.calculatePKCECodeChallenge(verifier);
      const asked = { ...client, redirect_uri: redirect, state, nonce, code_challenge };
      const login = logins.seal({ state, nonce, verifier }, now() + LOGIN_MS);
      return { location: authorizationUrl(server, asked), login };
    },
    /** Ends a login with the redirect's `query` and the encrypted state, which cannot be used twice. */
    async end({ query, login }: Readonly<Record<"query" | "login", string>>, peer: string): Promise<IssuerPerson> {
      const opened = logins.open(login);
      if (opened === undefined) throw new LoginRefused(NO_LOGIN);
      const { state, nonce, verifier } = opened.content;
      const server = await metadata.value();
      const parameters = validated(server, client, new URLSearchParams(query), state);
      if (used.has(state)) throw new LoginRefused(NO_LOGIN);
      return back(peer, async () => {
        used.add(state, opened.endsAt);
        const secret = clientAuth(server, clientSecret);
        const sent = [server, client, secret, parameters, redirect, verifier, options] as const;
        const answer = await oauth.authorizationCodeGrantRequest(...sent);
        const rules = { expectedNonce: nonce, requireIdToken: true };
        return personOf(await oauth.processAuthorizationCodeResponse(server, client, answer, rules));
      });
    },
    /** Checks a person's rights again. Throws a LoginRefused if there are none, another error if the check failed. */
    renew: (person: IssuerPerson): Promise<IssuerPerson> =>
      checks(async () => {
        const server = await metadata.value();
        const secret = clientAuth(server, clientSecret);
        const answer = await oauth.refreshTokenGrantRequest(server, client, secret, person.refreshToken ?? "", options);
        try {
          return await personOf(await oauth.processRefreshTokenResponse(server, client, answer), person);
        } catch (cause) {
          if (!(cause instanceof oauth.ResponseBodyError)) throw cause;
          throw new LoginRefused("The authorization server has ended your session. Log in again.", { cause });
        }
      }),
    /** Revokes a person's refresh token at log-out, if the authorization server supports that (RFC 7009). */
    async revoke({ refreshToken }: IssuerPerson): Promise<void> {
      const server = await metadata.value();
      if (refreshToken === undefined || server.revocation_endpoint === undefined) return;
      await checks(async () => {
        const secret = clientAuth(server, clientSecret);
        const answer = await oauth.revocationRequest(server, client, secret, refreshToken, options);
        await oauth.processRevocationResponse(answer);
      });
    },
  };
}

async function claimsIn(idToken: string, idTokens: ReturnType<typeof jwtVerifier>) {
  try {
    return await idTokens.verify(idToken);
  } catch (cause) {
    if (!(cause instanceof OAuthError)) throw cause;
    throw new LoginRefused(`The login was refused: ${cause.message}.`, { cause });
  }
}

/** Returns the address at which a person logs in (RFC 6749, 4.1.1; RFC 7636, 4.3). */
function authorizationUrl(server: oauth.AuthorizationServer, asked: Readonly<Record<string, string>>): string {
  const to = new URL(endpointOf(server, "authorization_endpoint"));
  const always = { response_type: "code", scope: `openid ${APPROVE}`, code_challenge_method: "S256" };
  for (const [name, value] of Object.entries({ ...always, ...asked })) to.searchParams.set(name, value);
  return to.href;
}

function validated(server: oauth.AuthorizationServer, client: oauth.Client, query: URLSearchParams, state: string) {
  try {
    return oauth.validateAuthResponse(server, client, query, state);
  } catch (thrown) {
    const isRefused =
      thrown instanceof oauth.AuthorizationResponseError || thrown instanceof oauth.OperationProcessingError;
    if (!isRefused) throw thrown;
    throw new LoginRefused("The authorization server refused the login.", { cause: thrown });
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

function usedOnce(now: () => number) {
  const used = new Map<string, number>();
  return {
    has: (one: string): boolean => used.has(one),
    add(one: string, until: number): void {
      for (const [other, end] of used) if (end <= now()) used.delete(other);
      used.set(one, until);
    },
  };
}

/**
 * How much work may run at once and start in a minute, in all and for one network address (`ofOne…`). For one address,
 * work that succeeded does not count: many people may share an address.
 */
interface Cap {
  readonly atOnce: number;
  readonly aMinute: number;
  readonly ofOne: number;
  readonly ofOneAMinute: number;
}

/** Returns a function that runs work for a network address. It throws a TooManyLogins if that would exceed a limit. */
function capped({ atOnce, aMinute, ofOne, ofOneAMinute }: Cap, now: () => number) {
  let begun: readonly { readonly peer: string; readonly at: number; succeeded: boolean }[] = [];
  let running: readonly string[] = [];
  return async <Result>(peer: string, work: () => Promise<Result>): Promise<Result> => {
    begun = begun.filter(({ at }) => Math.abs(now() - at) < 60_000);
    const isFull = running.length >= atOnce || running.filter((one) => one === peer).length >= ofOne;
    const isBusy =
      begun.length >= aMinute || begun.filter((one) => one.peer === peer && !one.succeeded).length >= ofOneAMinute;
    const own = { peer, at: now(), succeeded: false };
    if (isFull || isBusy) throw new TooManyLogins();
    if (aMinute !== Number.POSITIVE_INFINITY) begun = [...begun, own];
    running = [...running, peer];
    try {
      const result = await work();
      own.succeeded = true;
      return result;
    } finally {
      running = running.toSpliced(running.indexOf(peer), 1);
    }
  };
}
