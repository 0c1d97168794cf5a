import type { Failure } from "../answers/request-messages.ts";
import type { ToolAnswer } from "../tools/define-tool.ts";

/** A failure, and a code if programs need to recognise it. */
export interface SummarizedFailure extends Failure {
  readonly errorCode?: "STORE_UNAVAILABLE" | "RUN_DAMAGED";
  /** The run whose outcome is unknown because its stored data is damaged. */
  readonly runId?: string;
}

/** Converts a failure to the answer of a tool. */
export function failureAnswer(
  { message, remedy, errorCode, runId }: SummarizedFailure,
  environment: string,
): ToolAnswer {
  const error = { ...(errorCode !== undefined && { errorCode }), message, ...(remedy !== undefined && { remedy }) };
  return {
    structured: { environment, ...(runId !== undefined && { runId, status: "unknown" }), error },
    text: remedy === undefined ? message : `${message}\n${remedy}`,
    isError: true,
  };
}
