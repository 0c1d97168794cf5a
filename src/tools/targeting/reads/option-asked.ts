import { ToolError } from "../../definition.ts";

/** Which page of Context IDs is asked for. */
export interface PageAsked {
  readonly limit: number;
  readonly cursor: string | undefined;
}

/** The option that a call is about, by ID or by name. */
export interface AskedOption {
  readonly _id: string;
  readonly targetingId?: string | undefined;
  readonly note?: string | undefined;
}

/** The answer to a cursor that another option gave. */
export function strangeCursor(): ToolError {
  return new ToolError("cursor is not one that this option gave", "Leave it out to begin anew.");
}
