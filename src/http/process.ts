import { setTimeout } from "node:timers/promises";
import type { HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import { followWork } from "../observe/log.ts";
import { systemClock } from "../platform/clock.ts";
import type { Runs } from "../runs/registry.ts";
import { observers } from "../runtime/observers.ts";
import { isOn } from "../runtime/settings-input.ts";
import { asSetting, backendOf, isStoreReady, sealKeys, whenReachable } from "../runtime/store.ts";
import { orStopped } from "../runtime/terminal.ts";
import { type Access, secretsIn } from "../settings/access-file.ts";
import type { CommandLine } from "../settings/command-line.ts";
import type { Settings, SettingsInput } from "../settings/settings.ts";
import { isLoopback } from "../settings/value-types.ts";
import { httpError } from "../web/http-errors.ts";
import {
  accessNow,
  type Projects,
  projects,
  rightsNow,
  settingsOfKeys,
  sharedTokens,
  tokenRights,
} from "./access-now.ts";
import { authenticator, requiresAuthentication } from "./auth.ts";

/** For how many milliseconds requests in progress may continue after a signal to stop. */
export const LAST_CALLS_MS = 20_000;

const TOKENS_MS = 2000;

interface Start {
  readonly line: CommandLine;
  readonly input: SettingsInput;
  readonly settings: Settings;
  readonly access: Access;
  /** Whether this process serves HTTP. If so, its access file must contain all tokens. False for a worker. */
  readonly serves: boolean;
}

export type Started = Awaited<ReturnType<typeof startProcess>>;

/**
 * Creates a process's projects, and migrates the store if allowed. `isReady`: whether the store can be used; undefined
 * if `asked` resolves first.
 */
export async function startProcess(start: Start, wantsFigures: boolean, asked: Promise<void>) {
  const { line, input, settings, access } = start;
  const stopping = new AbortController();
  const { observer, over, text: figures, problem } = await observers(wantsFigures);
  const backend = over(await backendOf(settings));
  const seals = sealKeys(settings.sealKey, backend.sealKey);
  const accessOfNow = accessNow(settings.http.accessFile, access, (error) =>
    all.of(undefined).log.error("the access file has changed and cannot be read: all callers are refused", { error }),
  );
  const tokens = tokenRights(backend.callerRights, {
    now: systemClock.now,
    problem: (error) => all.of(undefined).log.error("the rights of a caller could not be stored", { error }),
  });
  const served = sharedTokens(backend.callerRights, accessOfNow);
  const all: Projects = projects(input, settings, {
    stopping: stopping.signal,
    backend,
    secrets: secretsIn(access),
    sealKey: () => seals("confirmation"),
    work: followWork(),
    observer,
    rightsOf: rightsNow({
      settings,
      access: accessOfNow,
      tokens,
      servedTokens: start.serves || access.tokens.length > 0 ? undefined : served.read,
    }),
  });
  const { log } = all.of(undefined);
  const isReady = await orStopped(isStoreReady(settings, { migrates: !isOn(line, "no-migrate"), log }), asked);
  const keepTokens = (): Promise<void> =>
    served.keep().catch((error) => log.error("the tokens of the access file could not be stored", { error }));
  // Workers read these entries to stop the runs of callers who have lost their rights. Every few seconds, a changed
  // file is stored again, so that it reaches the workers even if no request arrives.
  const isShared = start.serves && settings.store !== undefined;
  if (isShared && isReady) await keepTokens();
  const watch = isShared ? setInterval(keepTokens, TOKENS_MS).unref() : undefined;
  const close = async (): Promise<void> => {
    clearInterval(watch);
    await all.close();
    await backend.close();
  };
  return {
    ...start,
    accessOfNow,
    tokens,
    stopping,
    observer,
    figures,
    problem,
    backend,
    seals,
    all,
    log,
    isReady,
    close,
  } as const;
}

/**
 * Continues runs of the configured projects that no process executes, unless the settings forbid it. Throws a
 * SettingsError if the store cannot be reached for half a minute.
 */
export async function claimOrphanedRuns(started: Started): Promise<void> {
  const { settings, all, log, stopping } = started;
  const { left } = all.of(undefined).services.runs;
  if (settings.store?.drives !== true || settings.readOnly || left === undefined) return;
  const { claimOrphans } = await import("../runs/orphaned-runs.ts");
  const claim = () =>
    claimOrphans({
      left,
      projects: projectsById(started),
      clock: systemClock,
      stopping: stopping.signal,
      onRefused: ({ refusal: { message } }, runId) =>
        log.warn("an orphaned run may not be executed by this process", { runId, reason: message }),
      onProblem: (error, runId) => log.warn("an orphaned run could not be resumed", { error, runId }),
    });
  await whenReachable(() => (stopping.signal.aborted ? Promise.resolve() : claim())).catch(asSetting);
}

/** Returns the runs of each configured project by its ID. Omits embedded sandboxes, whose runs end with the process. */
function projectsById({ all, input, settings, access }: Started): ReadonlyMap<string, () => Runs> {
  const found = new Map<string, () => Runs>();
  const isShared = ({ environment }: Settings): boolean =>
    environment.kind === "sandbox"
      ? environment.url !== undefined
      : (environment.management ?? environment.events) !== undefined;
  if (isShared(settings)) found.set(settings.project.id, () => all.of(undefined).services.runs);
  for (const keys of access.projects.values()) {
    const its = settingsOfKeys(input, keys, settings.environment);
    if (isShared(its) && !found.has(its.project.id)) found.set(its.project.id, () => all.of(keys).services.runs);
  }
  return found;
}

/** Headers that proxies add. A request with one counts as from another machine, even if the proxy is on this one. */
const PROXY_HEADERS = ["forwarded", "via", "x-forwarded-for", "x-real-ip"];

/** Serves metrics, without names of callers, to programs on this machine and callers with an access-file token. */
export function servedFigures(text: () => string, { access, accessOfNow }: Pick<Started, "access" | "accessOfNow">) {
  const authenticate = authenticator({ access, accessOfNow, addresses: [], ownKeys: false });
  return {
    contentType: "text/plain; version=0.0.4; charset=utf-8",
    text,
    /** Returns an error response if the client at the address `from` may not read the metrics. */
    async refuse(request: Request, from: string | undefined): Promise<Response | undefined> {
      if (isFromHere(request, from)) return undefined;
      if (!requiresAuthentication({ access, jwt: undefined, ownKeys: false })) {
        return httpError(
          403,
          "Metrics are served only to programs on this machine, and to callers with a token of TARGETING_MCP_ACCESS_FILE.",
        );
      }
      const caller = await authenticate(request);
      return caller instanceof Response ? caller : undefined;
    },
  };
}

/** Returns whether a request comes from this machine. A request through a proxy on this machine does not. */
function isFromHere({ url, headers }: Request, from: string | undefined): boolean {
  const isLocal = from === "::1" || /^(?:::ffff:)?127\./.test(from ?? "");
  return isLocal && isLoopback(url) && !PROXY_HEADERS.some((name) => headers.has(name));
}

export interface Probed {
  readonly stopping: AbortSignal;
  /** Checks the store, and rejects if it does not work. Absent if there is no store that could fail. */
  readonly ready?: (() => Promise<void>) | undefined;
  readonly metrics?: ReturnType<typeof servedFigures> | undefined;
}

/** How long a check of the store may take, in milliseconds. Most platforms wait longer for a health probe. */
const PATIENCE_MS = 800;

export function probes({ stopping, ready, metrics }: Probed): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  const answer = (status: string, code: 200 | 503): Response => Response.json({ status }, { status: code });
  app.get("/healthz", () => (stopping.aborted ? answer("stopping", 503) : answer("ok", 200)));
  app.get("/readyz", async () => {
    if (stopping.aborted) return answer("stopping", 503);
    return ready === undefined || (await isReady(ready)) ? answer("ok", 200) : answer("the store cannot be used", 503);
  });
  if (metrics === undefined) return app;
  app.get("/metrics", async ({ req, env }) => {
    const refused = await metrics.refuse(req.raw, env.incoming.socket.remoteAddress);
    return refused ?? new Response(metrics.text(), { headers: { "content-type": metrics.contentType } });
  });
  return app;
}

async function isReady(ready: () => Promise<void>): Promise<boolean> {
  const asked = ready().then(
    () => true,
    () => false,
  );
  return Promise.race([asked, setTimeout(PATIENCE_MS, false, { ref: false })]);
}
