import { createHash } from "node:crypto";
import { systemClock } from "../platform/clock.ts";
import { connect, type ServerProcess, type Shared } from "../runtime/connect.ts";
import type { ProjectKeys } from "../settings/access-file.ts";
import { readSettings, type Settings, type SettingsInput } from "../settings/settings.ts";
import { TooBusyError } from "../web/http-errors.ts";

/** The maximum number of key pairs in memory. */
const MAX_PAIRS = 256;
/** A pair that was not used for this time is closed, in milliseconds. */
const FORGOTTEN_AFTER_MS = 15 * 60_000;
const SWEEP_MS = 60_000;

/** A project that callers work with: its services, and the use of its keys. */
export interface Project extends ServerProcess {
  /** The identifier of the project in its runs. */
  readonly id: string;
  /** Marks it as used by a request; the returned function ends that. A project in use is not forgotten. */
  readonly use: () => () => void;
  /** Aborted when its keys are forgotten, so that everything that uses them stops; absent: they never are. */
  readonly forgotten: AbortSignal | undefined;
}

/** The projects that callers work with. Each is connected at its first call. */
export interface Projects {
  /**
   * Returns the project of the configured keys, or a caller's. Throws a SettingsError for unusable keys, and a
   * TooBusyError if all projects that may be kept are in use.
   */
  of(keys: ProjectKeys | undefined): Project;
  /** The identifier of the project of these keys, as in runs. Throws a SettingsError if they cannot be used here. */
  idOf(keys: ProjectKeys | undefined): string;
  /** Returns the projects that are connected now. */
  living(): readonly Project[];
  /** Stops every run between two requests; resolves when all have stopped. */
  interrupt(): Promise<void>;
  /** Closes every connection. */
  close(): Promise<void>;
}

/** A pair of keys in memory. */
interface CachedProject {
  readonly project: Project;
  readonly forget: () => void;
  requests: number;
  usedAt: number;
}

/** Connects projects. `settings` are those of the configured keys, `input` is the source of the settings. */
export function projects(input: SettingsInput, settings: Settings, shared: Shared): Projects {
  const configured: Project = {
    ...connect(settings, shared),
    id: settings.project.id,
    use: () => () => undefined,
    forgotten: undefined,
  };
  /** By the digest of the keys; the most recently used pair comes last. */
  const cache = new Map<string, CachedProject>();
  const { environment } = settings;
  // An embedded sandbox is the same project for all callers.
  const isEmbedded = environment.kind === "sandbox" && environment.url === undefined;
  const everyone = () => [configured, ...[...cache.values()].map(({ project }) => project)];
  const forget = (id: string, one: CachedProject): void => {
    cache.delete(id);
    one.forget();
    one.project.close().catch((error: unknown) => one.project.log.error("a project could not be closed", { error }));
  };
  const sweep = setInterval(() => {
    const since = systemClock.now() - FORGOTTEN_AFTER_MS;
    for (const [id, one] of cache) if (one.usedAt <= since && !isBusy(one)) forget(id, one);
  }, SWEEP_MS).unref();
  const makeRoom = (): void => {
    if (cache.size < MAX_PAIRS) return;
    const oldest = [...cache].find(([, one]) => !isBusy(one));
    if (oldest === undefined) throw new TooBusyError("too many callers with keys of their own are busy; try again");
    forget(...oldest);
  };
  const ids = new WeakMap<ProjectKeys, string>();
  const settingsOf = (keys: ProjectKeys): Settings => settingsOfKeys(input, keys, environment);
  return {
    idOf(keys) {
      if (keys === undefined || isEmbedded) return configured.id;
      const id = ids.get(keys) ?? settingsOf(keys).project.id;
      ids.set(keys, id);
      return id;
    },
    living: everyone,
    of(keys) {
      if (keys === undefined || isEmbedded) return configured;
      const id = digestOf(keys);
      let one = cache.get(id);
      if (one === undefined) {
        const ofKeys = settingsOf(keys);
        makeRoom();
        one = cachedProject(connect(ofKeys, shared), ofKeys.project.id);
      }
      one.usedAt = systemClock.now();
      cache.delete(id);
      cache.set(id, one);
      return one.project;
    },
    async interrupt() {
      await Promise.all(everyone().map((project) => project.stopRuns()));
    },
    async close() {
      clearInterval(sweep);
      await Promise.all(everyone().map((project) => project.close()));
    },
  };
}

function cachedProject(connected: ServerProcess, id: string): CachedProject {
  const forgetting = new AbortController();
  const use = (): (() => void) => {
    let isOver = false;
    cached.requests += 1;
    return () => {
      if (isOver) return;
      isOver = true;
      cached.requests -= 1;
      cached.usedAt = systemClock.now();
    };
  };
  const cached: CachedProject = {
    project: { ...connected, id, use, forgotten: forgetting.signal },
    forget: () => forgetting.abort(),
    requests: 0,
    usedAt: 0,
  };
  return cached;
}

/** Returns whether a request or a run still uses a pair of keys: it must end with the keys that it began with. */
function isBusy({ requests, project: { services } }: CachedProject): boolean {
  return requests > 0 || services.runs.isDriving;
}

/** Returns the name under which a pair of keys is stored: a digest, which does not reveal the keys. */
function digestOf({ targetingApiKey, eventAppKey }: ProjectKeys): string {
  return createHash("sha256")
    .update(JSON.stringify([targetingApiKey, eventAppKey]))
    .digest("base64url");
}

/** Settings that concern the configured keys only. */
const OF_THE_CONFIGURED_KEYS = ["TARGETING_MCP_PROJECT", "TARGETING_MCP_SANDBOX_PORT"];

/** The settings for a caller's keys, which replace the configured ones. A server in sandbox mode stays in it. */
export function settingsOfKeys(input: SettingsInput, keys: ProjectKeys, { kind }: Settings["environment"]): Settings {
  const environment: Record<string, string | undefined> = { ...input.environment };
  const flags = new Map(input.flags);
  for (const variable of OF_THE_CONFIGURED_KEYS) environment[variable] = undefined;
  for (const flag of ["project", "sandbox-port"]) flags.delete(flag);
  environment.TARGETING_API_KEY = keys.targetingApiKey;
  environment.EVENT_APP_KEY = keys.eventAppKey;
  if (kind === "sandbox") flags.set("mode", "sandbox");
  return readSettings({ ...input, environment, flags });
}
