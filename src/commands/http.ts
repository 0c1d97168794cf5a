import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { questionSeal } from "../server/ask.ts";
import { type AuthOptions, asksWho, authenticator, type Caller } from "../server/auth.ts";
import { jwtVerifier } from "../server/auth-jwt.ts";
import { type CallsUnderWay, callsUnderWay } from "../server/calls-under-way.ts";
import { type HttpFace, httpFace, MCP_PATH, protectedResource } from "../server/http.ts";
import { allowedHostnames } from "../server/http-guards.ts";
import { catalogue, offered, toolsThatWrite } from "../server/listing.ts";
import { createMcpServer, type ServerParts } from "../server/mcp-server.ts";
import { sealKeys } from "../server/seal-key.ts";
import { type Access, readAccess, secretsIn } from "../settings/access.ts";
import { type CommandLine, optionOf } from "../settings/command-line.ts";
import { SettingsError } from "../settings/error.ts";
import { text, wholeNumber } from "../settings/forms.ts";
import { isLoopback } from "../settings/proxy.ts";
import type { Settings } from "../settings/settings.ts";
import { TOOLS } from "../tools/registry.ts";
import { cannotListen } from "./cannot-listen.ts";
import { type Projects, projects } from "./projects.ts";
import { inputOf, settingsFrom } from "./settings-input.ts";
import { stopSignal } from "./stop-signal.ts";
import { VERSION } from "./version.ts";

/** After a signal: what is in flight gets so long to be answered and journaled. */
const LAST_CALLS_MS = 20_000;
/** For answers that are on their way. */
const LAST_ANSWERS_MS = 2000;
const IDLE_SWEEP_MS = 50;

/** Serves MCP over HTTP until a signal comes; gives the exit code. */
export async function runHttp(line: CommandLine): Promise<number> {
  process.stderr.on("error", () => undefined);
  // Heard from the beginning: whoever waits for the line that says "serving" may ask for the end at once.
  const asked = stopSignal();
  const host = optionOf(line, "host", text) ?? "127.0.0.1";
  const port = optionOf(line, "port", wholeNumber(0, 65_535)) ?? 3000;
  const input = { ...inputOf(line), overHttp: true } as const;
  const settings = settingsFrom(input);
  const access = readAccess(settings.http.accessFile);
  checkAccess(settings, access, host);
  const stopping = new AbortController();
  const seals = sealKeys(settings);
  const secrets = secretsIn(access);
  const all = projects(input, settings, {
    stopping: stopping.signal,
    secrets,
    sealKey: () => seals("confirmation"),
    follows: true,
  });
  const { log, services, start } = all.of(undefined);
  const calls = callsUnderWay();
  const publicUrl = settings.http.publicUrl ?? addressOf(host, port);
  const { auth, metadata } = authOf(settings, access, publicUrl);
  const face = httpFace({
    ...auth,
    hostnames: allowedHostnames([bracketed(host), new URL(publicUrl).hostname, ...settings.http.allowedHosts]),
    authenticate: authenticator(auth),
    partsFor: partsMaker(all, { calls, seal: questionSeal(await seals("question")) }),
    createServer: createMcpServer,
    metadata,
    sessions: settings.http.sessions,
    maxConcurrency: settings.http.maxConcurrency,
    log,
    stopping: stopping.signal,
  });
  const url = await listen(face, host, port);
  log.info("serving", { url, environment: services.environment, version: VERSION, asksWho: asksWho(auth) });
  for (const variable of settings.unknownVariables)
    log.warn("this variable is no setting; is it misspelt?", { variable });
  start();
  await asked;
  log.info("stopping", {});
  stopping.abort();
  await stop(face, all, calls);
  return 0;
}

