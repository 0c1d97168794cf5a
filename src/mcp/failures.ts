import { randomBytes } from "node:crypto";
import { escapeInvisible, fenceIfForeign } from "../answers/fence.ts";
import { requestFailure } from "../answers/request-messages.ts";
import { type ApiError, isApiError, RejectedError } from "../api/errors.ts";
import { UnsupportedEventError } from "../events/event-types.ts";
import type { Log } from "../observe/log.ts";
import { FileError } from "../platform/files.ts";
import { ExecutionRefusedError } from "../runs/kind.ts";
import { DamagedRunError, RunStoreError, StoreUnavailableError } from "../runs/store.ts";
import { type SummarizedFailure, ToolError } from "../tools/define-tool.ts";
import { PlanningError } from "../tools/write/within-call.ts";

/** Returns message and remedy of an error. An unexpected one has only an ID, under which the log has the details. */
export function failureOf(thrown: unknown, tool: string, log: Log): SummarizedFailure {
  if (
    thrown instanceof ToolError ||
    thrown instanceof FileError ||
    thrown instanceof RunStoreError ||
    thrown instanceof ExecutionRefusedError
  ) {
    const { message, remedy } = thrown;
    if (thrown instanceof DamagedRunError) return { errorCode: "RUN_DAMAGED", message, remedy, runId: thrown.runId };
    return {
      ...(thrown instanceof StoreUnavailableError && { errorCode: "STORE_UNAVAILABLE" }),
      ...(thrown instanceof FileError && { isOfFile: true }),
      message,
      remedy,
    };
  }
  if (thrown instanceof UnsupportedEventError) {
    const remedy = `list_event_types ${tool === "list_event_types" ? "{} shows all events" : "says what each event needs"}.`;
    return { message: thrown.message, remedy };
  }
  if (isApiError(thrown)) return serviceFailure(thrown);
  if (thrown instanceof PlanningError) {
    const { message, remedy, ofService } = serviceFailure(thrown.failed);
    return { ofService, message: `planning the call failed, so nothing was changed: ${message}`, remedy };
  }
  const fault = randomBytes(4).toString("hex");
  log.error("a tool failed unexpectedly", { tool, fault, error: thrown });
  return {
    message: `${tool} failed for a reason inside this server (error ID ${fault})`,
    remedy: `Tell the person: the server's log (stderr) has the details; search it for ${fault}.`,
  };
}

function serviceFailure(error: ApiError) {
  const own = error instanceof RejectedError ? [error.route] : [];
  return { ...requestFailure(error), ofService: { own } } as const;
}

const LONGEST_LINE = 4000;

/** Matches a text that has its own marked part, such as what the service said. Foreign text cannot begin a line. */
const FENCED = /^<untrusted-[0-9a-f]+>$/m;

/**
 * Makes an error readable and safe for a model. Cuts long lines, escapes invisible characters, and marks text that
 * comes from a file or the service, because other people may have written it. Texts in `own` come from the call or the
 * settings, and are not marked.
 */
export function readable(failure: SummarizedFailure, own: readonly string[] = []): SummarizedFailure {
  const cut = (line: string): string => (line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line);
  const inLines = (text: string): string =>
    text
      .split("\n")
      .map((line) => escapeInvisible(cut(line)))
      .join("\n");
  const [message, remedy] = [inLines(failure.message), failure.remedy && inLines(failure.remedy)];
  const isForeign = failure.isOfFile === true || failure.ofService !== undefined;
  const marked = remedy !== undefined && FENCED.test(remedy) ? [remedy] : [];
  const lines = isForeign ? [message, ...(remedy && marked.length === 0 ? [remedy] : [])] : [];
  const ours = [...own, ...(failure.ofService?.own ?? [])];
  const parts = lines.map((line) => fenceIfForeign([line], ours));
  const isAllForeign = parts.every(([part], at) => part !== lines[at]);
  const shown = isAllForeign ? fenceIfForeign(lines, ours) : parts.flat();
  const text = isForeign ? [...shown, ...marked].join("\n") : "";
  return { ...failure, message, remedy, ...(text && { text }) };
}
