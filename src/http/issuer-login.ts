import { OAuthError } from "@modelcontextprotocol/server";
import * as oauth from "oauth4webapi";
import * as z from "zod";
import type { Settings } from "../settings/settings.ts";
import { sealFor } from "../web/sessions.ts";
import { type IssuerLogin, PATHS } from "../web/wire.ts";
import type { IssuerPerson } from "./approver-sessions.ts";
import { endpointOf, readLoginMetadata, requestOptions } from "./issuer-metadata.ts";
import { keptRead } from "./issuer-reads.ts";
import { jwtVerifier } from "./jwt.ts";

/** The scope of those who approve. */
const APPROVE = "targeting:approve";
/** How long a person may take at the authorization server, in milliseconds. */
const LOGIN_MS = 600_000;
/** The longest time between two looks at a person's rights, in milliseconds. */
const CHECK_MS = 600_000;
/** A longer refresh token is not kept: it travels with each request, in a header. */
const LONGEST_REFRESH_TOKEN = 4000;
/**
 * Limits of people who come back from the issuer. Each costs it a request, also with a made-up code. The limits for one
 * address keep it from using up what others need; the limits for all hold even if a proxy passes on made-up addresses.
 */
const BACK: Cap = { atOnce: 32, aMinute: 60, ofOne: 4, ofOneAMinute: 30 };
/** Limits of sessions whose rights are checked again. */
const CHECKS: Cap = { atOnce: 8, aMinute: Number.POSITIVE_INFINITY, ofOne: 8, ofOneAMinute: Number.POSITIVE_INFINITY };

const NO_LOGIN = "This login was not begun in this tab, was used before, or took longer than ten minutes.";

/** A person is not let in, and why. */
export class LoginRefused extends Error {}

/** Too much goes to the authorization server at once: it is to be tried again. */
export class TooMuch extends Error {
  constructor() {
    super("Too many people log in at once. Try again in a minute.");
  }
}

/** What the login is made of. */
interface LoginParts {
  readonly settings: Pick<Settings, "http" | "proxies">;
  /** Address of the page as people see it. */
  readonly address: string;
  /** Seals what a login begins with. */
  readonly key: Uint8Array;
  /** Is handed what is wrong with the issuer. */
  readonly problem: (what: string, reason: string) => void;
  readonly now: () => number;
}

const begun = z.object({ state: z.string(), nonce: z.string(), verifier: z.string() });

