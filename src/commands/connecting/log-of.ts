import { systemClock } from "../../platform/clock.ts";
import { type Redactor, redactorFor } from "../../render/redact.ts";
import { createLog, type FollowedWork, followWork, type Log } from "../../server/log.ts";
import type { Settings } from "../../settings/settings.ts";

/** The log on standard error, and what keeps secrets out of it and out of answers. */
export interface Told {
  readonly redactor: Redactor;
  readonly log: Log;
}

/** What the settings do not say about a log. */
export interface LogParts {
  /** Where each line says to which request it belongs; at the level `debug` it does in any case. */
  readonly work?: FollowedWork;
  /** Secrets besides those of the settings. */
  readonly secrets?: readonly string[];
}

/** The log of these settings. */
export function logOf(settings: Settings, { work, secrets = [] }: LogParts = {}): Told {
  const redactor = redactorFor([...settings.secrets, ...secrets]);
  const log = createLog({
    level: settings.logLevel,
    write: (line) => process.stderr.write(line),
    redact: redactor.text,
    now: systemClock.now,
    work: work ?? (settings.logLevel === "debug" ? followWork() : undefined),
  });
  return { redactor, log };
}
