import type { Run } from "../changes/run.ts";
import type { EventRun } from "../events/run/event-run.ts";

/** Whether a run changes targetings and options, rather than sending events. */
export function isWriteRun(run: Run | EventRun): run is Run {
  const { tool } = run.header.call;
  return tool !== "track_events" && tool !== "track_event";
}
