import * as z from "zod";
import type { SplitCells } from "../../files/cells.ts";
import { cutText } from "../../platform/text.ts";
import { LIMITS } from "../../spec/limits.ts";
import type { OptionType } from "../../spec/records.ts";

/** A position in a file. Both numbers count from 1; columns count UTF-16 units, as editors do. */
export interface Spot {
  readonly line: number;
  readonly column: number;
}

/** Returns the line and column of an object that has further fields. */
export function spotOf({ line, column }: Spot): Spot {
  return { line, column };
}

/** A problem of a file or of its content: its position, the problem, and the remedy. */
export interface Problem extends Spot {
  /** All lines concerned, if there are several. */
  readonly lines?: readonly number[] | undefined;
  /** The path in an object that a call contained, such as `options[1].name`. */
  readonly path?: string;
  readonly message: string;
  readonly remedy: string;
}

/** The fields of an option that a file can manage. */
type FieldName = "name" | "parent" | "type" | "exposeChildren" | "contexts";

/** The wanted parent of an option: not stated, the top level, a group in the same file by its position, or a name. */
export type ParentWish =
  | { readonly kind: "keep" }
  | { readonly kind: "top" }
  | { readonly kind: "row"; readonly row: number }
  | { readonly kind: "name"; readonly name: string };

/** The wanted Context IDs of an option, trimmed and unique: exactly these, or at least these. */
export interface ContextsWish {
  readonly ids: readonly string[];
  readonly atLeast: boolean;
  /** With "at least": the Context IDs to remove. */
  readonly remove?: readonly string[];
  /** The split cells that they come from. */
  readonly split?: SplitCells;
}

/** An option as a file describes it. Absent fields are not managed. */
export interface DesiredOption extends Spot {
  /** Whether it is to be deleted. */
  readonly isRemoved?: true | undefined;
  readonly _id?: string | undefined;
  readonly name?: string | undefined;
  readonly parent: ParentWish;
  readonly type?: OptionType | undefined;
  readonly exposeChildren?: boolean | undefined;
  readonly contexts?: ContextsWish | undefined;
  /** The position of each field. */
  readonly spots: { readonly [Field in FieldName | "_id"]?: Spot | undefined };
}

/** The targeting of a file. */
export interface DesiredTargeting extends Spot {
  readonly _id?: string | undefined;
  readonly name?: string | undefined;
}

/** A text that a spreadsheet program has probably converted from another text. */
export interface Suspect extends Spot {
  readonly text: string;
  /** The column that contains it. */
  readonly field: "name" | "parentName" | "contexts";
}

/** The desired state of a targeting: the content of a file in any of the four forms. */
export interface Desired {
  readonly targeting?: DesiredTargeting | undefined;
  /** In file order; a group comes before the options that the file nests in it. */
  readonly options: readonly DesiredOption[];
  /** For sheets: texts that are problems unless the service or the base has exactly this text. */
  readonly suspects: readonly Suspect[];
  /** For sheets: whether a row states an action for its option. */
  readonly hasActions?: true;
}

/** A file that cannot be read any further. Only its one problem is reported. */
export class UnreadableFile extends Error {
  readonly problem: Problem;
  constructor({ line, column }: Spot, message: string, remedy: string) {
    super(message);
    this.problem = { line, column, message, remedy };
  }
}

/** Problems in the order in which they were found. */
export class Problems {
  readonly all: Problem[] = [];

  /** Adds a problem, with `lines` if it concerns several. */
  add({ line, column }: Spot, message: string, remedy: string, lines?: readonly number[]): undefined {
    this.all.push({ line, column, ...(lines !== undefined && { lines }), message, remedy });
    return undefined;
  }

  /** All problems by line and column. */
  sorted(): readonly Problem[] {
    return this.all.toSorted((one, other) => one.line - other.line || one.column - other.column);
  }
}

const LONGEST_QUOTED = 80;

/** Returns a text of the file in quotes, shortened if it is long. */
export function quoted(text: string): string {
  return JSON.stringify(cutText(text, LONGEST_QUOTED));
}

const id = z
  .string()
  .regex(/^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$/)
  .describe("The ID that export wrote; it decides which option is meant, whatever its name.");
const name = z
  .string()
  .min(LIMITS.nameMinLength.value)
  .max(LIMITS.nameMaxLength.value)
  .describe("Korean and English letters, digits, spaces, ~ % & + -. Another name than the option has is a rename.");
const contextIds = z.array(z.string().min(1));

const contents = {
  contexts: contextIds.optional().describe("Exactly these Context IDs; absent: not managed; []: none."),
  contextsFile: z.string().optional().describe("Exactly the Context IDs of a file beside this one, one a line."),
  contextsAtLeast: contextIds.optional().describe("These Context IDs among others: adds, never removes."),
};
const common = {
  _id: id.optional(),
  name: name.optional(),
  ...contents,
};

const child = z.strictObject({ ...common, type: z.literal("atomic").optional() });
const option = z.strictObject({
  ...common,
  type: z.enum(["atomic", "collection"]).optional().describe("collection is a group; children say that, too."),
  exposeChildren: z.boolean().optional().describe("Of groups alone."),
  children: z.array(child).optional().describe("The sub-options that are managed; others stay. [] means a group, too."),
});

/** A desired state in YAML or JSON, as in its published JSON Schema for editors. `readDesired` checks more. */
const desiredState = z.strictObject({
  $schema: z.string().optional(),
  version: z.literal(1),
  targeting: z
    .strictObject({ _id: id.optional(), name: name.optional() })
    .optional()
    .describe("With _id, another name renames it; a new name without _id creates a targeting."),
  options: z.array(option),
});

/** Returns the published JSON Schema of a desired state. */
export function desiredStateJsonSchema(): Record<string, unknown> {
  return { title: "The desired state of a targeting", ...z.toJSONSchema(desiredState) };
}
