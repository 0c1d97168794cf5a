import { hostname } from "node:os";
import { systemClock } from "../../platform/clock.ts";
import { takeUpRuns } from "../../runs/processes/taking-up.ts";
import type { Runs } from "../../runs/registry.ts";
import type { Access } from "../../settings/access.ts";
import { withKeys } from "../../settings/project-keys.ts";
import { readSettings, type Settings, type SettingsInput } from "../../settings/settings.ts";
import type { Projects } from "./projects.ts";

/** The projects of a process, and where it has their keys from. */
interface DrivingProjects {
  readonly all: Projects;
  readonly input: SettingsInput;
  readonly settings: Settings;
  readonly access: Pick<Access, "projects">;
}

/**
 * Goes on with runs that other processes left, of every project whose keys this process has, until it is stopped.
 * Without a shared store there are none.
 */
export async function driveLeftRuns(of: DrivingProjects, stopping: AbortSignal): Promise<void> {
  const { settings, all } = of;
  const { services, log } = all.of(undefined);
  const { left } = services.runs;
  if (settings.store?.drives !== true || left === undefined) return;
  await takeUpRuns({
    left,
    projects: projectsById(of),
    clock: systemClock,
    stopping,
    onProblem: (error, runId) => log.warn("a run that was left could not be taken up", { error, runId }),
  });
}

/** The name of this process in the log. */
export function workerName(): string {
  return `${hostname()}:${process.pid}`;
}

/** The runs of an embedded sandbox end with their process, so that no other one can go on with them. */
function projectsById({ all, input, settings, access }: DrivingProjects): ReadonlyMap<string, () => Runs> {
  const found = new Map<string, () => Runs>();
  const isShared = ({ environment }: Settings): boolean =>
    environment.kind === "sandbox"
      ? environment.url !== undefined
      : (environment.management ?? environment.events) !== undefined;
  if (isShared(settings)) found.set(settings.project.id, () => all.of(undefined).services.runs);
  for (const keys of access.projects.values()) {
    const its = readSettings(withKeys(input, keys, settings.environment.kind === "sandbox"));
    if (isShared(its) && !found.has(its.project.id)) found.set(its.project.id, () => all.of(keys).services.runs);
  }
  return found;
}
