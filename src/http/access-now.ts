import { statSync } from "node:fs";
import * as z from "zod";
import { parseJson } from "../platform/json.ts";
import type { CallerTexts } from "../runs/backend.ts";
import { callerName, type RunHeader } from "../runs/store.ts";
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
import type { Settings } from "../settings/settings.ts";
import { SettingsError } from "../settings/value-types.ts";
import type { CallerRights } from "../tools/execution-guard.ts";
import { ownerOf, type SeenToken } from "./auth.ts";
import type { Projects } from "./projects.ts";

/** Returns the current access file. While it cannot be read, nobody is let in, and `onProblem` is called. */
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
  /** Returns the current access file. */
  readonly access: () => Access;
  /** Returns the tokens of the processes that serve, for a worker whose access file has none. */
  readonly servedTokens?: (() => Promise<readonly TokenEntry[] | undefined>) | undefined;
  /** The rights in the last tokens of an issuer. */
  readonly tokens: Pick<TokenRights, "of">;
}

/**
 * Returns the current rights of a run's caller, by the current access file and the allowed ways to authenticate. For a
 * caller with tokens of an issuer, the last tokens count.
 */
export function rightsNow({
  settings: { http },
  access,
  servedTokens,
  tokens,
}: Knowing): (caller: string) => Promise<CallerRights> {
  return async (owner) => {
    const name = callerName(owner);
    if (access().isUnreadable) return gone("the access file of this server cannot be read, so every caller is refused");
    if (name.startsWith("token:")) {
      const entries = servedTokens === undefined ? access().tokens : await servedTokens();
      return entries === undefined ? WRITES : ofToken(owner, name, { ...access(), tokens: entries }, http.ownKeys);
    }
    if (name.startsWith("key:") && !http.ownKeys) return gone("this server no longer accepts keys of callers");
    const isOfIssuer = name.startsWith("oauth:") || name.startsWith("client:");
    if (isOfIssuer && servedTokens === undefined && http.oauth === undefined) {
      return gone("this server no longer accepts logins through an authorization server");
    }
    return isOfIssuer ? ofIssuer(owner, await tokens.of(name), http.ownKeys) : WRITES;
  };
}

interface Tokens extends Pick<Access, "projects"> {
  readonly tokens: readonly TokenEntry[];
}

const WRITES: CallerRights = { readOnly: false };

function ofToken(owner: string, name: string, { tokens, projects }: Tokens, ownKeys: boolean): CallerRights {
  const entry = tokens.find((one) => `token:${one.name}` === name);
  if (entry === undefined || !callsTools(entry)) return gone("the token of the caller of this run is no longer valid");
  const isInProject = ownerOf(name, projects.get(entry.project ?? "")) === owner;
  // Callers with their own keys also work in projects other than the one of their token.
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

/** The name under which the tokens of the access file are stored; no caller has it. */
const SERVED_TOKENS = "tokens of the access file";

/** Shares the tokens of the access file, without secrets, with the workers, whose access files need no tokens. */
export function sharedTokens(texts: CallerTexts, access: () => Access) {
  let kept: string | undefined;
  return {
    /** Stores the current tokens if they have changed. */
    async keep(): Promise<void> {
      const text = JSON.stringify(access().tokens.map(({ token: _secret, ...entry }) => entry));
      if (text === kept) return;
      await texts.keep(SERVED_TOKENS, text);
      kept = text;
    },
    /** Returns the stored tokens; undefined if no process has served yet. */
    async read(): Promise<readonly TokenEntry[] | undefined> {
      return z.array(tokenEntry).safeParse(parseJson((await texts.read(SERVED_TOKENS)) ?? "")).data;
    },
  };
}

/** The maximum number of remembered clients per caller: the most recent ones. */
const MAX_CLIENTS = 8;
/** How long a recorded token is not looked up again, in milliseconds, and the maximum number of callers with one. */
const FRESH_MS = 2000;
const MAX_CALLERS = 1000;

const seenTokens = z.array(
  z.object({ name: z.string(), client: z.string(), owner: z.string(), writes: z.boolean(), until: z.number() }),
);

/** The rights of callers that only the issuer's tokens contain. */
export interface TokenRights {
  /** Records the rights in a valid token, for the runs of its caller. */
  note(seen: SeenToken): Promise<void>;
  /** The last unexpired token of each client of a caller, otherwise the very last one; undefined if there was none. */
  of(name: string): Promise<readonly SeenToken[] | undefined>;
}

/** Remembers the last token of each client in `texts`. `problem` receives each failure to store one. */
export function tokenRights(
  texts: CallerTexts,
  { now, problem }: { readonly now: () => number; readonly problem: (error: unknown) => void },
): TokenRights {
  /** The token that was last recorded here, and when, by caller. */
  const noted = new Map<string, { readonly seen: SeenToken; readonly at: number }>();
  const unstored = new Map<string, SeenToken>();
  const stored = async (name: string): Promise<readonly SeenToken[]> =>
    seenTokens.safeParse(parseJson((await texts.read(name)) ?? "[]")).data ?? [];
  return {
    async note(seen) {
      const { name } = seen;
      const last = noted.get(name);
      if (last !== undefined && isSameToken(last.seen, seen) && Math.abs(now() - last.at) < FRESH_MS) return;
      noted.delete(name);
      for (const [oldest] of noted) if (noted.size >= MAX_CALLERS) noted.delete(oldest);
      noted.set(name, { seen, at: now() });
      try {
        const before = await stored(name);
        if (!before.some((one) => isSameToken(one, seen)))
          await texts.keep(name, JSON.stringify(withLast(before, seen)));
        unstored.delete(name);
      } catch (thrown) {
        unstored.set(name, seen);
        problem(thrown);
      }
    },
    async of(name) {
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

/** Returns the last token of each client; the most recent one comes last. */
function withLast(tokens: readonly SeenToken[], seen: SeenToken): readonly SeenToken[] {
  return [...tokens.filter(({ client }) => client !== seen.client), seen].slice(-MAX_CLIENTS);
}

function isSameToken(one: SeenToken, other: SeenToken): boolean {
  const { client, owner, writes, until } = other;
  return one.client === client && one.owner === owner && one.writes === writes && one.until === until;
}

/** The parts that are needed to find approvers. */
export interface ApproversOf {
  readonly settings: Settings;
  /** Returns the current access file. */
  readonly access: () => Access;
  readonly all: Pick<Projects, "idOf">;
}

/** The facts that determine the project of a run. `caller` is the owner of the run, as in its header. */
export type RunOf = Pick<RunHeader, "project" | "caller">;

/** Returns which runs belong to which keys. A sandbox is one project for all keys; there the keys themselves decide. */
export function placesOf({ settings: { environment }, all }: Pick<ApproversOf, "settings" | "all">) {
  const isSandbox = environment.kind === "sandbox";
  return {
    ofKeys: (keys: ProjectKeys | undefined): string => (isSandbox ? ownerOf("", keys) : all.idOf(keys)),
    ofRun({ caller, project }: RunOf): string {
      if (!isSandbox) return project;
      return caller.startsWith("key:") ? caller : caller.slice(0, -callerName(caller).length);
    },
  };
}

/** Returns whether a person can approve what a caller requests. */
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

/** Returns the keys of a project in the access file; undefined means the configured keys, which have no name there. */
export function keysOfProject(name: string | undefined, projects: Access["projects"]): ProjectKeys | undefined {
  return name === undefined ? undefined : projects.get(name);
}

/** Returns the name under which the holder of a token calls tools. */
export function nameOf({ name }: Pick<AccessToken, "name">): string {
  return `token:${name}`;
}
