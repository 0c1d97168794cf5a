import { EventEmitter } from "node:events";
import { LIMITS } from "../spec/limits.ts";
import { ulidSource } from "../spec/names-and-contexts.ts";
import { BUILT_IN_KEYS, DEFAULT_PROJECT, type ManagementKey, SCOPES, type Scope } from "./callers.ts";
import { type Faults, faults } from "./faults.ts";
import { type EventLog, eventLog, type RequestJournal, requestJournal } from "./logs.ts";
import type { Sources } from "./rules/outcome.ts";
import { emptyProject, type Project } from "./rules/store.ts";

export interface World {
  readonly sources: Sources;
  readonly projects: Map<string, Project>;
  /** The management keys that are built in or from the settings. A dump omits them. */
  readonly givenKeys: readonly ManagementKey[];
  /** The management keys from seeds, which a dump contains. */
  readonly seededKeys: Map<string, ManagementKey>;
  readonly appKeys: Set<string>;
  readonly lock: ReturnType<typeof writeLock>;
  readonly faults: Faults;
  readonly requests: RequestJournal;
  readonly events: EventLog;
  readyAt: number;
  changed(): void;
  /** Calls `observer` after each change of a part, until the returned function is called. */
  watch(part: WorldPart, observer: () => void): () => void;
}

type WorldPart = "state" | "events" | "faults";

export interface WorldOptions {
  /** Keys that are accepted besides the built-in ones. They are secrets, so a dump of the state omits them. */
  readonly keys?: { readonly managementKeys?: readonly ManagementKey[]; readonly appKeys?: readonly string[] };
  /** How long a write waits for another write of its project before it gets a 409, in milliseconds. Default: 200. */
  readonly lockWaitMs?: number;
  /** Returns milliseconds since 1970. Default: the system time. */
  readonly now?: () => number;
  /** Returns a number from 0 to below 1. Default: Math.random. */
  readonly random?: () => number;
}

export function newWorld(
  { keys = {}, lockWaitMs = 200, now = Date.now, random = Math.random }: WorldOptions,
  changed: () => void,
): World {
  const observers = new EventEmitter<Record<WorldPart, []>>().setMaxListeners(0);
  const sources = { now, newId: ulidSource(now, random) };
  const world: World = {
    sources,
    projects: new Map(),
    givenKeys: [...BUILT_IN_KEYS.management, ...(keys.managementKeys ?? [])],
    seededKeys: new Map(),
    appKeys: new Set([...BUILT_IN_KEYS.app, ...(keys.appKeys ?? [])]),
    lock: writeLock(lockWaitMs, now),
    faults: faults(() => void observers.emit("faults")),
    requests: requestJournal(),
    events: eventLog(() => void observers.emit("events")),
    readyAt: now(),
    changed() {
      changed();
      observers.emit("state");
    },
    watch(part, observer) {
      observers.on(part, observer);
      return () => void observers.off(part, observer);
    },
  };
  resetProjects(world);
  return world;
}

/** Removes all projects and seeded management keys. Creates empty ones for keys built in or from the settings. */
export function resetProjects(world: World): void {
  world.projects.clear();
  world.seededKeys.clear();
  for (const { project } of world.givenKeys) projectNamed(world, project ?? DEFAULT_PROJECT);
}

export function projectNamed(world: World, name: string): Project {
  const known = world.projects.get(name);
  if (known !== undefined) return known;
  const project = emptyProject(world.sources.newId(), name);
  world.projects.set(name, project);
  return project;
}

/** Returns what a key may do (management-api 5). Undefined if the key is unknown or revoked. */
export function grantOf(world: World, key: string) {
  const held = world.seededKeys.get(key) ?? world.givenKeys.find((given) => given.key === key);
  if (held === undefined || held.revoked) return undefined;
  const scopes: ReadonlySet<Scope> = new Set(held.scopes ?? SCOPES);
  return { project: projectNamed(world, held.project ?? DEFAULT_PROJECT), scopes };
}

/** The result of asking for the write lock of a project: a function that releases it, or when to ask again. */
type Acquired = { readonly release: () => void } | { readonly retryAfterMs: number };

/** Lets one write of each project run at a time (management-api 4.2). `waitMs`: how long `acquire` waits. */
function writeLock(waitMs: number, now: () => number) {
  const queues = new Map<string, (() => void)[]>();
  const heldUntil = new Map<string, number>();

  function releaser(project: string): () => void {
    let released = false;
    return () => {
      if (released) return;
      released = true;
      heldUntil.delete(project);
      const next = queues.get(project)?.shift();
      if (next === undefined) queues.delete(project);
      else next();
    };
  }

  /** Calls `start` when the lock is free. If the call must wait, returns its entry, with which it leaves the queue. */
  function enqueue(project: string, start: (release: () => void) => void): (() => void) | undefined {
    const queue = queues.get(project);
    if (queue === undefined) {
      queues.set(project, []);
      start(releaser(project));
      return undefined;
    }
    const waiter = () => start(releaser(project));
    queue.push(waiter);
    return waiter;
  }

  function acquirePatiently(project: string): Promise<() => void> {
    return new Promise((resolve) => enqueue(project, resolve));
  }

  /** Returns for how many ms a call of `hold` still keeps the lock, or without such a call `waitMs`; at most 2,000. */
  function retryAfter(project: string): number {
    const rest = (heldUntil.get(project) ?? now() + waitMs) - now();
    return Math.min(LIMITS.retryAfterMs.value, Math.max(0, Math.ceil(rest)));
  }

  return {
    acquirePatiently,
    acquire(project: string): Promise<Acquired> {
      return new Promise((resolve) => {
        let timer: NodeJS.Timeout | undefined;
        const waiter = enqueue(project, (release) => {
          clearTimeout(timer);
          resolve({ release });
        });
        if (waiter === undefined) return;
        timer = setTimeout(() => {
          const queue = queues.get(project) ?? [];
          queue.splice(queue.indexOf(waiter), 1);
          resolve({ retryAfterMs: retryAfter(project) });
        }, waitMs).unref();
      });
    },
    async hold(project: string, ms: number): Promise<void> {
      const release = await acquirePatiently(project);
      heldUntil.set(project, now() + ms);
      setTimeout(release, ms).unref();
    },
  };
}
