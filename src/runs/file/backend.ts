import { join } from "node:path";
import type { Clock } from "../../platform/clock.ts";
import { appendLine, makeFolder } from "../../platform/durable-files.ts";
import type { Backend } from "../backend/backend.ts";
import { fileContentsStore } from "./contents.ts";
import { withEarlier } from "./earlier-runs.ts";
import { endedSessionsIn } from "./ended-sessions.ts";
import { machineLock } from "./project-lock.ts";
import type { Retention } from "./retention.ts";
import { fileRunStore } from "./run-store.ts";
import { sealKeyIn } from "./seal-key.ts";
import { fileSuites } from "./suite-texts.ts";
import { targetingMemory } from "./targeting-names.ts";

/** The folder that everything is kept in, and for how long. */
interface FileBackendOptions {
  readonly stateDir: string;
  readonly clock: Clock;
  readonly keep: Retention;
}

/**
 * Keeps everything in files below a folder, which the processes of one machine share. Nothing is made before it is
 * needed.
 */
export function fileBackend({ stateDir, clock, keep }: FileBackendOptions): Backend {
  const projectFolder = (id: string): string => join(stateDir, "projects", id);
  // Versions before kept runs of events apart.
  const earlier = join(stateDir, "event-runs");
  const runs = fileRunStore(join(stateDir, "runs"), clock, keep);
  return {
    runs: withEarlier(runs, fileRunStore(earlier, clock, keep), earlier),
    lock: machineLock(projectFolder, clock),
    suites: fileSuites(join(stateDir, "suites")),
    names: (project, { lasting, ...options }) =>
      targetingMemory({
        ...options,
        file: lasting ? join(projectFolder(project), "targetings.json") : undefined,
        now: () => clock.now(),
      }),
    contents: (project, onProblem) =>
      fileContentsStore({ file: join(projectFolder(project), "contents.ndjson"), onProblem }),
    async audit(line) {
      await makeFolder(stateDir);
      await appendLine(join(stateDir, "audit.ndjson"), line);
    },
    sealKey: () => sealKeyIn(stateDir),
    endedSessions: endedSessionsIn(join(stateDir, "ended-sessions"), clock),
    close: async () => {},
  };
}
