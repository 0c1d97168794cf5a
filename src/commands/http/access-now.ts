import { statSync } from "node:fs";
import { ownerOf, type SeenToken } from "../../server/http/auth.ts";
import { type Access, callsTools, readAccess } from "../../settings/access.ts";
import { SettingsError } from "../../settings/error.ts";
import type { Settings } from "../../settings/settings.ts";
import { callerName } from "../../tools/caller-name.ts";
import type { CallerRights } from "../../tools/runs/execution-guard.ts";
import type { TokenRights } from "./token-rights.ts";

/**
 * The access file as it is now: `first` until it changes. One that cannot be read any more lets nobody in until it is
 * fixed, which `onProblem` is called with.
 */
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
      last = { ...last, tokens: [] };
    }
    return last;
  };
}

function markOf(file: string): string {
  const { mtimeMs, ino, size } = statSync(file, { throwIfNoEntry: false }) ?? {};
  return `${mtimeMs} ${ino} ${size}`;
}

/** What callers are known by. */
interface Knowing {
  readonly settings: Settings;
  /** The access file as it is now. */
  readonly access: () => Access;
  /** Whether the access file names every token that may call: that of a worker needs none. */
  readonly knowsTokens: boolean;
  /** What the tokens of an issuer said last. */
  readonly tokens: Pick<TokenRights, "of">;
}

/**
 * What the caller of a run may do now, whenever the run was begun: by the access file as it is now, and by the ways in
 * that the settings leave open. Of a caller who comes with tokens of an issuer the last ones count.
 */
export function rightsNow({
  settings: { http },
  access,
  knowsTokens,
  tokens,
}: Knowing): (caller: string) => Promise<CallerRights> {
  return async (owner) => {
    const name = callerName(owner);
    if (name.startsWith("token:")) return knowsTokens ? ofToken(owner, name, access(), http.ownKeys) : WRITES;
    if (name.startsWith("key:") && !http.ownKeys) return gone("this server takes no keys of callers any more");
    const isOfIssuer = name.startsWith("oauth:") || name.startsWith("client:");
    if (isOfIssuer && knowsTokens && http.oauth === undefined) {
      return gone("this server lets nobody in through an authorization server any more");
    }
    return isOfIssuer ? ofIssuer(owner, await tokens.of(name), http.ownKeys) : WRITES;
  };
}

const WRITES: CallerRights = { readOnly: false };

function ofToken(owner: string, name: string, { tokens, projects }: Access, ownKeys: boolean): CallerRights {
  const entry = tokens.find((one) => `token:${one.name}` === name);
  if (entry === undefined || !callsTools(entry)) return gone("the token of the caller of this run is no longer valid");
  const isInProject = ownerOf(name, projects.get(entry.project ?? "")) === owner;
  // With keys of their own, callers work in other projects beside that of their token.
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
