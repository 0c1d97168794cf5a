import { join } from "node:path";
import type { Clock } from "../../platform/clock.ts";
import type { Backend } from "../backend.ts";
import { withEarlier } from "./earlier-runs.ts";
import { machineLock } from "./project-lock.ts";
import type { Retention } from "./retention.ts";
import { fileRunStore } from "./run-store.ts";
import { targetingMemory } from "./targeting-names.ts";

/** Where and how everything is kept in files. */
export interface FileBackendOptions {
  readonly stateDir: string;
  readonly clock: Clock;
  readonly keep: Retention;
  /** The name of the project's folder. */
  readonly project: string;
  /** Whether what is remembered of the project outlives this process. */
  readonly lasting: boolean;
  /** Told when the names could not be read or written. */
  readonly onNamesProblem: (problem: unknown) => void;
}

/** Keeps everything in files below a folder, which the processes of one machine share. Nothing is made before it is needed. */
export function fileBackend({ stateDir, clock, keep, project, lasting, onNamesProblem }: FileBackendOptions): Backend {
  const projectFolder = (id: string): string => join(stateDir, "projects", id);
  // Versions before kept runs of events apart.
  const earlier = join(stateDir, "event-runs");
  const runs = fileRunStore(join(stateDir, "runs"), clock, keep);
  return {
    runs: withEarlier(runs, fileRunStore(earlier, clock, keep), earlier),
    lock: machineLock(projectFolder, clock),
    names: targetingMemory({
      file: lasting ? join(projectFolder(project), "targetings.json") : undefined,
      now: () => clock.now(),
      onProblem: onNamesProblem,
    }),
  };
}