/** The login through the authorization server, for the page at an address: authorization code with PKCE. */
export function issuerLogin({ settings: { http, proxies }, address, key, problem, now }: LoginParts) {
  const { issuer, clientId, clientSecret, jwksUrl, projectClaim } = http.oauth ?? {};
  if (issuer === undefined || clientId === undefined) throw new TypeError("there is no issuer to log in at");
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
  const claimsIn = async (idToken: string) => {
    try {
      return await idTokens.verify(idToken);
    } catch (cause) {
      if (!(cause instanceof OAuthError)) throw cause;
      throw new LoginRefused(`You are not let in: ${cause.message}.`, { cause });
    }
  };
  /** The person of an answer of the token endpoint. `before` is who they were, where they are looked at again. */
  const personOf = async (answer: oauth.TokenEndpointResponse, before?: IssuerPerson): Promise<IssuerPerson> => {
    const { id_token, scope, refresh_token = before?.refreshToken } = answer;
    // Without a scope in the answer it is the one that was asked for, or that was given before (RFC 6749, 5.1 and 6).
    if (scope !== undefined && !scope.split(" ").includes(APPROVE)) {
      throw new LoginRefused(`The authorization server did not give you the scope ${APPROVE}.`);
    }
    const known = before && { name: before.name, project: before.project };
    const { name, project } = id_token === undefined && known ? known : await claimsIn(id_token ?? "");
    if (before !== undefined && before.name !== name)
      throw new LoginRefused("The authorization server names another person.");
    const isKept = refresh_token !== undefined && refresh_token.length <= LONGEST_REFRESH_TOKEN;
    return {
      ...{ by: "issuer", issuer, clientId, projectClaim, name, project },
      ...(isKept && { refreshToken: refresh_token, checkAt: now() + CHECK_MS }),
    };
  };
  return {
    /** What a person goes there with. Throws an IssuerUnreachable where its metadata cannot be read. */
    async begin(): Promise<IssuerLogin> {
      const server = await metadata.value();
      const [state, nonce] = [oauth.generateRandomState(), oauth.generateRandomState()];
      const verifier = oauth.generateRandomCodeVerifier();
      const code_challenge = await oauth.calculatePKCECodeChallenge(verifier);
      const asked = { ...client, redirect_uri: redirect, state, nonce, code_challenge };
      const login = logins.seal({ state, nonce, verifier }, now() + LOGIN_MS);
      return { location: placeToGo(server, asked), login };
    },
    /**
     * Who came back from an address (`peer`) with a query, by what their login began with; once. Throws where they are
     * not let in, or where that cannot be told.
     */
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
    /** Who a person is now. Throws a LoginRefused where their rights are gone, and otherwise where that cannot be told. */
    renew: (person: IssuerPerson): Promise<IssuerPerson> =>
      checks(async () => {
        const server = await metadata.value();
        const secret = clientAuth(server, clientSecret);
        const answer = await oauth.refreshTokenGrantRequest(server, client, secret, person.refreshToken ?? "", options);
        try {
          return await personOf(await oauth.processRefreshTokenResponse(server, client, answer), person);
        } catch (cause) {
          if (!(cause instanceof oauth.ResponseBodyError)) throw cause;
          throw new LoginRefused("The authorization server has ended your session.", { cause });
        }
      }),
    /** Takes the refresh token of a person back, where the issuer can be asked for that (RFC 7009). */
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

/** Where a person goes to log in (RFC 6749, 4.1.1; RFC 7636, 4.3). */
function placeToGo(server: oauth.AuthorizationServer, asked: Readonly<Record<string, string>>): string {
  const to = new URL(endpointOf(server, "authorization_endpoint"));
  const always = { response_type: "code", scope: `openid ${APPROVE}`, code_challenge_method: "S256" };
  for (const [name, value] of Object.entries({ ...always, ...asked })) to.searchParams.set(name, value);
  return to.href;
}

function validated(server: oauth.AuthorizationServer, client: oauth.Client, query: URLSearchParams, state: string) {
  try {
    return oauth.validateAuthResponse(server, client, query, state);
  } catch (thrown) {
    // Another state, no code, or what the authorization server refuses: nothing is asked for that.
    const isRefused =
      thrown instanceof oauth.AuthorizationResponseError || thrown instanceof oauth.OperationProcessingError;
    if (!isRefused) throw thrown;
    throw new LoginRefused("The authorization server did not let you in.", { cause: thrown });
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

/** Remembers what was used until it could not be used any more. */
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

/** How much work may run at once and begin within a minute, in all and for one peer. */
interface Cap {
  readonly atOnce: number;
  readonly aMinute: number;
  readonly ofOne: number;
  readonly ofOneAMinute: number;
}

/** Limits the work of peers. Throws a TooMuch beyond the limits. */
function capped({ atOnce, aMinute, ofOne, ofOneAMinute }: Cap, now: () => number) {
  let begun: readonly { readonly peer: string; readonly at: number }[] = [];
  let running: readonly string[] = [];
  return async <Result>(peer: string, work: () => Promise<Result>): Promise<Result> => {
    begun = begun.filter(({ at }) => Math.abs(now() - at) < 60_000);
    const isFull = running.length >= atOnce || running.filter((one) => one === peer).length >= ofOne;
    const isBusy = begun.length >= aMinute || begun.filter((one) => one.peer === peer).length >= ofOneAMinute;
    if (isFull || isBusy) throw new TooMuch();
    if (aMinute !== Number.POSITIVE_INFINITY) begun = [...begun, { peer, at: now() }];
    running = [...running, peer];
    try {
      return await work();
    } finally {
      running = running.toSpliced(running.indexOf(peer), 1);
    }
  };
}
