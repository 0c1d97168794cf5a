import * as z from "zod";
import { openFile } from "../files/open-file.ts";
import type { OpenedFile } from "../files/rows.ts";
import { ENCODINGS } from "../files/text.ts";
import type { ToolContext } from "./context.ts";
import { ToolError } from "./definition.ts";
import { fileWithinWait } from "./within-wait.ts";

/** The arguments with which a tool takes rows of a file instead of another argument. */
export const fileArguments = (columns: string, beside = "items") => ({
  file: z
    .string()
    .optional()
    .describe(`Instead of ${beside}: a CSV (${columns}), NDJSON or JSON array file in an allowed folder`),
  encoding: z.enum(ENCODINGS).optional().describe("Of file: utf-8 (default), or euc-kr as Korean Excel saves CSV"),
});

/**
 * Opens the file of a call; undefined where it has none. `beside` is the argument that stands for the same and its
 * value. Throws a ToolError when both are given or reading takes longer than the call may, and a FileError when the file
 * may not or cannot be read.
 */
export async function openedFile(
  { file, encoding }: { readonly file?: string | undefined; readonly encoding?: "utf-8" | "euc-kr" | undefined },
  beside: Readonly<Record<string, unknown>>,
  context: Pick<ToolContext, "allowedDirs" | "maxLineBytes" | "arrivedAt" | "waitMs" | "clock">,
): Promise<OpenedFile | undefined> {
  const given = Object.keys(beside).find((name) => beside[name] !== undefined);
  if (!file) {
    if (encoding === undefined || given === undefined) return undefined;
    throw new ToolError(`encoding was given beside ${given}`, "encoding is for file; leave it out.");
  }
  if (given !== undefined) throw new ToolError(`file and ${given} were both given`, "Give one of the two.");
  return fileWithinWait(context, openFile(file, encoding ?? "utf-8", context));
}
