import { quoteUntrusted } from "../answers/fence.ts";
import { listedContextIds } from "../files/context-list.ts";
import { damageIn, damageWords } from "../files/damage.ts";
import { findFile } from "../files/folders.ts";
import { FileError } from "../platform/files.ts";
import { bytesAt } from "../platform/held-folder.ts";
import type { ToolContext } from "./context.ts";
import { readableDirs } from "./input-file.ts";

/** Files of Context IDs that an item names: what is in them is added, removed or set. */
export interface ListFiles {
  readonly addFile?: string | undefined;
  readonly removeFile?: string | undefined;
  readonly setFile?: string | undefined;
}

type Lists = Partial<Record<"add" | "remove" | "set", readonly string[] | undefined>>;

/** How many lines an error names. */
const LINES_NAMED = 5;

/**
 * Puts the Context IDs of files into the items that name them, beside those that they hold. Throws a FileError where a
 * file may not or cannot be read, or has lines that a spreadsheet has damaged: then nothing is sent.
 */
export async function withListedContexts<Item extends ListFiles & Lists>(
  items: readonly Item[],
  context: Pick<ToolContext, "allowedDirs" | "roots" | "maxLineBytes">,
): Promise<readonly (Omit<Item, keyof ListFiles> & Lists)[]> {
  /** Each file is read once, however many items name it. */
  const read = new Map<string, Promise<readonly string[]>>();
  const idsIn = (path: string): Promise<readonly string[]> => {
    const ids = read.get(path) ?? idsOf(path, context);
    read.set(path, ids);
    return ids;
  };
  return Promise.all(
    items.map(async ({ addFile, removeFile, setFile, ...item }) => ({
      ...item,
      ...(addFile && { add: [...(item.add ?? []), ...(await idsIn(addFile))] }),
      ...(removeFile && { remove: [...(item.remove ?? []), ...(await idsIn(removeFile))] }),
      ...(setFile && { set: [...(item.set ?? []), ...(await idsIn(setFile))] }),
    })),
  );
}

async function idsOf(
  path: string,
  context: Pick<ToolContext, "allowedDirs" | "roots" | "maxLineBytes">,
): Promise<readonly string[]> {
  const place = await findFile(path, await readableDirs(context));
  const listed = await listedContextIds(bytesAt(place), context.maxLineBytes);
  const damaged = listed.flatMap(({ line, id }) => {
    const damage = damageIn(id);
    return damage === undefined ? [] : [{ line, id, ...damageWords(damage) }];
  });
  const [first] = damaged;
  if (first !== undefined) {
    const lines = damaged
      .slice(0, LINES_NAMED)
      .map(({ line, id, message }) => `line ${line}: ${quoteUntrusted(id)} ${message}`);
    const more = damaged.length - lines.length;
    throw new FileError(
      `${JSON.stringify(path)} holds ${damaged.length} damaged Context ${damaged.length === 1 ? "ID" : "IDs"}; nothing was sent. ` +
        `${lines.join("; ")}${more > 0 ? `; and ${more} more` : ""}`,
      first.remedy,
    );
  }
  if (listed.length > 0) return listed.map(({ id }) => id);
  throw new FileError(`${JSON.stringify(path)} holds no Context ID`, "Write one Context ID a line, without a header.");
}
