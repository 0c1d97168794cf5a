import { join } from "node:path";
import { eventsOver } from "../api/event-client.ts";
import type { EventApi } from "../api/events.ts";
import type { Http } from "../api/http.ts";
import type { ManagementApi } from "../api/management.ts";
import { managementOver } from "../api/management-client.ts";
import { withReadRetry } from "../api/read.ts";
import { sandboxOver } from "../api/sandbox.ts";
import { WRITE_FORM } from "../changes/run-form.ts";
import { Runs } from "../changes/runs.ts";
import { EVENT_FORM } from "../events/run/event-form.ts";
import { EventRuns } from "../events/run/event-runs.ts";
import { suiteStore } from "../events/suites/suite-store.ts";
import { observerOf } from "../events/watch/observe.ts";
import { systemClock } from "../platform/clock.ts";
import { fileContentsStore } from "../reading/contents-file.ts";
import { reasonWords } from "../render/failures/messages.ts";
import { type Redactor, redactorFor } from "../render/redact.ts";
import { machineLock } from "../runs/file/project-lock.ts";
import { fileRunStore } from "../runs/file/run-store.ts";
import { targetingMemory } from "../runs/file/targeting-names.ts";
import type { TargetingMemory } from "../runs/targeting-names.ts";
import { type Audit, auditIn } from "../server/audit.ts";
import type { Offer } from "../server/listing.ts";
import { createLog, type FollowedWork, followWork, type Log } from "../server/log.ts";
import type { Settings } from "../settings/settings.ts";
import { ROUTES, type RouteTable } from "../spec/routes.ts";
import { ulidSource } from "../spec/ulid.ts";
import { LEAST_READ_MS, type ToolServices } from "../tools/context.ts";
import { type Apis, openApis, watched } from "./open-apis.ts";
import { routesOf } from "./settings-input.ts";

/** Everything below the server, put together. */
export interface Connected {
  readonly services: ToolServices;
  readonly offer: Offer;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly audit: Audit;
  /** Begins what should be there before the first answer; resolves when it is there, or was found not to work. */
  readonly start: () => Promise<void>;
  /** Stops runs between two requests, so that a later process can take them up; resolves when they rest. */
  readonly stopRuns: () => Promise<void>;
  /** Stops runs, closes the connections to the APIs, and writes the rest of the audit. */
  readonly close: () => Promise<void>;
}

/** What everything of one process shares. */
export interface Shared {
  /** Aborted when the process is about to end. */
  readonly stopping: AbortSignal;
  /** Gives the key that seals confirmations. */
  readonly sealKey: () => Promise<Uint8Array>;
  /** Where each line of the log says to which request it belongs; at the level `debug` it does in any case. */
  readonly work?: FollowedWork;
  /** Secrets besides those of the settings. */
  readonly secrets?: readonly string[];
}

