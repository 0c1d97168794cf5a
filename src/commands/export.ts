import { savedForm, writtenSheet } from "../files/save-file.ts";
import type { SheetFormat } from "../files/written-rows.ts";
import { baseOf, basePathOf, baseText, type ServiceTargeting } from "../plans/base.ts";
import { type DesiredFormat, formatOfDesired } from "../plans/file/read-desired.ts";
import { desiredText, sheetOf } from "../plans/file/write-desired.ts";
import { driftSince } from "../plans/match.ts";
import { checkSeenName, resolveTargetingArgument } from "../plans/read-targeting.ts";
import { FileError, type Pieces } from "../platform/files.ts";
import { amount } from "../platform/text.ts";
import { isOn } from "../runtime/settings-input.ts";
import { type CommandLine, optionOf } from "../settings/command-line.ts";
import { SettingsError, text } from "../settings/value-types.ts";
import { baseFor, isThere, writeOver } from "./plan-files.ts";
import { confirmInTerminal, onlyWord, printContent, printNote, readShowing, withProject } from "./project.ts";

export async function runExport(line: CommandLine): Promise<number> {
  const given = onlyWord(line, "the ID or name of a targeting");
  const to = optionOf(line, "to", text);
  const [isForced, fresh, isBaseOnly] = [isOn(line, "force"), isOn(line, "fresh"), isOn(line, "base-only")];
  if (isBaseOnly && to === undefined)
    throw new SettingsError("--base-only needs --to FILE: the base is written beside that file");
  const delimiter = optionOf(line, "delimiter", text);
  const form = to === undefined ? ({ format: "yaml" } as const) : formOrUsage(to, delimiter);
  return withProject(line, "export", async (context) => {
    const targetingId = await resolveTargetingArgument(given, context.memory);
    const there = await readShowing(context, targetingId, fresh);
    checkSeenName({ given, byName: false }, there);
    if (to === undefined) {
      for (const piece of desiredText(there, "yaml")) printContent(piece);
      return 0;
    }
    if (!isForced && !(await mayReplace(to, there, isBaseOnly))) return 1;
    // The base is written last. If the command stops before that, the old base is still there, which does no harm.
    const base = { path: basePathOf(to), pieces: baseText(baseOf(there, new Date().toISOString())) };
    await writeOver(isBaseOnly ? [base] : [{ path: to, pieces: piecesOf(there, form) }, base]);
    printNote(`${isBaseOnly ? base.path : `${to} and ${base.path}`}: ${amount(there.options.length, "option")}`);
    if (form.format === "csv" && !isBaseOnly)
      printNote(
        "To edit this file in a spreadsheet program, import all columns as text; otherwise the program changes IDs. With .xlsx, this is not necessary.",
      );
    return 0;
  });
}

type ExportForm = SheetFormat | { readonly format: Exclude<DesiredFormat, "csv"> };

function formOrUsage(path: string, delimiter: string | undefined): ExportForm {
  try {
    if (delimiter !== undefined || /\.(?:csv|tsv|xlsx)$/i.test(path)) return savedForm(path, delimiter);
    const format = formatOfDesired(path);
    return format === "csv" ? savedForm(path, delimiter) : { format };
  } catch (thrown) {
    if (thrown instanceof FileError) throw new SettingsError(`${thrown.message}. ${thrown.remedy}`);
    throw thrown;
  }
}

function piecesOf(there: ServiceTargeting, form: ExportForm): Pieces {
  if (form.format !== "csv" && form.format !== "xlsx") return desiredText(there, form.format);
  const rows = async function* () {
    yield* sheetOf(there, form);
  };
  return writtenSheet({ name: "Options", above: 0, rows: rows() }, form);
}

/**
 * Asks whether existing files may be replaced. The question contains how many changes were made in the service since
 * the old base was written, because a plan with the new base does not report these changes.
 */
async function mayReplace(to: string, there: ServiceTargeting, isBaseOnly: boolean): Promise<boolean> {
  const paths = isBaseOnly ? [basePathOf(to)] : [to, basePathOf(to)];
  const found = (await Promise.all(paths.map(async (path) => ((await isThere(path)) ? [path] : [])))).flat();
  if (found.length === 0) return true;
  const accepted = await acceptedWords(to, there);
  const what = `${found.join(" and ")} ${found.length === 1 ? "exists" : "exist"} already. ${accepted}`;
  return confirmInTerminal(
    `${what} Replace?`,
    "Nothing was written.",
    `${what} Nothing was written. To replace it, use --force.`,
  );
}

async function acceptedWords(to: string, there: ServiceTargeting): Promise<string> {
  try {
    const base = await baseFor(to, undefined);
    if (base === undefined) return "It has no base.";
    if (base.targeting._id !== there.targeting._id) return "Its base belongs to another targeting.";
    const many = driftSince(base, there).length;
    return many === 0
      ? "Since its base was written, nothing has changed in the service."
      : `Since its base was written, ${amount(many, "change")} ${many === 1 ? "was" : "were"} made in the service. If you replace the file, you accept ${many === 1 ? "it" : "them"}.`;
  } catch (thrown) {
    if (thrown instanceof FileError) return "Its base cannot be read.";
    throw thrown;
  }
}
