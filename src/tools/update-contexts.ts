import * as z from "zod";
import { quoteUntrusted } from "../answers/fence.ts";
import { ARGUMENTS } from "../changes/call.ts";
import { contextRows } from "../changes/rows/input-rows.ts";
import { damageIn, damageWords } from "../files/damage.ts";
import type { ContextIdList } from "../files/detect-sheet.ts";
import { findFile } from "../files/folders.ts";
import { FileError } from "../platform/files.ts";
import { bytesAt } from "../platform/held-folder.ts";
import { firstOf } from "../platform/text.ts";
import { fileWithinWait } from "./apis.ts";
import {
  aboutTargeting,
  fileArguments,
  fileArgumentsOf,
  findTargeting,
  openedFile,
  readableDirs,
  referenceOf,
  targetingArguments,
  withNote,
} from "./arguments.ts";
import { type ToolContext, type ToolDefinition, ToolError } from "./define-tool.ts";
import { removalsFrom } from "./option-search.ts";
import { confirmationArgument, confirmed } from "./write/confirmed.ts";
import { dryRunArgument, runOutput, write } from "./write/write.ts";

const input = () => {
  const { items, ...others } = ARGUMENTS.update_contexts();
  const withFiles = items.element.extend({
    addFile: z.string().optional().describe("File: one Context ID a line"),
    removeFile: z.string().optional(),
    setFile: z.string().optional(),
  });
  return z.strictObject({
    ...targetingArguments(),
    items: z.array(withFiles).min(1).optional(),
    removeEverywhere: z.array(z.string()).optional().describe("Context IDs to remove from every option"),
    ...fileArguments("columns _id or name, contexts, op"),
    ...others,
    ...confirmationArgument(),
    ...dryRunArgument(),
  });
};

/** Returns the items of removeEverywhere, and a note about the IDs that no option has. */
async function removals(contextIds: readonly string[], targetingId: string | undefined, context: ToolContext) {
  if (targetingId === undefined) {
    throw new ToolError("removeEverywhere was given without a targeting", "Give targetingId (or targetingName) too.");
  }
  const items = await removalsFrom(targetingId, contextIds, context);
  if (items.length === 0) {
    throw new ToolError(
      "no option of the targeting holds any of these Context IDs; nothing was changed",
      "Nothing needs to be done.",
    );
  }
  const held = new Set(items.flatMap(({ remove }) => remove));
  const absent = contextIds.filter((id) => !held.has(id));
  const note = `No option of the targeting holds ${firstOf(absent, ABSENT_NAMED, quoteUntrusted)}.`;
  return { items, absent: absent.length === 0 ? undefined : note };
}

const ABSENT_NAMED = 10;

