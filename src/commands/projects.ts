import { createHash } from "node:crypto";
import type { ProjectKeys } from "../settings/access.ts";
import { withKeys } from "../settings/project-keys.ts";
import { readSettings, type Settings, type SettingsInput } from "../settings/settings.ts";
import { type Connected, connect, type Shared } from "./connect.ts";

/** More than this many keys are not kept ready at once. */
const MOST_READY = 100;

/** The projects that callers work with, each connected at its first call. */
export interface Projects {
  /** Of the configured keys, or of a caller's. Throws a SettingsError where such keys are of no use here. */
  of(keys: ProjectKeys | undefined): Connected;
  /** Stops every run between two requests; resolves when they rest. */
  interrupt(): Promise<void>;
  /** Closes every connection. */
  close(): Promise<void>;
}

/** Connects projects: `settings` are those of the configured keys, `input` is what they were read from. */
export function projects(input: SettingsInput, settings: Settings, shared: Shared): Projects {
  const configured = connect(settings, shared);
  const ready = new Map<string, Connected>();
  const { environment } = settings;
  // An embedded sandbox is one world, whoever looks at it.
  const isEmbedded = environment.kind === "sandbox" && environment.url === undefined;
  const everyone = () => [configured, ...ready.values()];
  return {
    of(keys) {
      if (keys === undefined || isEmbedded) return configured;
      const id = digestOf(keys);
      const found =
        ready.get(id) ?? connect(readSettings(withKeys(input, keys, environment.kind === "sandbox")), shared);
      // The one used last stands last.
      ready.delete(id);
      ready.set(id, found);
      forgetOldest(ready);
      return found;
    },
    async interrupt() {
      await Promise.all(everyone().map((project) => project.stopRuns()));
    },
    async close() {
      await Promise.all(everyone().map((project) => project.close()));
    },
  };
}

/** Forgets the project that was not used for longest and has no run under way. Its idle connections close by themselves. */
function forgetOldest(ready: Map<string, Connected>): void {
  if (ready.size <= MOST_READY) return;
  for (const [id, { services }] of ready) {
    if (services.runs?.isDriving || services.eventRuns?.isDriving) continue;
    ready.delete(id);
    return;
  }
}

/** Keys are kept as what they open; the name under which that is found tells nothing about them. */
function digestOf({ targetingApiKey = "", eventAppKey = "" }: ProjectKeys): string {
  return createHash("sha256").update(`${targetingApiKey}\n${eventAppKey}`).digest("base64url");
}
