import type { Redactor } from "../answers/fence.ts";
import { serverTimeOf } from "../api/answers.ts";
import { eventsOver, sandboxOver } from "../api/events.ts";
import { type Http, openHttp } from "../api/http.ts";
import { keepingToLimits, type ManagementApi, managementOver, withReadRetry } from "../api/management.ts";
import { Approvals } from "../changes/approvals.ts";
import { Changes } from "../changes/changes.ts";
import { EventRuns } from "../events/run/event-runs.ts";
import { observerOf } from "../events/run/verdicts.ts";
import { SuiteStore } from "../events/suites/suite-store.ts";
import type { ToolAvailability } from "../mcp/server-parts.ts";
import { type Audit, auditInto, auditRun } from "../observe/audit.ts";
import type { Log, LogFields } from "../observe/log.ts";
import type { Observer } from "../observe/observer.ts";
import type { Named } from "../platform/by-key.ts";
import { systemClock } from "../platform/clock.ts";
import type { Backend, TargetingMemory } from "../runs/backend.ts";
import type { MayExecute, RestedRun, RunsContext } from "../runs/kind.ts";
import type { Reason } from "../runs/outcome.ts";
import { Runs } from "../runs/registry.ts";
import { BUILT_IN_KEYS } from "../sandbox/callers.ts";
import { SaveRuns } from "../saves/save-runs.ts";
import { type Endpoint, type LiveEnvironment, proxyFor, type SandboxEnvironment } from "../settings/environment.ts";
import { SETTINGS } from "../settings/registry.ts";
import type { Settings } from "../settings/settings.ts";
import { ulidSource } from "../spec/names-and-contexts.ts";
import { ROUTES } from "../spec/routes.ts";
import { LEAST_READ_MS, once, type ToolServices } from "../tools/define-tool.ts";
import type { GuardParts } from "../tools/execution-guard.ts";
import { acceptedKeys, embeddedSandbox } from "./embedded-sandbox.ts";
import { type LogParts, type LogSetup, logOf } from "./observers.ts";
import { availabilityOf, routesOf, startsSandbox } from "./settings-input.ts";
import { backendOf, sealKeys } from "./store.ts";

export interface ServerProcess {
  readonly services: ToolServices;
  readonly offer: ToolAvailability;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly audit: Audit;
  /** Starts to remove old runs. Starts the sandbox if `startsSandbox`. Resolves when it runs or has failed to start. */
  readonly start: () => Promise<void>;
  /** Stops every run before its next request, so that a later process can continue it. */
  readonly stopRuns: () => Promise<void>;
  /** Stops runs, closes the connections to the APIs, and writes the remaining audit entries. */
  readonly close: () => Promise<void>;
}

export interface Shared extends LogParts {
  /** Aborted before the process ends. */
  readonly stopping: AbortSignal;
  readonly backend: Backend;
  readonly sealKey: () => Promise<Uint8Array>;
  readonly logging?: LogSetup;
  readonly observer?: Observer | undefined;
  /** Returns the present rights of a run's caller. Absent if callers may do everything that the settings allow. */
  readonly rightsOf?: GuardParts["rightsOf"];
  readonly inTerminal?: GuardParts["inTerminal"];
}

/** Creates the services for calls. Does not yet send requests or open files. */
export function connect(settings: Settings, shared: Shared): ServerProcess {
  const { stopping, backend, sealKey, observer, rightsOf, inTerminal } = shared;
  const { redactor, log } = shared.logging ?? logOf(settings, shared);
  const { retention } = backend.runs;
  retention.onDoubt((doubt) => log.warn(doubt, {}));
  // A live service has its own clock. A sandbox usually uses that of this machine, so comparing would show nothing.
  const serviceTime = settings.environment.kind === "live" ? retention.noteService : undefined;
  const apis = watched(openApis(settings), { redact: redactor.bytes, log, request: observer?.request, serviceTime });
  const audit = auditInto(settings.store === undefined ? backend.audit : alsoLogged(backend.audit, log), {
    now: systemClock.now,
    redact: redactor.text,
    log,
  });
  const onRest = (run: RestedRun): void => {
    const { requestId } = log.facts();
    auditRun(audit, run, typeof requestId === "string" ? requestId : undefined);
  };
  const services: ToolServices = {
    ...servicesOver(apis, settings, { backend, log, around: observer?.run, onRest, rightsOf, inTerminal }),
    sealKey,
    stopping,
  };
  const stopRuns = () => services.runs.stopAll();
  return {
    services,
    offer: availabilityOf(settings),
    redactor,
    log,
    audit,
    start: async () => {
      services.runs.tidy().catch((error: unknown) => log.warn("old runs could not be removed", { error }));
      try {
        await apis.start();
      } catch (error) {
        log.error("the embedded sandbox could not be started", { error });
      }
    },
    stopRuns,
    close: async () => {
      await stopRuns();
      await apis.close();
      await audit.written();
    },
  };
}

