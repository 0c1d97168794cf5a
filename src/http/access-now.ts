import { statSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import * as z from "zod";
import { systemClock } from "../platform/clock.ts";
import { parseJson } from "../platform/json.ts";
import type { CallerTexts } from "../runs/backend.ts";
import { callerName, type RunHeader } from "../runs/store.ts";
import { connect, type ServerProcess, type Shared } from "../runtime/connect.ts";
import {
  type Access,
  type AccessToken,
  ALL_PROJECTS,
  callsTools,
  type ProjectKeys,
  readAccess,
  type TokenEntry,
  tokenEntry,
} from "../settings/access-file.ts";
import { readSettings, type Settings, type SettingsInput } from "../settings/settings.ts";
import { SettingsError } from "../settings/value-types.ts";
import type { CallerRights } from "../tools/execution-guard.ts";
import { TooBusyError } from "../web/http-errors.ts";
import { ownerOf, type SeenToken } from "./auth.ts";

/** Returns a function that rereads the access file after each change. If it cannot be read, callers are refused. */
export function accessNow(
  file: string | undefined,
  first: Access,
  onProblem: (error: SettingsError) => void,
): () => Access {
  if (file === undefined) return () => first;
  let [seen, last] = [markOf(file), first];
  return () => {
    const mark = markOf(file);
    if (mark === seen) return last;
    seen = mark;
    try {
      last = readAccess(file);
    } catch (thrown) {
      if (!(thrown instanceof SettingsError)) throw thrown;
      onProblem(thrown);
      last = { ...last, tokens: [], isUnreadable: true };
    }
    return last;
  };
}

function markOf(file: string): string {
  const { mtimeMs, ino, size } = statSync(file, { throwIfNoEntry: false }) ?? {};
  return `${mtimeMs} ${ino} ${size}`;
}

interface Knowing {
  readonly settings: Settings;
  readonly access: () => Access;
  /**
   * Returns the tokens that were stored by processes which serve HTTP. Workers need them if their own access files have
   * no tokens. Absent in a process that serves HTTP, or whose own access file has tokens.
   */
  readonly servedTokens?: (() => Promise<readonly TokenEntry[] | undefined>) | undefined;
  readonly tokens: Pick<ReturnType<typeof tokenRights>, "of">;
}

/**
 * Returns a function that returns the current rights of the caller of a run. If they were revoked, the run stops. For a
 * caller who logs in through the authorization server, these are the rights in the last tokens that the caller has
 * sent.
 */
export function rightsNow(known: Knowing): (caller: string) => Promise<CallerRights> {
  const { access, servedTokens, tokens } = known;
  const { http } = known.settings;
  return async (owner) => {
    const name = callerName(owner);
    if (access().isUnreadable) return gone("the access file of this server cannot be read, so all callers are refused");
    if (name.startsWith("token:")) {
      const entries = servedTokens === undefined ? access().tokens : await servedTokens();
      return entries === undefined ? WRITES : ofToken(owner, name, { ...access(), tokens: entries }, http.ownKeys);
    }
    if (name.startsWith("key:") && !http.ownKeys) return gone("this server no longer accepts callers' own keys");
    const isOfIssuer = name.startsWith("oauth:") || name.startsWith("client:");
    if (isOfIssuer && servedTokens === undefined && http.oauth === undefined) {
      return gone("this server no longer accepts logins through an authorization server");
    }
    return isOfIssuer ? ofIssuer(owner, await tokens.of(name), http.ownKeys) : WRITES;
  };
}

const WRITES: CallerRights = { readOnly: false };

function ofToken(
  owner: string,
  name: string,
  { tokens, projects }: Pick<Access, "projects"> & { readonly tokens: readonly TokenEntry[] },
  ownKeys: boolean,
): CallerRights {
  const entry = tokens.find((one) => `token:${one.name}` === name);
  if (entry === undefined || !callsTools(entry)) return gone("the token of the caller of this run is no longer valid");
  const isInProject = ownerOf(name, projects.get(entry.project ?? "")) === owner;
  // If callers may send their own keys, a run may be in another project than its caller's token.
  if (!isInProject && !ownKeys) return gone("the token of the caller of this run is for another project now");
  return { readOnly: entry.readOnly, folders: entry.folders };
}

function ofIssuer(owner: string, seen: readonly SeenToken[] | undefined, ownKeys: boolean): CallerRights {
  const its = seen?.filter((token) => ownKeys || token.owner === owner);
  if (its?.length === 0) return gone("the token of the caller of this run is for another project now");
  return { readOnly: its?.every(({ writes }) => !writes) ?? false, folders: [] };
}

function gone(refused: string): CallerRights {
  return { refused };
}

/** The key under which tokens of the access file are stored. No caller has this name. */
const SERVED_TOKENS = "tokens of the access file";

/** Shares the access file's entries, without secrets, with workers that have no tokens in their own access files. */
export function sharedTokens(texts: CallerTexts, access: () => Access) {
  let kept: string | undefined;
  return {
    async keep(): Promise<void> {
      const text = JSON.stringify(access().tokens.map(({ token: _secret, ...entry }) => entry));
      if (text === kept) return;
      await texts.keep(SERVED_TOKENS, text);
      kept = text;
    },
    async read(): Promise<readonly TokenEntry[] | undefined> {
      return z.array(tokenEntry).safeParse(parseJson((await texts.read(SERVED_TOKENS)) ?? "")).data;
    },
  };
}

const MAX_CLIENTS = 8;
/** A token is not stored again within FRESH_MS milliseconds. At most MAX_CALLERS callers are remembered. */
const FRESH_MS = 2000;
const MAX_CALLERS = 1000;

const seenTokens = z.array(
  z.object({ name: z.string(), client: z.string(), owner: z.string(), writes: z.boolean(), until: z.number() }),
);

/**
 * Stores the rights in callers' tokens from the authorization server. A run may continue while its caller sends no
 * requests. Then the stored rights decide whether it may.
 */
export function tokenRights(
  texts: CallerTexts,
  { now, problem }: { readonly now: () => number; readonly problem: (error: unknown) => void },
) {
  const noted = new Map<string, { readonly seen: SeenToken; readonly at: number }>();
  const unstored = new Map<string, SeenToken>();
  const stored = async (name: string): Promise<readonly SeenToken[]> =>
    seenTokens.safeParse(parseJson((await texts.read(name)) ?? "[]")).data ?? [];
  return {
    async note(seen: SeenToken): Promise<void> {
      const { name } = seen;
      const last = noted.get(name);
      if (last !== undefined && isDeepStrictEqual(last.seen, seen) && Math.abs(now() - last.at) < FRESH_MS) return;
      noted.delete(name);
      for (const [oldest] of noted) if (noted.size >= MAX_CALLERS) noted.delete(oldest);
      noted.set(name, { seen, at: now() });
      try {
        const before = await stored(name);
        if (!before.some((one) => isDeepStrictEqual(one, seen)))
          await texts.keep(name, JSON.stringify(withLast(before, seen)));
        unstored.delete(name);
      } catch (thrown) {
        unstored.set(name, seen);
        problem(thrown);
      }
    },
    /** Returns a caller's valid tokens, one per client. If none is valid, the newest. Undefined if none is known. */
    async of(name: string): Promise<readonly SeenToken[] | undefined> {
      const before = await stored(name);
      const late = unstored.get(name);
      const all = late === undefined ? before : withLast(before, late);
      const last = all.at(-1);
      if (last === undefined) return undefined;
      const valid = all.filter(({ until }) => until > now());
      return valid.length > 0 ? valid : [last];
    },
  };
}

/** Adds a token. Removes the earlier token of its client, and the oldest tokens above MAX_CLIENTS. */
function withLast(tokens: readonly SeenToken[], seen: SeenToken): readonly SeenToken[] {
  return [...tokens.filter(({ client }) => client !== seen.client), seen].slice(-MAX_CLIENTS);
}

export interface ApproversOf {
  readonly settings: Settings;
  readonly access: () => Access;
  readonly all: Pick<Projects, "idOf">;
}

/** The fields of a run from which its project is found. `caller` is the owner in the run's header. */
export type RunOf = Pick<RunHeader, "project" | "caller">;

/**
 * Returns two functions to compare projects: `ofKeys` returns a text for the project of keys, and `ofRun` one for the
 * project of a run. The texts are equal if both have the same project. Normally they are project IDs. In a sandbox, all
 * keys have the same project ID, so the texts are made from the keys. Keys that this server cannot use have no project.
 */
export function placesOf({ settings: { environment }, all }: Pick<ApproversOf, "settings" | "all">) {
  const isSandbox = environment.kind === "sandbox";
  return {
    ofKeys: (keys: ProjectKeys | undefined): string | undefined =>
      isSandbox ? ownerOf("", keys) : undefinedIfUnusable(() => all.idOf(keys)),
    ofRun({ caller, project }: RunOf): string {
      if (!isSandbox) return project;
      return caller.startsWith("key:") ? caller : caller.slice(0, -callerName(caller).length);
    },
  };
}

/** Returns what `read` returns. Undefined for keys that this server cannot use, because it has no address of their API. */
export function undefinedIfUnusable<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (thrown) {
    if (!(thrown instanceof SettingsError)) throw thrown;
    return undefined;
  }
}

