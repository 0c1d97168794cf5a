import { systemClock } from "../platform/clock.ts";
import { connect, type ServerProcess, type Shared } from "../runtime/connect.ts";
import type { ProjectKeys } from "../settings/access-file.ts";
import { readSettings, type Settings, type SettingsInput } from "../settings/settings.ts";
import { TooBusyError } from "../web/http-errors.ts";
import { ownerOf } from "./auth.ts";

const MAX_PAIRS = 256;
const FORGOTTEN_AFTER_MS = 15 * 60_000;
const SWEEP_MS = 60_000;

export interface Project extends ServerProcess {
  readonly id: string;
  /** Keeps the project in memory until the returned function is called. */
  readonly use: () => () => void;
  /** Aborted when the keys are removed from memory. Undefined if they stay forever. */
  readonly forgotten: AbortSignal | undefined;
}

export type Projects = ReturnType<typeof projects>;

interface CachedProject {
  readonly project: Project;
  readonly forget: () => void;
  requests: number;
  usedAt: number;
}

/**
 * Creates the projects of a process. `settings` are those of the configured keys. For other keys, they are made from
 * `input`.
 */
export function projects(input: SettingsInput, settings: Settings, shared: Shared) {
  const configured: Project = {
    ...connect(settings, shared),
    id: settings.project.id,
    use: () => () => undefined,
    forgotten: undefined,
  };
  const cache = new Map<string, CachedProject>();
  const { environment } = settings;
  // All callers share an embedded sandbox, so their keys make no separate projects.
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
    if (oldest === undefined)
      throw new TooBusyError("Too many callers with their own keys are active. Try again in a moment.");
    forget(...oldest);
  };
  const ids = new WeakMap<ProjectKeys, string>();
  const settingsOf = (keys: ProjectKeys): Settings => settingsOfKeys(input, keys, environment);
  return {
    /** Returns the ID of a caller's project. Throws a SettingsError if the keys cannot be used here. */
    idOf(keys: ProjectKeys | undefined): string {
      if (keys === undefined || isEmbedded) return configured.id;
      const id = ids.get(keys) ?? settingsOf(keys).project.id;
      ids.set(keys, id);
      return id;
    },
    living: (): readonly Project[] => everyone(),
    /**
     * Returns the project of keys, by default that of the configured keys. Throws a SettingsError for unusable keys, or
     * a TooBusyError.
     */
    of(keys: ProjectKeys | undefined): Project {
      if (keys === undefined || isEmbedded) return configured;
      const id = ownerOf("", keys);
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
    async interrupt(): Promise<void> {
      await Promise.all(everyone().map((project) => project.stopRuns()));
    },
    async close(): Promise<void> {
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

function isBusy({ requests, project: { services } }: CachedProject): boolean {
  return requests > 0 || services.runs.isDriving;
}

const OF_THE_CONFIGURED_KEYS = ["TARGETING_MCP_PROJECT", "TARGETING_MCP_SANDBOX_PORT"];

/** Returns the settings with other keys, in the same environment (live or sandbox). */
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
