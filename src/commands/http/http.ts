import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { questionSeal } from "../../server/asking/ask.ts";
import type { Audit } from "../../server/audit.ts";
import { type CallsUnderWay, callsUnderWay } from "../../server/calls-under-way.ts";
import { type AuthOptions, asksWho, authenticator } from "../../server/http/auth.ts";
import { jwtVerifier } from "../../server/http/auth-jwt.ts";
import { allowedHostnames } from "../../server/http/guards.ts";
import { type HttpFace, type HttpOptions, httpFace, MCP_PATH, protectedResource } from "../../server/http/http.ts";
import { catalogue, hiddenTools, offered, toolsThatWrite, toolsWithLists } from "../../server/listing.ts";
import { followWork } from "../../server/log.ts";
import { createMcpServer, type ServerParts } from "../../server/mcp-server.ts";
import { loadSkills } from "../../server/prompts/skills.ts";
import { sealKeys } from "../../server/seal-key.ts";
import { readAccess, secretsIn } from "../../settings/access.ts";
import { type CommandLine, optionOf } from "../../settings/command-line.ts";
import { text, wholeNumber } from "../../settings/forms.ts";
import { givenText } from "../../settings/given.ts";
import { SETTINGS } from "../../settings/registry.ts";
import type { Settings } from "../../settings/settings.ts";
import { TOOLS } from "../../tools/registry.ts";
import { cannotListen } from "../cannot-listen.ts";
import { backendOf } from "../connect.ts";
import { exposures } from "../doctor/exposures.ts";
import { inputOf, settingsFrom } from "../settings-input.ts";
import { stopSignal } from "../stop-signal.ts";
import { VERSION } from "../version.ts";
import { bracketed, checkAccess } from "./http-access.ts";
import { type Projects, projects } from "./projects.ts";

/** After a signal: how long requests in flight get to be answered and journaled, in milliseconds. */
const LAST_CALLS_MS = 20_000;
/** For answers that are on their way. */
const LAST_ANSWERS_MS = 2000;
const IDLE_SWEEP_MS = 50;

/** Serves MCP over HTTP until a signal comes; gives the exit code. */
export async function runHttp(line: CommandLine): Promise<number> {
  process.stderr.on("error", () => undefined);
  // Signals are handled from the beginning: a program that waits for the line "serving" may send one at once.
  const asked = stopSignal();
  const host = optionOf(line, "host", text) ?? "127.0.0.1";
  const port = optionOf(line, "port", wholeNumber(0, 65_535)) ?? 3000;
  const input = { ...inputOf(line), overHttp: true } as const;
  const settings = settingsFrom(input);
  const access = readAccess(settings.http.accessFile);
  checkAccess(settings, access, host);
  const stopping = new AbortController();
  const backend = backendOf(settings);
  const seals = sealKeys(settings.sealKey, backend.sealKey);
  const secrets = secretsIn(access);
  const all = projects(input, settings, {
    stopping: stopping.signal,
    backend,
    secrets,
    sealKey: () => seals("confirmation"),
    work: followWork(),
  });
  const { log, services, start } = all.of(undefined);
  const calls = callsUnderWay();
  const publicUrl = settings.http.publicUrl ?? addressOf(host, port);
  const addresses = [SETTINGS.targetingApiUrl, SETTINGS.eventApiUrl].map((one) => givenText(one, input)?.text ?? "");
  const { auth, metadata } = authOf(settings, { access, addresses, ownKeys: settings.http.ownKeys }, publicUrl);
  const face = httpFace({
    ...auth,
    hostnames: allowedHostnames([bracketed(host), new URL(publicUrl).hostname, ...settings.http.allowedHosts]),
    authenticate: authenticator(auth),
    partsFor: partsMaker(all, { calls, seal: questionSeal(await seals("question")), skills: await loadSkills() }),
    createServer: createMcpServer,
    toolsWithLists: toolsWithLists(catalogue(TOOLS)),
    metadata,
    sessions: settings.http.sessions,
    maxConcurrency: settings.http.maxConcurrency,
    log,
    stopping: stopping.signal,
  });
  await Promise.race([start(), asked]);
  const url = await listen(face, host, port);
  log.info("serving", { url, environment: services.environment, version: VERSION, asksWho: asksWho(auth) });
  for (const variable of settings.unknownVariables)
    log.warn("this variable is no setting; is it misspelt?", { variable });
  for (const { found, remedy } of exposures(settings, input)) log.warn(found, { remedy });
  await asked;
  log.info("stopping", {});
  stopping.abort();
  await stop(face, all, calls);
  return 0;
}

function authOf({ http: { oauth }, proxies }: Settings, known: AuthOptions, publicUrl: string) {
  if (oauth === undefined) return { auth: known, metadata: new Map<string, unknown>() };
  const { issuer, audience = publicUrl, jwksUrl, projectClaim } = oauth;
  const resource = protectedResource(publicUrl, issuer);
  const auth: AuthOptions = {
    ...known,
    jwt: jwtVerifier({ issuer, audience, jwksUrl, projectClaim, proxies }),
    resourceMetadataUrl: resource.url,
  };
  return { auth, metadata: resource.metadata };
}

/** What a caller's servers are made of. Tools and their schemas are made once, since a server is made per request. */
function partsMaker(all: Projects, shared: Pick<ServerParts, "calls" | "seal" | "skills">): HttpOptions["partsFor"] {
  const tools = catalogue(TOOLS);
  const writingTools = toolsThatWrite(TOOLS);
  return ({ name, owner: caller, keys, readOnly, folders }) => {
    const { services, offer, redactor, log, use, forgotten, ...project } = all.of(keys);
    const audit: Audit = (line) => project.audit({ ...line, caller: name });
    const mine = { ...services, noteDecision: audit, readOnly: services.readOnly || readOnly, allowedDirs: folders };
    const its = { ...offer, readOnly: mine.readOnly };
    const own = {
      caller,
      tools: offered(tools, its),
      hidden: hiddenTools(TOOLS, its),
      services: mine,
      redactor,
      log,
      audit,
      use,
      forgotten,
    };
    return { ...shared, version: VERSION, writingTools, ...own };
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

function boundPort(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") throw new TypeError("the server listens on no port");
  return address.port;
}