/** Opens the store and creates the services for calls. `close` closes both. */
export async function openProcess(
  settings: Settings,
  shared: Omit<Shared, "backend" | "sealKey">,
): Promise<ServerProcess> {
  const backend = await backendOf(settings);
  const seals = sealKeys(settings.sealKey, backend.sealKey);
  const connected = connect(settings, { ...shared, backend, sealKey: () => seals("confirmation") });
  const close = async (): Promise<void> => {
    await connected.close();
    await backend.close();
  };
  return { ...connected, close };
}

/** Opens the store and the services for `work` of a terminal command. Closes both afterwards. */
export async function withServices<Result>(
  settings: Settings,
  work: (connected: ServerProcess) => Promise<Result>,
): Promise<Result> {
  const connected = await openProcess(settings, { stopping: new AbortController().signal, inTerminal: true });
  try {
    return await work(connected);
  } finally {
    await connected.close();
  }
}

/**
 * Returns a function that writes audit entries to the shared audit table, and also to the log, because those who run
 * this process may not have access to the table.
 */
function alsoLogged(append: Backend["audit"], log: Log): Backend["audit"] {
  return async (line) => {
    log.info("audit", { line });
    await append(line);
  };
}

/** Returns an API that also stores the names of the targetings it reads, so that calls find them by name. */
function rememberingNames(
  api: ManagementApi,
  memory: Pick<TargetingMemory, "remember">,
  known = new Map<string, string>(),
): ManagementApi {
  const { forCall } = api;
  return {
    ...api,
    ...(forCall && { forCall: () => rememberingNames(forCall(), memory, known) }),
    async getTargeting(targetingId, options) {
      const targeting = await api.getTargeting(targetingId, options);
      const { _id, name } = targeting;
      if (known.get(_id) !== name) {
        await memory.remember([{ _id, name }]);
        if (known.size >= MOST_KNOWN_NAMES) known.clear();
        known.set(_id, name);
      }
      return targeting;
    },
  };
}

const MOST_KNOWN_NAMES = 10_000;

interface Below extends Pick<RunsContext, "around" | "onRest">, Pick<Shared, "rightsOf" | "inTerminal"> {
  readonly backend: Backend;
  readonly log: Log;
}

function limitsOf(settings: Settings) {
  const { readOnly, maxDeletes, maxChangePercent, allowedDirs, waitMs, allowedTargetings } = settings;
  const environment = settings.environment.kind;
  const limits = { environment, readOnly, maxDeletes, maxChangePercent, allowedDirs, waitMs };
  return { ...limits, ...(allowedTargetings && { allowedTargetings }) };
}

/** Returns the check of whether a run may be executed now. Imported with the first run, for a fast start. */
function executionGuardOf(
  settings: Settings,
  management: ManagementApi | undefined,
  { backend, rightsOf, inTerminal }: Pick<Below, "backend" | "rightsOf" | "inTerminal">,
): MayExecute {
  const parts: GuardParts = {
    ...limitsOf(settings),
    project: settings.project.id,
    toolsets: settings.toolsets,
    management,
    rightsOf,
    inTerminal,
    input: (runId) => backend.runs.parts.read(runId, "input"),
  };
  const guard = once(async () => (await import("../tools/execution-guard.ts")).executionGuard(parts));
  return async (run) => (await guard())(run);
}

