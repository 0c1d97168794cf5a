import * as z from "zod";
import type { SplitCells } from "../../files/cells.ts";
import { cutText } from "../../platform/text.ts";
import { LIMITS } from "../../spec/limits.ts";
import type { OptionType } from "../../spec/records.ts";

/** A position in a file. Lines and columns begin at 1. A column counts UTF-16 code units, as editors do. */
export interface Spot {
  readonly line: number;
  readonly column: number;
}

/** Returns only the line and the column of a value that has more fields. */
export function spotOf({ line, column }: Spot): Spot {
  return { line, column };
}

export interface Problem extends Spot {
  readonly lines?: readonly number[] | undefined;
  /** Only for a desired state in the arguments of a call: the path to the value, such as `options[1].name`. */
  readonly path?: string;
  readonly message: string;
  readonly remedy: string;
}

type FieldName = "name" | "parent" | "type" | "exposeChildren" | "contexts";

/**
 * The group that an option shall be in. `keep`: the file does not say. `top`: the top level. `row`: a group in the same
 * file, by the index of its row.
 */
export type ParentWish =
  | { readonly kind: "keep" }
  | { readonly kind: "top" }
  | { readonly kind: "row"; readonly row: number }
  | { readonly kind: "name"; readonly name: string };

/** The Context IDs that an option shall have: trimmed, without duplicates. `atLeast`: it may also have others. */
export interface ContextsWish {
  readonly ids: readonly string[];
  readonly atLeast: boolean;
  /** The Context IDs that the option shall lose. Only used with `atLeast`. */
  readonly remove?: readonly string[];
  readonly split?: SplitCells;
}

/** An option in a file. Fields that the file does not specify are absent, and a plan does not change them. */
export interface DesiredOption extends Spot {
  readonly isRemoved?: true | undefined;
  readonly _id?: string | undefined;
  readonly name?: string | undefined;
  readonly parent: ParentWish;
  readonly type?: OptionType | undefined;
  readonly exposeChildren?: boolean | undefined;
  readonly contexts?: ContextsWish | undefined;
  readonly spots: { readonly [Field in FieldName | "_id"]?: Spot | undefined };
}

export interface DesiredTargeting extends Spot {
  readonly _id?: string | undefined;
  readonly name?: string | undefined;
}

/** A text that a spreadsheet program has probably damaged, such as a rounded number. */
export interface Suspect extends Spot {
  readonly text: string;
  readonly field: "name" | "parentName" | "contexts";
  /** Where the text is in a file of `contextsFile`, in words. Absent if the text is in the desired state itself. */
  readonly place?: string;
}

/** The content of a file, in the same form for all file formats. */
export interface Desired {
  readonly targeting?: DesiredTargeting | undefined;
  /** The options in the order of the file. A group comes before the options that are nested in it. */
  readonly options: readonly DesiredOption[];
  /** Damaged-looking texts of the sheet or of a `contextsFile`. A plan accepts those that the service or base has. */
  readonly suspects: readonly Suspect[];
  readonly hasActions?: true;
}

/** A problem after which the rest of a file cannot be read. No other problem of the file is reported. */
export class UnreadableFile extends Error {
  readonly problem: Problem;
  constructor({ line, column }: Spot, message: string, remedy: string) {
    super(message);
    this.problem = { line, column, message, remedy };
  }
}

export class Problems {
  readonly all: Problem[] = [];

  /** Adds a problem. `lines`: the numbers of all affected lines, if there are several. */
  add({ line, column }: Spot, message: string, remedy: string, lines?: readonly number[]): undefined {
    this.all.push({ line, column, ...(lines !== undefined && { lines }), message, remedy });
    return undefined;
  }

  sorted(): readonly Problem[] {
    return this.all.toSorted((one, other) => one.line - other.line || one.column - other.column);
  }
}

const LONGEST_QUOTED = 80;

/** Returns a text of the file in quotation marks. A long text is cut. */
export function quoted(text: string): string {
  return JSON.stringify(cutText(text, LONGEST_QUOTED));
}

const id = z
  .string()
  .regex(/^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$/)
  .describe("The ID that export wrote. It identifies the object, even if the name differs.");
const name = z
  .string()
  .min(LIMITS.nameMinLength.value)
  .max(LIMITS.nameMaxLength.value)
  .describe(
    "Korean and English letters, digits, spaces, ~ % & + -. With _id, another name renames; else the name identifies.",
  );
const contextIds = z.array(z.string().min(1));

const common = {
  _id: id.optional(),
  name: name.optional(),
  contexts: contextIds.optional().describe("Exactly these Context IDs. If absent, they are not managed. []: none."),
  contextsFile: z.string().optional().describe("Exactly the Context IDs in a file beside this one, one on each line."),
  contextsAtLeast: contextIds.optional().describe("Context IDs to add. Others stay."),
};
const child = z.strictObject({ ...common, type: z.literal("atomic").optional() });
const option = z.strictObject({
  ...common,
  type: z
    .enum(["atomic", "collection"])
    .optional()
    .describe("collection: a group. An option with children is one, too."),
  exposeChildren: z.boolean().optional().describe("Only for groups."),
  children: z.array(child).optional().describe("The sub-options to manage. Others stay. [] makes it a group, too."),
});

/** The published JSON schema of a desired state, with which editors check it. `readDesired` checks more. */
const desiredState = z.strictObject({
  $schema: z.string().optional(),
  version: z.literal(1),
  targeting: z
    .strictObject({ _id: id.optional(), name: name.optional() })
    .optional()
    .describe("With _id, another name renames the targeting. A new name without _id creates one."),
  options: z.array(option),
});

export function desiredStateJsonSchema(): Record<string, unknown> {
  return { title: "The desired state of a targeting", ...z.toJSONSchema(desiredState) };
}
