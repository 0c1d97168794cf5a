import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { getRequestListener } from "@hono/node-server";
import type { Projects } from "../http/access-now.ts";
import { type AuthOptions, authenticator, requiresAuthentication } from "../http/auth.ts";
import { checkAccess, projectsWithoutApprover } from "../http/check-access.ts";
import { people } from "../http/people.ts";
import {
  claimOrphanedRuns,
  LAST_CALLS_MS,
  probes,
  type Started,
  servedFigures,
  startProcess,
} from "../http/process.ts";
import { createHttpServer, type HttpOptions, MCP_PATH, protectedResource } from "../http/server.ts";
import { questionSeal } from "../mcp/elicitation.ts";
import { loadSkills } from "../mcp/prompts.ts";
import { createMcpServer } from "../mcp/server.ts";
import {
  allTools,
  type CallsUnderWay,
  callsUnderWay,
  hiddenTools,
  type ListedTool,
  listedTools,
  type ServerParts,
  toolsThatWrite,
  toolsWithLists,
} from "../mcp/server-parts.ts";
import type { Log } from "../observe/log.ts";
import { bracketed, originOf } from "../platform/listen.ts";
import { NO_TRACES } from "../runtime/observers.ts";
import { inputOf, settingsFrom, VERSION } from "../runtime/settings-input.ts";
import { asSetting, giveUpAfter, whenReachable, withoutStore } from "../runtime/store.ts";
import { listen, stopSignal } from "../runtime/terminal.ts";
import { readAccess } from "../settings/access-file.ts";
import { type CommandLine, optionOf } from "../settings/command-line.ts";
import { SETTINGS } from "../settings/registry.ts";
import { type Settings, settingText } from "../settings/settings.ts";
import { text, wholeNumber } from "../settings/value-types.ts";
import { allowedHostnames } from "../web/http-errors.ts";

/** For how many milliseconds connections may stay open for the last answers, after all calls have ended. */
const LAST_ANSWERS_MS = 2000;
const IDLE_SWEEP_MS = 50;

export async function runHttp(line: CommandLine): Promise<number> {
  process.stderr.on("error", () => undefined);
  // A program may send a signal as soon as it has read the line "serving", so signals are handled from the beginning.
  const asked = stopSignal();
  const host = optionOf(line, "host", text) ?? "127.0.0.1";
  const port = optionOf(line, "port", wholeNumber(0, 65_535)) ?? 3000;
  const input = { ...inputOf(line), overHttp: true } as const;
  const settings = settingsFrom(input);
  const access = readAccess(settings.http.accessFile);
  checkAccess(settings, access, host);
  const started = await startProcess({ line, input, settings, access, serves: true }, settings.http.metrics, asked);
  const { all, backend, isReady, log, stopping, problem, close } = started;
  if (isReady !== true) {
    await close();
    return isReady === false ? 1 : 0;
  }
  const { services, start } = all.of(undefined);
  const { face, calls, asks } = await endedOnError(started, async () => {
    const { listensAt, ...parts } = await serverOf(started, host, port);
    await Promise.race([start(), asked]);
    await Promise.race([claimOrphanedRuns(started), asked]);
    const url = (await listen(parts.face.server, host, port)) + MCP_PATH;
    listensAt(url);
    log.info("serving", { url, environment: services.environment, version: VERSION, asksWho: parts.asks });
    return parts;
  });
  const { logStartWarnings } = await import("./doctor-machine.ts");
  logStartWarnings(log, settings, input, problem);
  const lacking = projectsWithoutApprover(settings, access, { asksWho: asks, environment: input.environment });
  if (lacking !== undefined) log.warn(lacking.found, { remedy: lacking.remedy });
  await asked;
  log.info("stopping", {});
  stopping.abort();
  giveUpAfter(backend, LAST_CALLS_MS);
  await stop(face, all, calls);
  await close();
  return 0;
}

/** Creates the HTTP server. When the port is open, `listensAt` must be called with the address. */
async function serverOf(started: Started, host: string, port: number) {
  const { settings, access, accessOfNow, tokens, all, input, log, seals, observer, backend, figures } = started;
  const { signal: stopping } = started.stopping;
  const calls = callsUnderWay();
  const publicUrl = settings.http.publicUrl ?? originOf(host, port) + MCP_PATH;
  const addresses = [SETTINGS.targetingApiUrl, SETTINGS.eventApiUrl].map((one) => settingText(one, input)?.text ?? "");
  const { auth, metadata } = await authOf(
    settings,
    { access, accessOfNow, addresses, ownKeys: settings.http.ownKeys, noteToken: tokens.note },
    { publicUrl, log },
  );
  const tools = await allTools();
  const asks = requiresAuthentication(auth);
  let address = publicUrl;
  const deciders = people({
    settings,
    access: accessOfNow,
    all,
    asksWho: asks,
    stopping,
    environment: input.environment,
    address: () => new URL("/", address).href,
    key: () => seals("page"),
    endedSessions: backend.endedSessions,
  });
  const shared = {
    calls,
    observer,
    seal: questionSeal(await whenReachable(() => seals("question")).catch(asSetting)),
    skills: await loadSkills(),
  };
  const face = createHttpServer({
    ...auth,
    hostnames: allowedHostnames([bracketed(host), new URL(publicUrl).hostname, ...settings.http.allowedHosts]),
    authenticate: authenticator(auth),
    partsFor: partsMaker(all, tools, deciders.servicesFor, shared),
    createServer: createMcpServer,
    toolsWithLists: toolsWithLists(tools),
    metadata,
    sessions: settings.http.sessions,
    waitMs: settings.waitMs,
    page: deciders.serve,
    maxConcurrency: settings.http.maxConcurrency,
    log,
    stopping,
    ready: backend.ready,
    metrics: figures && servedFigures(figures, started),
  });
  const listensAt = (url: string): void => {
    address = settings.http.publicUrl ?? url;
  };
  return { face, calls, listensAt, asks };
}

