import type { ProjectLock } from "./project-lock.ts";
import type { RunStore } from "./store.ts";
import type { TargetingMemory } from "./targeting-names.ts";

/**
 * Everything that has to outlive a process or be shared between processes. Files and other stores implement all of it;
 * `test/runs/backend-contract.ts` holds what each of them must do.
 */
export interface Backend {
  /** Runs of every kind. */
  readonly runs: RunStore;
  /** One write of a project at a time. */
  readonly lock: ProjectLock;
  /** The targetings of the project that were seen before. */
  readonly names: TargetingMemory;
}
