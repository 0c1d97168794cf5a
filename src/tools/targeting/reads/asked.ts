import type * as z from "zod";
import type { Wanted } from "../../../reading/option-scan.ts";
import { readCursor } from "../../../render/budget.ts";
import { ToolError } from "../../definition.ts";
import type { FoundByName } from "../targeting-name.ts";

/** Which options are listed. */
export interface OptionsQuery extends Wanted {
  readonly targetingId: string;
  readonly parent: string | undefined;
  readonly all: boolean | undefined;
  readonly sortBy: "contextCount" | "name" | undefined;
}

/** How a list is shown. */
export interface ListForm extends PageAsked {
  readonly detail: "concise" | "detailed";
  readonly fresh: boolean | undefined;
}

/** Which page is asked for. */
export interface PageAsked {
  readonly limit: number;
  readonly cursor: string | undefined;
}

/** The option that a call is about, by ID or by name. */
export interface AskedOption extends FoundByName {
  readonly targetingId?: string | undefined;
}

/** What can be done about a cursor that something else gave, by what it is given to. */
const REMEDIES = {
  list: "Take cursor from the last answer and leave the other arguments as they were, or leave it out to start again.",
  option: "Leave it out to start again.",
} as const;

/** Where a cursor goes on; at the beginning without one. Throws a ToolError for a cursor of another question. */
export function placeOf<Schema extends z.ZodType>(
  of: keyof typeof REMEDIES,
  cursor: string | undefined,
  query: unknown,
  { schema, beginning }: { readonly schema: Schema; readonly beginning: z.output<Schema> },
): z.output<Schema> {
  const place = cursor ? readCursor(cursor, query, schema) : beginning;
  if (place !== undefined) return place;
  throw new ToolError(`cursor is not one that this ${of} gave`, REMEDIES[of]);
}
