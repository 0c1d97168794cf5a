import type { Backend } from "../../runs/backend/backend.ts";
import { type Observer, together } from "../../server/observing/observer.ts";
import { hasTracingSdk } from "../../server/observing/tracing-sdk.ts";
import { VERSION } from "../version.ts";

/** What is logged with the problem. */
export const NO_TRACES =
  "an OpenTelemetry SDK is loaded, and no traces are made: the package @opentelemetry/api must be installed beside this one";

/** Loads those who look: figures where they are wanted, and traces where the person has loaded an OpenTelemetry SDK. */
export async function observers(wantsFigures: boolean) {
  const figures = wantsFigures ? await figuresOf() : undefined;
  const { traces, problem } = hasTracingSdk() ? await tracesOf() : {};
  return {
    /** Undefined where nobody looks: then nothing is slower. */
    observer: together([traces, figures?.observer].filter((one) => one !== undefined)),
    /** The store, measured where figures are wanted. */
    over: figures?.over ?? ((backend: Backend) => backend),
    /** The figures; undefined where they are not wanted. */
    text: figures?.text,
    /** Why no traces are made although an SDK is loaded. */
    problem,
  } as const;
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
