import { type Redactor, redactorFor } from "../answers/redact.ts";
import { createLog, type FollowedWork, followWork, type Log } from "../observe/log.ts";
import { combineObservers, type Observer } from "../observe/observer.ts";
import { systemClock } from "../platform/clock.ts";
import type { Backend } from "../runs/backend.ts";
import type { Settings } from "../settings/settings.ts";
import { VERSION } from "./settings-input.ts";

/** The message that is logged with the problem. */
export const NO_TRACES =
  "an OpenTelemetry SDK is loaded, and no traces are made: the package @opentelemetry/api must be installed beside this one";

/** Loads the observers: metrics if they are enabled, and traces if the person has loaded an OpenTelemetry SDK. */
export async function observers(wantsFigures: boolean) {
  const figures = wantsFigures ? await figuresOf() : undefined;
  const { traces, problem } = hasTracingSdk() ? await tracesOf() : {};
  return {
    /** Undefined if there are no observers, so that nothing is slowed down. */
    observer: combineObservers([traces, figures?.observer].filter((one) => one !== undefined)),
    /** The store, measured if metrics are enabled. */
    over: figures?.over ?? ((backend: Backend) => backend),
    /** The metrics; undefined if they are not enabled. */
    text: figures?.text,
    /** Why there are no traces although an SDK is loaded. */
    problem,
  } as const;
}

async function figuresOf() {
  const { instrument } = await import("../observe/instrument.ts");
  return instrument(VERSION, () => performance.now());
}

/** Loads the package for traces, which the person may have installed beside ours. Without it there are no traces. */
async function tracesOf(): Promise<{ readonly traces?: Observer; readonly problem?: unknown }> {
  try {
    const [{ traces }, api] = await Promise.all([import("../observe/traces.ts"), import("@opentelemetry/api")]);
    return { traces: traces(api, VERSION) };
  } catch (problem) {
    return { problem };
  }
}

/** The log on standard error, and the redactor for the log and for answers. */
export interface LogSetup {
  readonly redactor: Redactor;
  readonly log: Log;
}

/** The parts of a log that settings do not determine. */
export interface LogParts {
  /** Lets each line contain the request that it belongs to. At the level `debug` this is always so. */
  readonly work?: FollowedWork;
  /** Secrets in addition to those of the settings. */
  readonly secrets?: readonly string[];
}

/** Returns the log for these settings. */
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

/** The global symbol under which every copy of the OpenTelemetry package (major version 1) finds the loaded SDK. */
const SDK_PLACE = Symbol.for("opentelemetry.js.api.1");

/** Returns whether the person has loaded an SDK that creates traces, for instance with `node --import`. */
function hasTracingSdk(): boolean {
  const place: unknown = Reflect.get(globalThis, SDK_PLACE);
  return typeof place === "object" && place !== null && "trace" in place;
}
