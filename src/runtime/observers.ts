import { type Redactor, redactorFor } from "../answers/fence.ts";
import { createLog, type FollowedWork, followWork, type Log } from "../observe/log.ts";
import { combineObservers, type Observer } from "../observe/observer.ts";
import { systemClock } from "../platform/clock.ts";
import type { Backend } from "../runs/backend.ts";
import type { Settings } from "../settings/settings.ts";
import { VERSION } from "./settings-input.ts";

export const NO_TRACES =
  "an OpenTelemetry SDK is loaded, but no traces are created: install the package @opentelemetry/api next to targeting-mcp";

/** Loads the observers: metrics if `wantsFigures`, and traces if the person has loaded an OpenTelemetry SDK. */
export async function observers(wantsFigures: boolean) {
  const instrument = wantsFigures ? (await import("../observe/instrument.ts")).instrument : undefined;
  const figures = instrument?.(VERSION, () => performance.now());
  const { traces, problem } = hasTracingSdk() ? await tracesOf() : {};
  return {
    /** Observes calls, runs and requests. Undefined if nothing is to be observed, which saves time. */
    observer: combineObservers(traces, figures?.observer),
    over: figures?.over ?? ((backend: Backend) => backend),
    text: figures?.text,
    problem,
  } as const;
}

/** Loads the code for traces, which needs the OpenTelemetry package. `problem`: the error if that fails. */
async function tracesOf(): Promise<{ readonly traces?: Observer; readonly problem?: unknown }> {
  try {
    const [{ traces }, api] = await Promise.all([import("../observe/instrument.ts"), import("@opentelemetry/api")]);
    return { traces: traces(api, VERSION) };
  } catch (problem) {
    return { problem };
  }
}

export interface LogSetup {
  readonly redactor: Redactor;
  readonly log: Log;
}

export interface LogParts {
  /** Adds the fields of a request to each of its log lines. Default: only at level `debug`. */
  readonly work?: FollowedWork;
  readonly secrets?: readonly string[];
}

/** Creates the log on standard error, and the redactor that removes secrets from the log and from answers. */
export function logOf(settings: Settings, { work, secrets = [] }: LogParts = {}): LogSetup {
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

/** All copies of the OpenTelemetry package (major version 1) find the loaded SDK under this global symbol. */
const SDK_PLACE = Symbol.for("opentelemetry.js.api.1");

/** Returns whether the person has loaded an SDK that creates traces, for example with `node --import`. */
function hasTracingSdk(): boolean {
  const place: unknown = Reflect.get(globalThis, SDK_PLACE);
  return typeof place === "object" && place !== null && "trace" in place;
}
