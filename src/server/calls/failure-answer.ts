import type { Failure } from "../../render/failures/request-failures.ts";
import type { ToolAnswer } from "../../tools/definition.ts";

/** A failure, and a code where programs have to know it. */
export interface ToldFailure extends Failure {
  readonly errorCode?: "STORE_UNAVAILABLE";
}

/** A failure as the answer of a tool. */
export function failureAnswer({ message, remedy, errorCode }: ToldFailure, environment: string): ToolAnswer {
  const error = { ...(errorCode !== undefined && { errorCode }), message, ...(remedy !== undefined && { remedy }) };
  return {
    structured: { environment, error },
    text: remedy === undefined ? message : `${message}\n${remedy}`,
    isError: true,
  };
}