/** Refuses set-ups that would let in whoever comes, or nobody. Throws a SettingsError. */
function checkAccess({ http, environment }: Settings, access: Access, host: string): void {
  const { oauth, ownKeys, accessFile } = http;
  const refuse = (message: string, variable: string) => new SettingsError(message, variable);
  const asks = access.tokens.length > 0 || oauth !== undefined || ownKeys;
  if (accessFile !== undefined && !asks) {
    throw refuse(
      `${accessFile} (TARGETING_MCP_ACCESS_FILE) holds no token: nobody could call`,
      "TARGETING_MCP_ACCESS_FILE",
    );
  }
  if (!asks && !isLoopback(`http://${bracketed(host)}`)) {
    throw refuse(
      `whoever reaches ${host} could call: set TARGETING_MCP_ACCESS_FILE, TARGETING_MCP_OAUTH_ISSUER or ` +
        "TARGETING_MCP_OWN_KEYS (docs/deployment.md), or serve on 127.0.0.1",
      "TARGETING_MCP_ACCESS_FILE",
    );
  }
  if (
    oauth !== undefined &&
    http.publicUrl === undefined &&
    oauth.audience === undefined &&
    !isLoopback(`http://${bracketed(host)}`)
  ) {
    throw refuse("TARGETING_MCP_PUBLIC_URL is missing: access tokens must be meant for it", "TARGETING_MCP_PUBLIC_URL");
  }
  if (oauth?.projectClaim !== undefined && access.projects.size === 0) {
    throw refuse(
      "TARGETING_MCP_OAUTH_PROJECT_CLAIM names projects, and TARGETING_MCP_ACCESS_FILE holds none",
      "TARGETING_MCP_ACCESS_FILE",
    );
  }
  const hasKeys =
    environment.kind === "sandbox" || environment.management !== undefined || environment.events !== undefined;
  const someoneNeedsThem =
    access.tokens.some(({ project }) => project === undefined) ||
    (oauth !== undefined && oauth.projectClaim === undefined);
  if (!hasKeys && someoneNeedsThem && !ownKeys) {
    throw refuse(
      "TARGETING_API_KEY and EVENT_APP_KEY are missing, and there are callers who name no project of the access file",
      "TARGETING_API_KEY",
    );
  }
}

function authOf({ http, proxies }: Settings, access: Access, publicUrl: string) {
  const { oauth, ownKeys } = http;
  if (oauth === undefined)
    return { auth: { access, ownKeys } satisfies AuthOptions, metadata: new Map<string, unknown>() };
  const { issuer, audience = publicUrl, jwksUrl, projectClaim } = oauth;
  const resource = protectedResource(publicUrl, issuer);
  const auth: AuthOptions = {
    access,
    ownKeys,
    jwt: jwtVerifier({ issuer, audience, jwksUrl, projectClaim, proxies }),
    resourceMetadataUrl: resource.url,
  };
  return { auth, metadata: resource.metadata };
}

/** What a caller's servers are made of. Tools and their schemas are made once, since a server is made per request. */
function partsMaker(all: Projects, shared: Pick<ServerParts, "calls" | "seal">): (caller: Caller) => ServerParts {
  const tools = catalogue(TOOLS);
  const writingTools = toolsThatWrite(TOOLS);
  return ({ name: caller, keys, readOnly, folders }) => {
    const { services, offer, redactor, log, audit } = all.of(keys);
    const mine = { ...services, readOnly: services.readOnly || readOnly, allowedDirs: folders };
    const listed = offered(tools, { ...offer, readOnly: mine.readOnly });
    return { ...shared, version: VERSION, caller, tools: listed, writingTools, services: mine, redactor, log, audit };
  };
}

async function listen({ server }: HttpFace, host: string, port: number): Promise<string> {
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (cause) {
    throw cannotListen(host, port, cause);
  }
  return addressOf(host, boundPort(server.address()));
}

/** Takes nothing new, lets runs end between two requests, and waits for what is in flight to be answered. */
async function stop({ server, close }: HttpFace, all: Projects, calls: CallsUnderWay): Promise<void> {
  const closed = once(server, "close");
  server.close();
  const idle = setInterval(() => server.closeIdleConnections(), IDLE_SWEEP_MS);
  await Promise.all([all.interrupt(), calls.idle(LAST_CALLS_MS)]);
  await Promise.race([closed, delay(LAST_ANSWERS_MS, undefined, { ref: false })]);
  await close();
  server.closeAllConnections();
  clearInterval(idle);
  await all.close();
}

function addressOf(host: string, port: number): string {
  return `http://${bracketed(host)}:${port}${MCP_PATH}`;
}

/** An IPv6 address as it stands in a URL. */
function bracketed(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}

function boundPort(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") throw new TypeError("the server listens on no port");
  return address.port;
}