export function hasApprover(of: ApproversOf, { name, ...run }: RunOf & { readonly name: string }): boolean {
  const { tokens, projects, requireOtherApprover } = of.access();
  const { ofKeys, ofRun } = placesOf(of);
  const { clientId, projectClaim } = of.settings.http.oauth ?? {};
  const ofIssuer = clientId === undefined ? [] : projectClaim === undefined ? [undefined] : [...projects.values()];
  if (ofIssuer.some((keys) => ofKeys(keys) === ofRun(run))) return true;
  return tokens.some((entry) => {
    if (!entry.approves || (requireOtherApprover && name === nameOf(entry))) return false;
    return entry.project === ALL_PROJECTS || ofKeys(keysOfProject(entry.project, projects)) === ofRun(run);
  });
}

export function keysOfProject(name: string | undefined, projects: Access["projects"]): ProjectKeys | undefined {
  return name === undefined ? undefined : projects.get(name);
}

export function nameOf({ name }: Pick<AccessToken, "name">): string {
  return `token:${name}`;
}

const MAX_PAIRS = 256;
const FORGOTTEN_AFTER_MS = 15 * 60_000;
const SWEEP_MS = 60_000;

export interface Project extends ServerProcess {
  readonly id: string;
  /** Marks the project as in use, so that it stays in memory until the returned function is called. */
  readonly use: () => () => void;
  /** Aborted when the project is removed from memory. Undefined for the project of the configured keys: it stays. */
  readonly forgotten: AbortSignal | undefined;
}

export type Projects = ReturnType<typeof projects>;

interface CachedProject {
  readonly project: Project;
  readonly forget: () => void;
  requests: number;
  usedAt: number;
}

/** Creates a process's projects: one for the configured keys, and one for each other pair of keys when it is used. */
export function projects(input: SettingsInput, settings: Settings, shared: Shared) {
  const configured: Project = {
    ...connect(settings, shared),
    id: settings.project.id,
    use: () => () => undefined,
    forgotten: undefined,
  };
  const cache = new Map<string, CachedProject>();
  const { environment } = settings;
  // An embedded sandbox has the same data for all callers, so other keys do not get their own project.
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
    /** Returns the ID of the project of a caller's keys. Throws a SettingsError if this server cannot use them. */
    idOf(keys: ProjectKeys | undefined): string {
      if (keys === undefined || isEmbedded) return configured.id;
      const id = ids.get(keys) ?? settingsOf(keys).project.id;
      ids.set(keys, id);
      return id;
    },
    living: (): readonly Project[] => everyone(),
    /** Returns the project of keys (default: the configured keys). Throws a SettingsError or a TooBusyError. */
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
