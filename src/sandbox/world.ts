import { ulidSource } from "../spec/ulid.ts";
import { type EventLog, eventLog } from "./events/event-log.ts";
import { type Faults, faults } from "./http/faults.ts";
import { BUILT_IN_KEYS, DEFAULT_PROJECT, type ManagementKey, SCOPES, type Scope } from "./http/keys.ts";
import { type RequestJournal, requestJournal } from "./http/request-journal.ts";
import type { Sources } from "./management/rules/new-options.ts";
import { emptyProject, type Project } from "./management/stored/project.ts";
import { type WriteLock, writeLock } from "./management/write-lock.ts";

/** What a management key opens. */
export interface KeyGrant {
  readonly project: Project;
  readonly scopes: ReadonlySet<Scope>;
}

/** Everything that one running sandbox holds. */
export interface World {
  readonly sources: Sources;
  /** Projects by name. */
  readonly projects: Map<string, Project>;
  /** Keys that came with the sandbox, and those seeded later, which alone are part of a dump. */
  readonly givenKeys: readonly ManagementKey[];
  readonly seededKeys: Map<string, ManagementKey>;
  readonly appKeys: Set<string>;
  readonly lock: WriteLock;
  readonly faults: Faults;
  readonly requests: RequestJournal;
  readonly events: EventLog;
  /** Called after every change of what a dump holds. */
  changed(): void;
  /** Calls `observer` after every change of that part, until the function that it gives is called. */
  watch(part: WorldPart, observer: () => void): () => void;
}

/** The parts of a world that can be watched. */
type WorldPart = "state" | "events" | "faults";

/** What a new world needs. `lockWaitMs` is how long a write waits for another one of its project. */
export interface WorldOptions {
  readonly managementKeys: readonly ManagementKey[];
  readonly appKeys: readonly string[];
  readonly lockWaitMs: number;
  readonly now: () => number;
  readonly random: () => number;
  readonly changed: () => void;
}

/** Makes a world with one empty project. */
export function newWorld(options: WorldOptions): World {
  const { tell, watch } = observers();
  const sources = { now: options.now, newId: ulidSource(options.now, options.random) };
  const world: World = {
    sources,
    projects: new Map(),
    givenKeys: [...BUILT_IN_KEYS.management, ...options.managementKeys],
    seededKeys: new Map(),
    appKeys: new Set([...BUILT_IN_KEYS.app, ...options.appKeys]),
    lock: writeLock(options.lockWaitMs, options.now),
    faults: faults(() => tell("faults")),
    requests: requestJournal(),
    events: eventLog(() => tell("events")),
    changed() {
      options.changed();
      tell("state");
    },
    watch,
  };
  resetProjects(world);
  return world;
}

function observers() {
  const all: Readonly<Record<WorldPart, Set<() => void>>> = { state: new Set(), events: new Set(), faults: new Set() };
  return {
    tell(part: WorldPart): void {
      for (const observer of all[part]) observer();
    },
    watch(part: WorldPart, observer: () => void): () => void {
      // Of its own, so that one function may watch several times.
      const own = (): void => observer();
      all[part].add(own);
      return () => {
        all[part].delete(own);
      };
    },
  };
}

/** Replaces all projects by empty ones: one for each project that a given key names. */
export function resetProjects(world: World): void {
  world.projects.clear();
  world.seededKeys.clear();
  for (const { project } of world.givenKeys) projectNamed(world, project ?? DEFAULT_PROJECT);
}

/** The project of that name, made empty where there is none. */
export function projectNamed(world: World, name: string): Project {
  const known = world.projects.get(name);
  if (known !== undefined) return known;
  const project = emptyProject(world.sources.newId(), name);
  world.projects.set(name, project);
  return project;
}

/** What a key opens, or undefined for an unknown key (management-api 5). */
export function grantOf(world: World, key: string): KeyGrant | undefined {
  const held = world.seededKeys.get(key) ?? world.givenKeys.find((given) => given.key === key);
  if (held === undefined || held.revoked) return undefined;
  return { project: projectNamed(world, held.project ?? DEFAULT_PROJECT), scopes: new Set(held.scopes ?? SCOPES) };
}