export const updateContexts = {
  name: "update_contexts",
  title: "Change Context IDs",
  description:
    "Adds, removes, moves or sets Context IDs of any number of options. A person has to approve removing over 100, or leaving an option empty.",
  toolset: "targeting",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ items: given, removeEverywhere, confirmation: token, dryRun, ...all }, context) {
    const tool = "update_contexts";
    const { about, others: named } = fileArgumentsOf(all);
    const { targetingId: givenId, targetingName, ...others } = named;
    const opened = await openedFile(about, { items: given }, contextRows, context);
    const listed = given && (await fileWithinWait(context, withListedContexts(given, context)));
    const found = await findTargeting(referenceOf({ targetingId: givenId, targetingName }, opened), context);
    const { _id: targetingId } = found ?? {};
    if (removeEverywhere !== undefined && (given ?? opened) !== undefined) {
      throw new ToolError(
        "removeEverywhere was given together with items or file",
        "Use removeEverywhere in a separate call. To remove from only some options: list_options with contextIds shows which options hold the Context IDs; give the options to change in items, each with remove.",
      );
    }
    const isEverywhere = removeEverywhere !== undefined && token === undefined;
    const everywhere = isEverywhere ? await removals(removeEverywhere, targetingId, context) : undefined;
    const items = everywhere?.items ?? listed?.items;
    const file = await aboutTargeting(opened, found, context);
    const input = {
      targetingId,
      items: items ?? [],
      file,
      ...others,
      ...(isEverywhere && { everywhere: removeEverywhere }),
    };
    const call = (items ?? opened) && ({ tool, input } as const);
    const notes = [found?.note, everywhere?.absent, ...(listed?.notes ?? [])].filter((note) => note !== undefined);
    const note = notes.length === 0 ? undefined : notes.join(" ");
    if (token !== undefined)
      return withNote(note, await confirmed({ tool, token, call, targetingId, dryRun }, context));
    return withNote(note, await write(call, { dryRun, bytes: opened?.bytes }, context));
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

type GivenItem = NonNullable<z.output<ReturnType<typeof input>>["items"]>[number];

const LINES_NAMED = 5;

/**
 * Adds to each item the Context IDs in its files. Throws a FileError for a damaged line. `notes`: how files with a
 * heading were read.
 */
async function withListedContexts(
  items: readonly GivenItem[],
  context: Pick<ToolContext, "allowedDirs" | "roots" | "maxLineBytes">,
) {
  const read = new Map<string, ReturnType<typeof listIn>>();
  const idsIn = async (path: string): Promise<readonly string[]> => {
    const list = read.get(path) ?? listIn(path, context);
    read.set(path, list);
    return (await list).ids;
  };
  const all = await Promise.all(
    items.map(async ({ addFile, removeFile, setFile, ...item }) => ({
      ...item,
      ...(addFile && { add: [...(item.add ?? []), ...(await idsIn(addFile))] }),
      ...(removeFile && { remove: [...(item.remove ?? []), ...(await idsIn(removeFile))] }),
      ...(setFile && { set: [...(item.set ?? []), ...(await idsIn(setFile))] }),
    })),
  );
  const lists = await Promise.all(read.values());
  return { items: all, notes: lists.flatMap(({ note }) => note ?? []) };
}

async function listIn(
  path: string,
  context: Pick<ToolContext, "allowedDirs" | "roots" | "maxLineBytes">,
): Promise<{ readonly ids: readonly string[]; readonly note: string | undefined }> {
  const place = await findFile(path, await readableDirs(context));
  const { listedContextIds } = await import("../files/detect-sheet.ts");
  const { ids, heading } = await listedContextIds(path, bytesAt(place), context.maxLineBytes);
  const damaged = ids.flatMap(({ line, id, isText }) => {
    const damage = damageIn(id, isText);
    return damage === undefined ? [] : [{ line, id, ...damageWords(damage) }];
  });
  const [first] = damaged;
  if (first !== undefined) {
    const wordsOf = ({ line, id, message }: (typeof damaged)[number]) =>
      `line ${line}: ${quoteUntrusted(id)} ${message}`;
    throw new FileError(
      `${JSON.stringify(path)} holds ${damaged.length} damaged Context ${damaged.length === 1 ? "ID" : "IDs"}; nothing was sent. ` +
        firstOf(damaged, LINES_NAMED, wordsOf, { separator: ";" }),
      first.remedy,
    );
  }
  if (ids.length > 0) return { ids: ids.map(({ id }) => id), note: heading && headingNote(path, heading) };
  throw new FileError(`${JSON.stringify(path)} contains no Context ID`, "Write one Context ID on each line.");
}

function headingNote(path: string, { line, text, isColumn }: NonNullable<ContextIdList["heading"]>): string {
  const file = JSON.stringify(path);
  return isColumn
    ? `From ${file}, only the column ${quoteUntrusted(text)} was read (header on line ${line}).`
    : `Line ${line} of ${file}, ${quoteUntrusted(text)}, is a heading and was skipped. If it is a Context ID, add it in the call.`;
}