function servicesOver(apis: Apis, settings: Settings, { backend, log, around, onRest, rightsOf, inTerminal }: Below) {
  const { management, events, bench, sandbox } = apis;
  const { environment, retryBudgetMs, requestTimeoutMs, waitMs, readConcurrency: width } = settings;
  const { id, name = id } = settings.project;
  const half = environment.kind === "live" ? environment.half : undefined;
  const routes = routesOf(settings);
  // The first attempt gets a third of the time, so that a second one is possible if there is no answer.
  const firstTryMs = Math.ceil(Math.max(waitMs, LEAST_READ_MS) / 3);
  const retried = (budgetMs: number): ManagementApi | undefined =>
    management &&
    withReadRetry(managementOver(management, routes), { clock: systemClock, budgetMs, firstTryMs, width });
  // An embedded sandbox and its targetings end with the process, so their names are not stored.
  const lasting = environment.kind === "live" || environment.url !== undefined;
  const eventApi = events && eventsOver(events, routes);
  const memory = backend.names(id, {
    lasting,
    ...(apis.seeded && { known: apis.seeded }),
    onProblem: (error) => log.warn("the stored names of targetings could not be read or written", { error }),
  });
  const [read, driven] = [Math.min(retryBudgetMs, waitMs), retryBudgetMs].map((budgetMs) => {
    const api = retried(budgetMs);
    return api && rememberingNames(api, memory);
  });
  const world = {
    mayExecute: executionGuardOf(settings, read, { backend, rightsOf, inTerminal }),
    onRest,
    store: backend.runs,
    lock: backend.lock,
    memory,
    clock: systemClock,
    random: Math.random,
    newRunId: ulidSource(systemClock.now, Math.random),
    project: id,
    environment: environment.kind,
    retryBudgetMs,
    // Imported only when needed, because only the file of failed rows contains these sentences.
    words: async (reason: Reason) => (await import("../answers/failures.ts")).reasonWords(reason),
    ...(environment.kind === "sandbox" && { sandbox: environment.url ?? "embedded" }),
    ...(around && { around }),
  };
  const observe = environment.kind === "sandbox" && sandbox && { observe: observerOf(sandboxOver(sandbox)) };
  const changes = driven && new Changes({ ...world, api: driven, routes, requestTimeoutMs });
  const sending = eventApi && new EventRuns({ ...world, api: eventApi, ...observe });
  const contents = lasting
    ? backend.contents(id, (error) =>
        log.warn("Context IDs could not be written to the cache or read from it", { error }),
      )
    : undefined;
  const saves = driven && new SaveRuns({ ...world, api: driven, contents });
  const approvals = new Approvals(world);
  const kinds = [changes?.runs, sending?.runs, saves?.runs, approvals.runs].filter((kind) => kind !== undefined);
  return {
    ...limitsOf(settings),
    ...(settings.blocked !== undefined && { blocked: settings.blocked }),
    ...(half !== undefined && {
      half: { ...(half.management && { targeting: half.management }), ...(half.events && { events: half.events }) },
    }),
    ...(read && { management: read }),
    runs: new Runs(world, kinds),
    ...(changes && { changes }),
    ...(sending && { sending }),
    ...(eventApi && { events: eventApi }),
    ...(bench && { testBench: { url: apis.benchUrl, events: eventsOver(bench, ROUTES), sandbox: sandboxOver(bench) } }),
    ...(sandbox && { sandbox: sandboxOver(sandbox) }),
    memory,
    ...(contents && { contents }),
    ...(saves && { saves }),
    approvals,
    suites: new SuiteStore(backend.suites),
    confirm: settings.confirm,
    trustViews: settings.trustViews,
    keep: settings.keep,
    maxLineBytes: settings.maxLineBytes,
    project: { id, name },
    apiUrl: (environment.kind === "live" ? environment.management?.url : environment.url) ?? "embedded sandbox",
    clock: systemClock,
  };
}

/** The connections to the APIs. Before the first request, nothing is connected or started. */
interface Apis {
  readonly management?: Http | undefined;
  readonly events?: Http | undefined;
  /** The sandbox for event tests. In live mode, not the one that people inspect, so that tests add nothing there. */
  readonly bench?: Http | undefined;
  /** Returns the address for generated tests: of the sandbox that people inspect, or else of that for event tests. */
  readonly benchUrl: () => Promise<string>;
  readonly sandbox?: Http | undefined;
  readonly seeded?: () => Promise<readonly Named[]>;
  readonly start: () => Promise<unknown>;
  readonly close: () => Promise<void>;
}

