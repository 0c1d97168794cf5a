import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { CLIENTS } from "./clients.ts";
import { startHttp } from "./http-server.ts";
import { personWith } from "./page-person.ts";
import { cleanEnvironment } from "./server-process.ts";
import { startService } from "./service.ts";

/** The tokens in the access files of tests. */
export const TOKENS = {
  agent: "agent-token-0123456789",
  other: "other-token-0123456789",
  boss: "boss-token-0123456789",
  chief: "chief-token-0123456789",
  both: "both-token-0123456789",
} as const;

type Entry = { readonly name: keyof typeof TOKENS } & Readonly<Record<string, unknown>>;

/** Writes an access file. An entry without a token gets the token in TOKENS that has the entry's name. */
export function writeAccess(file: string, entries: readonly Entry[], more: Readonly<Record<string, unknown>> = {}) {
  const tokens = entries.map((entry) => ({ token: TOKENS[entry.name], ...entry }));
  writeFileSync(file, JSON.stringify({ tokens, ...more }), { mode: 0o600 });
}

/**
 * Starts the built command as an HTTP server with an access file, and a sandbox as its live service. Ends with the
 * test.
 */
export async function startApproved(
  entries: readonly Entry[],
  { more = {}, env = {} }: { more?: Readonly<Record<string, unknown>>; env?: Readonly<Record<string, string>> } = {},
) {
  const sandbox = await startService();
  const folder = cleanEnvironment().TARGETING_MCP_STATE_DIR ?? "";
  const accessFile = join(folder, "access.json");
  writeAccess(accessFile, entries, more);
  const given = {
    ...sandbox.live,
    TARGETING_MCP_ACCESS_FILE: accessFile,
    TARGETING_MCP_WAIT_MS: "60000",
    ...env,
  };
  const environment = cleanEnvironment(given);
  const server = await startHttp(environment);
  return { ...server, sandbox, environment, accessFile, origin: new URL(server.url).origin };
}

/** Returns a client of the server that authenticates with a token. */
export function clientOf(
  url: string,
  name: keyof typeof TOKENS,
  connect: keyof typeof CLIENTS = "2026 client, modern",
) {
  return CLIENTS[connect]({ url, headers: { authorization: `Bearer ${TOKENS[name]}` } });
}

/** Sends the login request that the page's script sends. */
export function postLogin(origin: string, token: string, headers: Readonly<Record<string, string>> = {}) {
  return fetch(`${origin}/login`, {
    method: "POST",
    headers: { "content-type": "application/json", origin, ...headers },
    body: JSON.stringify({ token }),
  });
}

/** Logs a person in with a token. */
export async function loggedIn(origin: string, name: keyof typeof TOKENS) {
  const answer = await postLogin(origin, TOKENS[name]);
  expect(answer.status).toBe(200);
  return personWith(origin, answer);
}
