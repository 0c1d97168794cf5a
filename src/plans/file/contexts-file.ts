import { isAbsolute } from "node:path";
import { type ListedContextId, listedContextIds } from "../../files/context-list.ts";
import { findFile } from "../../files/folders.ts";
import { bytesAt } from "../../platform/bytes.ts";
import { FileError } from "../../platform/file-error.ts";
import { type Problems, quoted } from "./desired.ts";
import type { Drafts, NamedFile } from "./draft.ts";
import { addContextId } from "./values.ts";

/** Where files of Context IDs are, and how long a line of them may be. */
interface BesideFile {
  /** The folder of the desired state; undefined where it did not come from a file, which has none beside it. */
  readonly folder: string | undefined;
  readonly maxLineBytes: number | undefined;
}

/** Reads the files of Context IDs that rows name, one ID a line, and puts them into the rows. */
export async function readContextsFiles(beside: BesideFile, drafts: Drafts): Promise<void> {
  const { files, options, problems } = drafts;
  const read = new Map<string, readonly ListedContextId[]>();
  for (const file of files) {
    const listed = read.get(file.path) ?? (await listAt(beside, file, problems));
    if (listed === undefined) continue;
    read.set(file.path, listed);
    const ids = new Set<string>();
    for (const { line, id } of listed) {
      addContextId(ids, id, file.spot, problems, ` (line ${line} of ${quoted(file.path)})`);
    }
    const option = options[file.row];
    if (option !== undefined) options[file.row] = { ...option, contexts: { ids: [...ids], atLeast: false } };
  }
}

async function listAt(
  { folder, maxLineBytes }: BesideFile,
  { path, spot }: NamedFile,
  problems: Problems,
): Promise<readonly ListedContextId[] | undefined> {
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
    return await listedContextIds(bytesAt(await findFile(path, [folder])), maxLineBytes);
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown;
    return problems.add(spot, `contextsFile: ${thrown.message}`, thrown.remedy);
  }
}