function openApis(settings: Settings): Apis {
  const { environment } = settings;
  return environment.kind === "sandbox" ? openSandbox(environment, settings) : openLive(environment, settings);
}

interface Watch {
  readonly redact: (body: Buffer) => Buffer;
  readonly log: Log;
  readonly request?: Observer["request"] | undefined;
  readonly serviceTime?: ((time: number) => void) | undefined;
}

/** Wraps the connections: removes keys from answers, logs requests, and sends no more to an API that asks to wait. */
function watched(apis: Apis, { redact, log, request, serviceTime }: Watch): Apis {
  const seen = (
    http: Http | undefined,
    around?: Observer["request"],
    timeSaid?: (time: number) => void,
  ): Http | undefined =>
    http && {
      ...http,
      async send(sent) {
        const { operation, method } = sent;
        const began = systemClock.now();
        const ended = (how: LogFields): void =>
          log.debug("a request to an API", { operation, method, milliseconds: systemClock.now() - began, ...how });
        const send = () => http.send(sent);
        try {
          const answer = await (around === undefined ? send() : around(sent, send));
          ended({ statusCode: answer.statusCode });
          const time = timeSaid && serverTimeOf(answer.headers);
          if (time !== undefined) timeSaid?.(time);
          return { ...answer, body: redact(answer.body) };
        } catch (error) {
          ended({ error });
          throw error;
        }
      },
    };
  const limited = (http: Http | undefined) => http && keepingToLimits(http, systemClock.monotonic);
  return {
    ...apis,
    management: limited(seen(apis.management, request, serviceTime)),
    events: limited(seen(apis.events, request, serviceTime)),
    bench: seen(apis.bench),
    sandbox: seen(apis.sandbox),
  };
}

function openLive(environment: LiveEnvironment, settings: Settings): Apis {
  const { requestTimeoutMs, proxies, sandboxUrl, readConcurrency: connections } = settings;
  const open = (endpoint: Endpoint | undefined, header: string, setBy: string) =>
    endpoint &&
    openHttp({
      connections,
      url: endpoint.url,
      setBy,
      credential: { [header]: endpoint.key },
      requestTimeoutMs,
      proxy: proxyFor(endpoint.url, proxies),
    });
  const management = open(environment.management, "x-api-key", SETTINGS.targetingApiUrl.variable);
  const events = open(environment.events, "authorization", SETTINGS.eventApiUrl.variable);
  const embedded = embeddedSandbox({ port: 0, keys: {}, seed: "none" });
  const [authorization] = BUILT_IN_KEYS.app;
  const bench = events && openHttp({ url: embedded.url, credential: { authorization }, requestTimeoutMs });
  const sandbox =
    sandboxUrl === undefined
      ? undefined
      : openHttp({ url: sandboxUrl, setBy: SETTINGS.sandboxUrl.variable, credential: {}, requestTimeoutMs });
  return {
    management,
    events,
    bench,
    benchUrl: async () => sandboxUrl ?? embedded.url(),
    sandbox,
    start: async () => undefined,
    async close() {
      await Promise.all([management, events, bench, sandbox].map((http) => http?.close()));
      await embedded.close();
    },
  };
}

function openSandbox(environment: SandboxEnvironment, settings: Settings): Apis {
  const { requestTimeoutMs, http, readConcurrency: connections } = settings;
  const { port, seed, managementKey, eventKey } = environment;
  const embedded = embeddedSandbox({
    port,
    seed,
    keys: acceptedKeys(managementKey, eventKey),
    allowedHosts: http.allowedHosts,
  });
  const url = environment.url ?? embedded.url;
  const way = { url, requestTimeoutMs, ...(environment.url !== undefined && { setBy: SETTINGS.sandboxUrl.variable }) };
  const management = openHttp({ ...way, credential: { "x-api-key": managementKey }, connections });
  const events = openHttp({ ...way, credential: { authorization: eventKey } });
  return {
    management,
    events,
    bench: events,
    benchUrl: async () => environment.url ?? embedded.url(),
    sandbox: events,
    ...(environment.url === undefined && seed !== "none" && { seeded: embedded.seeded }),
    start: async () => {
      if (startsSandbox({ environment })) await embedded.url();
    },
    async close() {
      await Promise.all([management.close(), events.close()]);
      await embedded.close();
    },
  };
}
