import { type Redactor, redactorFor } from "../answers/redact.ts";
import { createLog, type FollowedWork, followWork, type Log } from "../observe/log.ts";
import { combineObservers, type Observer } from "../observe/observer.ts";
import { systemClock } from "../platform/clock.ts";
import type { Backend } from "../runs/backend.ts";
import type { Settings } from "../settings/settings.ts";
import { VERSION } from "./version.ts";

/** What is logged with the problem. */
export const NO_TRACES =
  "an OpenTelemetry SDK is loaded, and no traces are made: the package @opentelemetry/api must be installed beside this one";

/** Loads those who look: figures where they are wanted, and traces where the person has loaded an OpenTelemetry SDK. */
export async function observers(wantsFigures: boolean) {
  const figures = wantsFigures ? await figuresOf() : undefined;
  const { traces, problem } = hasTracingSdk() ? await tracesOf() : {};
  return {
    /** Undefined where nobody looks: then nothing is slower. */
    observer: combineObservers([traces, figures?.observer].filter((one) => one !== undefined)),
    /** The store, measured where figures are wanted. */
    over: figures?.over ?? ((backend: Backend) => backend),
    /** The figures; undefined where they are not wanted. */
    text: figures?.text,
    /** Why no traces are made although an SDK is loaded. */
    problem,
  } as const;
}

async function figuresOf() {
  const { instrument } = await import("../observe/instrument.ts");
  return instrument(VERSION, () => performance.now());
}

/** The package is the person's, beside this one: without it the server works, and makes no traces. */
async function tracesOf(): Promise<{ readonly traces?: Observer; readonly problem?: unknown }> {
  try {
    const [{ traces }, api] = await Promise.all([import("../observe/traces.ts"), import("@opentelemetry/api")]);
    return { traces: traces(api, VERSION) };
  } catch (problem) {
    return { problem };
  }
}

/** The log on standard error, and what keeps secrets out of it and out of answers. */
export interface LogSetup {
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

/** Where every copy of the package of OpenTelemetry, of its major version 1, finds the SDK that was loaded. */
const SDK_PLACE = Symbol.for("opentelemetry.js.api.1");

/** Whether the person has loaded an SDK that makes traces, such as with `node --import`. */
function hasTracingSdk(): boolean {
  const place: unknown = Reflect.get(globalThis, SDK_PLACE);
  return typeof place === "object" && place !== null && "trace" in place;
}
