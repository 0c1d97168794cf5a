import { type ApiError, isApiError, RejectedError } from "../api/errors.ts";
import type { ByteSource } from "../platform/bytes.ts";
import { FileError } from "../platform/file-error.ts";
import type { Reason, ReportedObject, StopCause } from "../runs/outcome.ts";
import { ownReason } from "../runs/reasons.ts";
import type { WriteCall } from "./call.ts";
import type { JournalEntry } from "./rows/entries.ts";
import { RunState } from "./state/change-state.ts";

/** How a run ends that was not planned: nothing of it was sent. */
export interface Ending {
  readonly cause: Exclude<StopCause, "finished">;
  readonly reason: Reason;
}

/** So that no line of a journal grows with the call. */
const OBJECTS_PER_LINE = 500;

/**
 * How a run stands until it is planned: what the caller gave, all of it pending. `bytes` is the content of the call's
 * file, where it has one; of one that cannot be read nothing is known.
 */
export async function unplannedState(call: WriteCall, bytes: ByteSource | undefined): Promise<RunState> {
  try {
    const { givenObjects } = await import("./given-objects.ts");
    return new RunState(await givenObjects(call, bytes));
  } catch (thrown) {
    if (thrown instanceof FileError) return new RunState();
    throw thrown;
  }
}

/**
 * What a failed planning means for its run. A service that says no says it again: the run has failed. What another try
 * may mend interrupts it. Undefined for an error of this machine.
 */
export function endingOf(thrown: unknown): Ending | undefined {
  if (thrown instanceof FileError) {
    const { message, remedy } = thrown;
    return { cause: "ended", reason: ownReason("NOT_PLANNED", { effect: "file", message, remedy }) };
  }
  if (!isApiError(thrown)) return undefined;
  const cause = thrown.effect === "rejected" ? "ended" : "interrupted";
  return { cause, reason: ownReason("NOT_PLANNED", problemOf(thrown)) };
}

/** What `render/` needs of an error of the API to put it into words. */
function problemOf(error: ApiError): Readonly<Record<string, unknown>> {
  const { effect, operation, statusCode } = error;
  const about = { effect, operation, ...(statusCode !== undefined && { statusCode }) };
  if (!(error instanceof RejectedError)) return "reason" in error ? { ...about, reason: error.reason } : about;
  const { kind, route, errorCode, messages } = error;
  return { ...about, kind, route, ...(errorCode !== undefined && { errorCode }), messages: messages.slice(0, 3) };
}

/** The journal entries that name the objects of a run. */
export function* objectEntries({ objects }: Pick<RunState, "objects">): Generator<JournalEntry> {
  for (let from = 0; from < objects.length; from += OBJECTS_PER_LINE) {
    const some: ReportedObject[] = [];
    for (let object = from; object < Math.min(from + OBJECTS_PER_LINE, objects.length); object += 1) {
      const about = objects.at(object);
      if (about !== undefined) some.push(about);
    }
    yield { t: "objects", objects: some };
  }
}
