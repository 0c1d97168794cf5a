import { type ApiError, isApiError } from "../../api/errors.ts";
import type { Planning } from "../../changes/planning.ts";
import type { ToolContext } from "../context.ts";
import { atMostOneWait } from "./follow-run.ts";

/** A read that a plan needs failed: nothing was sent. */
export class PlanningError extends Error {
  readonly failed: ApiError;
  constructor(failed: ApiError) {
    super(`a change could not be planned: ${failed.message}`, { cause: failed });
    this.failed = failed;
  }
}

/**
 * Makes a plan, but takes no longer for it than the call may take: then gives what goes on being made. A caller who
 * gives up before that stops it. Throws a PlanningError when a read of the API failed.
 */
export async function planInTime<Made>(
  make: (signal: AbortSignal) => Promise<Made>,
  context: ToolContext,
): Promise<Made | Planning<Made>> {
  const stopping = new AbortController();
  const stop = (): void => stopping.abort(new DOMException("the call was given up", "AbortError"));
  context.signal.addEventListener("abort", stop, { once: true });
  if (context.signal.aborted) stop();
  const plan = make(stopping.signal);
  let made: Made | undefined;
  const noted = plan.then((ready) => {
    made = ready;
  });
  try {
    await atMostOneWait(noted, context);
  } catch (thrown) {
    throw isApiError(thrown) ? new PlanningError(thrown) : thrown;
  } finally {
    context.signal.removeEventListener("abort", stop);
  }
  return made ?? { plan, stop };
}
