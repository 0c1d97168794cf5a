import type { Failure } from "../answers/request-messages.ts";
import type { ToolAnswer } from "../tools/define-tool.ts";

/** A failure, and a code where programs have to know it. */
export interface SummarizedFailure extends Failure {
  readonly errorCode?: "STORE_UNAVAILABLE" | "RUN_DAMAGED";
  /** The run whose outcome is unknown, since what is kept of it is damaged. */
  readonly runId?: string;
}

/** A failure as the answer of a tool. */
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
