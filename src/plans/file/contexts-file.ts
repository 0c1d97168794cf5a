import { isAbsolute } from "node:path";
import { BYTE_ORDER_MARK } from "../../files/csv-text.ts";
import { findFile } from "../../files/folders.ts";
import { textOf } from "../../files/text.ts";
import { bytesAt } from "../../platform/bytes.ts";
import { FileError } from "../../platform/file-error.ts";
import { type Problems, quoted } from "./desired.ts";
import type { Drafts, NamedFile } from "./draft.ts";
import { addContextId } from "./values.ts";

/**
 * Reads the files of Context IDs that rows name, one ID a line, and puts them into the rows. `folder` is that of the
 * desired state; undefined where it did not come from a file, which has none beside it.
 */
export async function readContextsFiles(folder: string | undefined, drafts: Drafts): Promise<void> {
  const { files, options, problems } = drafts;
  const read = new Map<string, string>();
  for (const file of files) {
    const text = read.get(file.path) ?? (await textAt(folder, file, problems));
    if (text === undefined) continue;
    read.set(file.path, text);
    const ids = new Set<string>();
    for (const [index, line] of text.split("\n").entries()) {
      if (line.trim() === "") continue;
      addContextId(ids, line, file.spot, problems, ` (line ${index + 1} of ${quoted(file.path)})`);
    }
    const option = options[file.row];
    if (option !== undefined) options[file.row] = { ...option, contexts: { ids: [...ids], atLeast: false } };
  }
}

async function textAt(
  folder: string | undefined,
  { path, spot }: NamedFile,
  problems: Problems,
): Promise<string | undefined> {
  if (folder === undefined) {
    return problems.add(
      spot,
      "contextsFile is given where there is no file beside which it could lie",
      "Write the Context IDs under contexts, or give the desired state as a file.",
    );
  }
  if (isAbsolute(path) || /^[A-Za-z]:/.test(path)) {
    return problems.add(
      spot,
      `contextsFile ${quoted(path)} is no relative path`,
      "Name a file beside this one, or in a folder below.",
    );
  }
  try {
    const parts: string[] = [];
    for await (const part of textOf(bytesAt(await findFile(path, [folder])), "utf-8")) parts.push(part);
    const text = parts.join("");
    return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown;
    return problems.add(spot, `contextsFile: ${thrown.message}`, thrown.remedy);
  }
}
