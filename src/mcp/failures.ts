import { randomBytes } from "node:crypto";
import { escapeInvisible, fenceIfForeign } from "../answers/fence.ts";
import { requestFailure } from "../answers/request-messages.ts";
import { isApiError } from "../api/errors.ts";
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
  if (isApiError(thrown)) return requestFailure(thrown);
  if (thrown instanceof PlanningError) {
    const { message, remedy } = requestFailure(thrown.failed);
    return { message: `planning the call failed, so nothing was changed: ${message}`, remedy };
  }
  const fault = randomBytes(4).toString("hex");
  log.error("a tool failed unexpectedly", { tool, fault, error: thrown });
  return {
    message: `${tool} failed for a reason inside this server (error ID ${fault})`,
    remedy: `Tell the person: the server's log (stderr) has the details; search it for ${fault}.`,
  };
}

const LONGEST_LINE = 4000;

/**
 * Makes an error readable and safe for a model. Cuts long lines, escapes invisible characters, and marks text that
 * comes from a file, because other people may have written it. Texts in `own` come from the call or the settings, and
 * are not marked.
 */
export function readable(failure: SummarizedFailure, own: readonly string[] = []): SummarizedFailure {
  const cut = (line: string): string => (line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line);
  const inLines = (text: string): string =>
    text
      .split("\n")
      .map((line) => escapeInvisible(cut(line)))
      .join("\n");
  const [message, remedy] = [inLines(failure.message), failure.remedy && inLines(failure.remedy)];
  const lines = failure.isOfFile ? [message, ...(remedy ? [remedy] : [])] : [];
  const parts = lines.map((line) => fenceIfForeign([line], own));
  const isAllForeign = parts.every(([part], at) => part !== lines[at]);
  const text = (isAllForeign ? fenceIfForeign(lines, own) : parts.flat()).join("\n");
  return { ...failure, message, remedy, ...(text && { text }) };
}