async function authOf(
  { http: { oauth }, proxies }: Settings,
  known: AuthOptions,
  { publicUrl, log }: { readonly publicUrl: string; readonly log: Log },
) {
  if (oauth === undefined) return { auth: known, metadata: new Map<string, unknown>() };
  const { issuer, audience = publicUrl, jwksUrl, projectClaim } = oauth;
  const resource = protectedResource(publicUrl, issuer);
  // Imported only when needed, because most servers have no authorization server.
  const { jwtVerifier } = await import("../http/jwt.ts");
  const auth: AuthOptions = {
    ...known,
    jwt: jwtVerifier({ issuer, audience, jwksUrl, projectClaim, proxies }, (reason) =>
      log.warn("the keys of the authorization server cannot be read", { reason }),
    ),
    resourceMetadataUrl: resource.url,
  };
  return { auth, metadata: resource.metadata };
}

/** Returns a function that creates what one caller needs. All callers share the tools and their schemas. */
function partsMaker(
  all: Projects,
  tools: readonly ListedTool[],
  servicesFor: ReturnType<typeof people>["servicesFor"],
  shared: Pick<ServerParts, "calls" | "observer" | "seal" | "skills">,
): HttpOptions["partsFor"] {
  const writingTools = toolsThatWrite(tools);
  return ({ name, owner: caller, keys, readOnly, folders }) => {
    const project = all.of(keys);
    const { services, offer, redactor, log, audit, use, forgotten } = project;
    const mine = {
      ...services,
      ...servicesFor({ name, owner: caller, keys }, project),
      noteDecision: audit,
      readOnly: services.readOnly || readOnly,
      allowedDirs: folders,
    };
    const its = { ...offer, readOnly: mine.readOnly };
    return {
      ...shared,
      version: VERSION,
      writingTools,
      caller,
      loadViews: async () => (await import("../mcp/views.ts")).loadViews(its),
      tools: listedTools(tools, its),
      hidden: hiddenTools(tools, its),
      environment: mine.environment,
      services: async () => mine,
      redactor,
      log,
      audit,
      use,
      forgotten,
    };
  };
}

/** Stops runs before their next request, and waits for the calls in progress, but only for a limited time. */
async function stop(
  { server, close }: ReturnType<typeof createHttpServer>,
  all: Projects,
  calls: CallsUnderWay,
): Promise<void> {
  const closed = once(server, "close");
  server.close();
  const idle = setInterval(() => server.closeIdleConnections(), IDLE_SWEEP_MS);
  await Promise.all([all.interrupt(), calls.idle(LAST_CALLS_MS)]);
  await Promise.race([closed, delay(LAST_ANSWERS_MS, undefined, { ref: false })]);
  await close();
  server.closeAllConnections();
  clearInterval(idle);
}

/** Returns what `work` returns. If it fails, first ends the runs that this process executes, and leaves the store. */
async function endedOnError<T>({ stopping, all, backend, close }: Started, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    stopping.abort();
    giveUpAfter(backend, LAST_CALLS_MS);
    await all.interrupt();
    await close();
    throw thrown;
  }
}

export async function runWorker(line: CommandLine): Promise<number> {
  process.stderr.on("error", () => undefined);
  const asked = stopSignal();
  const input = { ...inputOf(line), overHttp: true } as const;
  const host = optionOf(line, "host", text) ?? "127.0.0.1";
  const port = optionOf(line, "port", wholeNumber(0, 65_535));
  const read = settingsFrom(input);
  if (read.store === undefined) return withoutStore("worker");
  // A worker always executes runs. TARGETING_MCP_DRIVE is ignored, because it is only for processes that serve calls.
  const settings = { ...read, store: { ...read.store, drives: true } };
  const access = readAccess(settings.http.accessFile);
  const start = { line, input, settings, access, serves: false };
  const started = await startProcess(start, settings.http.metrics && port !== undefined, asked);
  const { stopping, figures, problem, backend, all, log, isReady, close } = started;
  let probed: Server | undefined;
  if (isReady) {
    if (problem !== undefined) log.warn(NO_TRACES, { error: problem });
    const answers = probes({
      stopping: stopping.signal,
      ready: backend.ready,
      metrics: figures && servedFigures(figures, started),
    });
    const server = createServer(getRequestListener(answers.fetch, { overrideGlobalObjects: false }));
    await endedOnError(started, async () => {
      await Promise.race([claimOrphanedRuns(started), asked]);
      const url = port === undefined ? undefined : await listen(server, host, port);
      log.info("driving", { worker: `${hostname()}:${process.pid}`, ...(url !== undefined && { url }) });
    });
    probed = server;
    await asked;
    log.info("stopping", {});
  }
  stopping.abort();
  giveUpAfter(backend, LAST_CALLS_MS);
  await all.interrupt();
  await close();
  probed?.close();
  probed?.closeAllConnections();
  return isReady === false ? 1 : 0;
}
