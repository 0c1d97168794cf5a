import { randomBytes } from "node:crypto";
import { homedir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../api/clock.ts";
import { eventsOver } from "../api/event-client.ts";
import { type Http, openHttp } from "../api/http.ts";
import type { ManagementApi } from "../api/management.ts";
import { managementOver } from "../api/management-client.ts";
import { withReadRetry } from "../api/read.ts";
import { fileRunStore } from "../bulk/file-store.ts";
import { targetingMemory } from "../bulk/memory.ts";
import { machineLock } from "../bulk/project-lock.ts";
import { Runs } from "../bulk/runs.ts";
import { reasonWords } from "../render/messages.ts";
import { type Redactor, redactorFor } from "../render/redact.ts";
import type { Offer } from "../server/listing.ts";
import { createLog, type Log } from "../server/log.ts";
import type { CommandLine } from "../settings/command-line.ts";
import type { Endpoint, SandboxEnvironment } from "../settings/environment.ts";
import { SettingsError } from "../settings/error.ts";
import { proxyFor } from "../settings/proxy.ts";
import { readSettings, type Settings } from "../settings/settings.ts";
import { type RouteTable, routesWith } from "../spec/routes.ts";
import { isUlid, ulidSource } from "../spec/ulid.ts";
import type { ToolServices } from "../tools/context.ts";
import { contextIdShelf } from "../tools/context-id-shelf.ts";
import { acceptedKeys, embeddedSandbox } from "./embedded-sandbox.ts";

/** Reads the settings of this process. Throws a SettingsError, also for what only the API documents can judge. */
export function settingsOf({ flags }: CommandLine): Settings {
  const settings = readSettings({ flags, environment: process.env, platform: process.platform, home: homedir() });
  const foreign = settings.allowedTargetings?.find((id) => !isUlid(id));
  if (foreign !== undefined) {
    throw new SettingsError(
      `TARGETING_MCP_ALLOWED_TARGETINGS (--allowed-targetings) must be a comma list of ULIDs; ${JSON.stringify(foreign)} is none`,
      "TARGETING_MCP_ALLOWED_TARGETINGS",
    );
  }
  return settings;
}

/** Everything below the server, put together. */
export interface Connected {
  readonly services: ToolServices;
  readonly offer: Offer;
  readonly redactor: Redactor;
  readonly log: Log;
  /** Begins what should be there before the first call. */
  readonly start: () => void;
  /** Closes the connections to the APIs. */
  readonly close: () => Promise<void>;
}

/**
 * Puts the rooms below the server together; no connection is made yet, and no file is touched. `stopping` is aborted
 * when the process is about to end.
 */
export function connect(settings: Settings, stopping: AbortSignal): Connected {
  const redactor = redactorFor(settings.secrets);
  const log = createLog({
    level: settings.logLevel,
    write: (line) => process.stderr.write(line),
    redact: redactor.text,
    now: systemClock.now,
  });
  const apis = openApis(settings);
  const services = { ...servicesOver(apis, settings, log), stopping };
  // Runs that go on in the background stop between two requests; a later process can take them up.
  stopping.addEventListener("abort", () => void services.runs?.stopAll());
  return {
    services,
    offer: {
      readOnly: settings.readOnly,
      toolsets: settings.toolsets,
      configured: [...(apis.management ? ["targeting" as const] : []), ...(apis.events ? ["events" as const] : [])],
    },
    redactor,
    log,
    start: () => {
      apis.start().catch((error: unknown) => log.error("the embedded sandbox could not be started", { error }));
    },
    close: async () => {
      await services.runs?.stopAll();
      await apis.close();
    },
  };
}

function servicesOver({ management, events }: Apis, settings: Settings, log: Log): Omit<ToolServices, "stopping"> {
  const { environment, retryBudgetMs, waitMs } = settings;
  const routes = routesOf(settings);
  const retry = { clock: systemClock, budgetMs: Math.min(retryBudgetMs, waitMs) };
  // What an embedded sandbox holds ends with this process, and so does the memory of it.
  const lasting = environment.kind === "live" || environment.url !== undefined;
  const api = management && withReadRetry(managementOver(management, routes), retry);
  return {
    environment: environment.kind,
    ...(api && { management: api, runs: runsOver(api, routes, settings) }),
    ...(events && { events: eventsOver(events, routes) }),
    memory: targetingMemory({
      file: lasting ? join(settings.stateDir, "projects", settings.project.id, "targetings.json") : undefined,
      now: systemClock.now,
      onProblem: (error) => log.warn("the memory of targetings could not be read or written", { error }),
    }),
    shelf: contextIdShelf(systemClock),
    confirm: settings.confirm,
    sealKey: randomBytes(32),
    maxDeletes: settings.maxDeletes,
    allowedDirs: settings.allowedDirs,
    clock: systemClock,
    waitMs,
  };
}

function runsOver(
  api: ManagementApi,
  routes: RouteTable,
  { environment, project, retryBudgetMs, stateDir }: Settings,
): Runs {
  return new Runs({
    api,
    routes,
    store: fileRunStore(join(stateDir, "runs"), systemClock.now),
    lock: machineLock((id) => join(stateDir, "projects", id), systemClock),
    clock: systemClock,
    random: Math.random,
    newRunId: ulidSource(systemClock.now, Math.random),
    project: project.id,
    environment: environment.kind,
    retryBudgetMs,
    words: reasonWords,
  });
}

function routesOf({ routes }: Settings): RouteTable {
  try {
    return routesWith(routes);
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    throw new SettingsError(`TARGETING_MCP_ROUTES (--routes): ${thrown.message}`, "TARGETING_MCP_ROUTES");
  }
}

interface Apis {
  readonly management?: Http | undefined;
  readonly events?: Http | undefined;
  readonly start: () => Promise<unknown>;
  readonly close: () => Promise<void>;
}

function openApis({ environment, requestTimeoutMs, proxies }: Settings): Apis {
  if (environment.kind === "sandbox") return openSandbox(environment, requestTimeoutMs);
  const open = (endpoint: Endpoint | undefined, header: string) =>
    endpoint &&
    openHttp({
      url: endpoint.url,
      credential: { [header]: endpoint.key },
      requestTimeoutMs,
      proxy: proxyFor(endpoint.url, proxies),
    });
  const management = open(environment.management, "x-api-key");
  const events = open(environment.events, "authorization");
  return {
    management,
    events,
    start: async () => undefined,
    close: async () => void (await Promise.all([management?.close(), events?.close()])),
  };
}

function openSandbox(environment: SandboxEnvironment, requestTimeoutMs: number): Apis {
  const { port, managementKey, eventKey } = environment;
  const embedded = embeddedSandbox({ port, keys: acceptedKeys(managementKey, eventKey) });
  const url = environment.url ?? embedded.url;
  const management = openHttp({ url, credential: { "x-api-key": managementKey }, requestTimeoutMs });
  const events = openHttp({ url, credential: { authorization: eventKey }, requestTimeoutMs });
  return {
    management,
    events,
    // Whoever names a port may look at it before the first call.
    start: async () => (environment.url === undefined && port !== 0 ? embedded.url() : undefined),
    async close() {
      await Promise.all([management.close(), events.close()]);
      await embedded.close();
    },
  };
}
