import { createHash } from "node:crypto";
import { systemClock } from "../platform/clock.ts";
import { connect, type ServerProcess, type Shared } from "../runtime/connect.ts";
import type { ProjectKeys } from "../settings/access-file.ts";
import { readSettings, type Settings, type SettingsInput } from "../settings/settings.ts";
import { TooBusyError } from "../web/http-errors.ts";

/** The most pairs of keys that are kept ready at once. */
const MOST_PAIRS = 256;
/** A pair that was not used for this time is closed, in milliseconds. */
const FORGOTTEN_AFTER_MS = 15 * 60_000;
const SWEEP_MS = 60_000;

/** What a caller works with. */
export interface Project extends ServerProcess {
  /** What its runs name it by. */
  readonly id: string;
  /** A request begins to use it; the given function says that it is over. What is in use is not forgotten. */
  readonly use: () => () => void;
  /** Aborted when its keys are forgotten, so that what still holds it lets it go; absent: they never are. */
  readonly forgotten: AbortSignal | undefined;
}

/** The projects that callers work with, each connected at its first call. */
export interface Projects {
  /**
   * Of the configured keys, or of a caller's. Throws a SettingsError where such keys are of no use here, and TooBusyError
   * where all that may be kept is in use.
   */
  of(keys: ProjectKeys | undefined): Project;
  /** What the runs of keys name their project by. Throws a SettingsError where such keys are of no use here. */
  idOf(keys: ProjectKeys | undefined): string;
  /** Those that are connected now. */
  living(): readonly Project[];
  /** Stops every run between two requests; resolves when they rest. */
  interrupt(): Promise<void>;
  /** Closes every connection. */
  close(): Promise<void>;
}

/** A pair of keys that is kept ready. */
interface Kept {
  readonly project: Project;
  readonly forget: () => void;
  requests: number;
  usedAt: number;
}

/** Connects projects: `settings` are those of the configured keys, `input` is what they were read from. */
export function projects(input: SettingsInput, settings: Settings, shared: Shared): Projects {
  const configured: Project = {
    ...connect(settings, shared),
    id: settings.project.id,
    use: () => () => undefined,
    forgotten: undefined,
  };
  /** By what tells pairs apart, the one used last at the end. */
  const kept = new Map<string, Kept>();
  const { environment } = settings;
  // An embedded sandbox is the same project for all callers.
  const isEmbedded = environment.kind === "sandbox" && environment.url === undefined;
  const everyone = () => [configured, ...[...kept.values()].map(({ project }) => project)];
  const forget = (id: string, one: Kept): void => {
    kept.delete(id);
    one.forget();
    one.project.close().catch((error: unknown) => one.project.log.error("a project could not be closed", { error }));
  };
  const sweep = setInterval(() => {
    const since = systemClock.now() - FORGOTTEN_AFTER_MS;
    for (const [id, one] of kept) if (one.usedAt <= since && !isBusy(one)) forget(id, one);
  }, SWEEP_MS).unref();
  const makeRoom = (): void => {
    if (kept.size < MOST_PAIRS) return;
    const oldest = [...kept].find(([, one]) => !isBusy(one));
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
      let one = kept.get(id);
      if (one === undefined) {
        const ofKeys = settingsOf(keys);
        makeRoom();
        one = keptProject(connect(ofKeys, shared), ofKeys.project.id);
      }
      one.usedAt = systemClock.now();
      kept.delete(id);
      kept.set(id, one);
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

function keptProject(connected: ServerProcess, id: string): Kept {
  const forgetting = new AbortController();
  const use = (): (() => void) => {
    let isOver = false;
    kept.requests += 1;
    return () => {
      if (isOver) return;
      isOver = true;
      kept.requests -= 1;
      kept.usedAt = systemClock.now();
    };
  };
  const kept: Kept = {
    project: { ...connected, id, use, forgotten: forgetting.signal },
    forget: () => forgetting.abort(),
    requests: 0,
    usedAt: 0,
  };
  return kept;
}

/** Whether a request or a run still uses a pair of keys: what began with a pair ends with it. */
function isBusy({ requests, project: { services } }: Kept): boolean {
  return requests > 0 || services.runs.isDriving;
}

/** The name under which a pair of keys is kept: a digest, which does not reveal the keys. */
function digestOf({ targetingApiKey, eventAppKey }: ProjectKeys): string {
  return createHash("sha256")
    .update(JSON.stringify([targetingApiKey, eventAppKey]))
    .digest("base64url");
}

/** Settings that are about the configured keys only. */
const OF_THE_CONFIGURED_KEYS = ["TARGETING_MCP_PROJECT", "TARGETING_MCP_SANDBOX_PORT"];

/** The settings of a caller's keys, which replace the configured ones; a server in sandbox mode stays in it. */
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
