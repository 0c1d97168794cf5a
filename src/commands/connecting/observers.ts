import type { Backend } from "../../runs/backend/backend.ts";
import { type Observer, together } from "../../server/observing/observer.ts";
import { hasTracingSdk } from "../../server/observing/tracing-sdk.ts";
import { VERSION } from "../version.ts";

/** Who looks at what a process does. */
interface Observers {
  /** Undefined where nobody looks: then nothing is slower. */
  readonly observer: Observer | undefined;
  /** The store, measured where figures are wanted. */
  readonly over: (backend: Backend) => Backend;
  /** The figures; undefined where they are not wanted. */
  readonly text?: (() => string) | undefined;
  /** Why no traces are made although an SDK is loaded. */
  readonly problem?: unknown;
}

/** What is logged with the problem. */
export const NO_TRACES =
  "an OpenTelemetry SDK is loaded, and no traces are made: the package @opentelemetry/api must be installed beside this one";

/** Loads those who look: figures where they are wanted, and traces where the person has loaded an OpenTelemetry SDK. */
export async function observers(wantsFigures: boolean): Promise<Observers> {
  const figures = wantsFigures ? await figuresOf() : undefined;
  const { traces, problem } = hasTracingSdk() ? await tracesOf() : {};
  return {
    observer: together([traces, figures?.observer].filter((one) => one !== undefined)),
    over: figures?.over ?? ((backend) => backend),
    text: figures?.text,
    problem,
  };
}

async function figuresOf() {
  const { measured } = await import("../../server/observing/measured.ts");
  return measured(VERSION, () => performance.now());
}

/** The package is the person's, beside this one: without it the server works, and makes no traces. */
async function tracesOf(): Promise<{ readonly traces?: Observer; readonly problem?: unknown }> {
  try {
    const [{ traces }, api] = await Promise.all([
      import("../../server/observing/traces.ts"),
      import("@opentelemetry/api"),
    ]);
    return { traces: traces(api, VERSION) };
  } catch (problem) {
    return { problem };
  }
}