/** Puts the rooms below the server together; no connection is made yet, and no file is touched. */
export function connect(settings: Settings, { stopping, sealKey, work, secrets = [] }: Shared): Connected {
  const redactor = redactorFor([...settings.secrets, ...secrets]);
  const log = createLog({
    level: settings.logLevel,
    write: (line) => process.stderr.write(line),
    redact: redactor.text,
    now: systemClock.now,
    work: work ?? (settings.logLevel === "debug" ? followWork() : undefined),
  });
  const apis = watched(openApis(settings), { redact: redactor.bytes, log, now: systemClock.now });
  const services = { ...servicesOver(apis, settings, log), sealKey, stopping };
  const audit = auditIn(settings.stateDir, { now: systemClock.now, redact: redactor.text, log });
  const stopRuns = async () => {
    await Promise.all([services.runs?.stopAll(), services.eventRuns?.stopAll()]);
  };
  return {
    services,
    offer: {
      readOnly: settings.readOnly,
      toolsets: settings.toolsets,
      hasSandbox: services.sandbox !== undefined,
      configured: [
        ...((services.management ?? services.half?.targeting) ? ["targeting" as const] : []),
        ...((services.events ?? services.half?.events) ? ["events" as const] : []),
      ],
    },
    redactor,
    log,
    audit,
    start: async () => {
      for (const runs of [services.runs, services.eventRuns]) {
        runs?.tidy().catch((error: unknown) => log.warn("old runs could not be looked for", { error }));
      }
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

type Services = Omit<ToolServices, "stopping" | "sealKey">;

function servicesOver(apis: Apis, settings: Settings, log: Log): Services {
  const { management, events, bench, sandbox } = apis;
  const { environment, retryBudgetMs, waitMs, readConcurrency: width } = settings;
  const half = environment.kind === "live" ? environment.half : undefined;
  const routes = routesOf(settings);
  // A request that hangs is to leave time for another one, also while a caller waits.
  const firstTryMs = Math.ceil(Math.max(waitMs, LEAST_READ_MS) / 3);
  const retried = (budgetMs: number): ManagementApi | undefined =>
    management &&
    withReadRetry(managementOver(management, routes), { clock: systemClock, budgetMs, firstTryMs, width });
  // What an embedded sandbox holds ends with this process, and so does the memory of it.
  const lasting = environment.kind === "live" || environment.url !== undefined;
  const eventApi = events && eventsOver(events, routes);
  const [read, driven] = [retried(Math.min(retryBudgetMs, waitMs)), retried(retryBudgetMs)];
  const memory = targetingMemory({
    file: lasting ? join(settings.stateDir, "projects", settings.project.id, "targetings.json") : undefined,
    now: systemClock.now,
    ...(apis.seeded && { known: apis.seeded }),
    onProblem: (error) => log.warn("the memory of targetings could not be read or written", { error }),
  });
  return {
    environment: environment.kind,
    ...(half !== undefined && {
      half: { ...(half.management && { targeting: half.management }), ...(half.events && { events: half.events }) },
    }),
    ...(read && { management: read }),
    ...(driven && { runs: runsOver(driven, routes, memory, settings) }),
    ...(eventApi && { events: eventApi, eventRuns: eventRunsOver(eventApi, sandbox, settings) }),
    ...(bench && { testBench: { url: apis.benchUrl, events: eventsOver(bench, ROUTES), sandbox: sandboxOver(bench) } }),
    ...(sandbox && { sandbox: sandboxOver(sandbox) }),
    memory,
    ...(lasting && {
      contents: fileContentsStore({
        file: join(settings.stateDir, "projects", settings.project.id, "contents.ndjson"),
        onProblem: (error) => log.warn("Context IDs could not be kept or found again", { error }),
      }),
    }),
    suites: suiteStore(join(settings.stateDir, "suites")),
    readOnly: settings.readOnly,
    confirm: settings.confirm,
    ...(settings.allowedTargetings && { allowedTargetings: settings.allowedTargetings }),
    maxDeletes: settings.maxDeletes,
    allowedDirs: settings.allowedDirs,
    clock: systemClock,
    waitMs,
  };
}

function runsOver(
  api: ManagementApi,
  routes: RouteTable,
  memory: TargetingMemory,
  { environment, project, retryBudgetMs, stateDir, keep }: Settings,
): Runs {
  return new Runs({
    api,
    routes,
    store: fileRunStore(join(stateDir, "runs"), systemClock, WRITE_FORM, keep),
    lock: machineLock((id) => join(stateDir, "projects", id), systemClock),
    clock: systemClock,
    random: Math.random,
    newRunId: ulidSource(systemClock.now, Math.random),
    project: project.id,
    environment: environment.kind,
    retryBudgetMs,
    words: reasonWords,
    memory,
  });
}

function eventRunsOver(
  api: EventApi,
  sandbox: Http | undefined,
  { environment, project, retryBudgetMs, stateDir, keep }: Settings,
): EventRuns {
  return new EventRuns({
    api,
    store: fileRunStore(join(stateDir, "event-runs"), systemClock, EVENT_FORM, keep),
    clock: systemClock,
    newRunId: ulidSource(systemClock.now, Math.random),
    project: project.id,
    environment: environment.kind,
    retryBudgetMs,
    words: reasonWords,
    ...(environment.kind === "sandbox" && sandbox && { observe: observerOf(sandboxOver(sandbox)) }),
  });
}
