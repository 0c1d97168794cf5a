import type { Failure } from "../../render/failures/request-failures.ts";
import type { ToolAnswer } from "../../tools/definition.ts";

/** A failure as the answer of a tool. */
export function failureAnswer({ message, remedy }: Failure, environment: string): ToolAnswer {
  return {
    structured: { environment, error: { message, ...(remedy !== undefined && { remedy }) } },
    text: remedy === undefined ? message : `${message}\n${remedy}`,
    isError: true,
  };
}
