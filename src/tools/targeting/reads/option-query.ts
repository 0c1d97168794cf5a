import type { Wanted } from "../../../reading/option-scan.ts";
import { ToolError } from "../../definition.ts";

/** Which options are listed. */
export interface OptionsQuery extends Wanted {
  readonly targetingId: string;
  readonly parent: string | undefined;
  readonly all: boolean | undefined;
  readonly sortBy: "contextCount" | "name" | undefined;
}

/** How a list is shown. */
export interface ListForm {
  readonly limit: number;
  readonly detail: "concise" | "detailed";
  readonly cursor: string | undefined;
  readonly fresh: boolean | undefined;
}

/** The answer to a cursor that another list gave. */
export function strangeCursor(): ToolError {
  return new ToolError(
    "cursor is not one that this list gave",
    "Take cursor from the last answer and leave the other arguments as they were, or leave it out to begin anew.",
  );
}
