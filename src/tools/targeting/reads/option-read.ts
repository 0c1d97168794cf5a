import * as z from "zod";
import type { ManagementApi } from "../../../api/management.ts";
import { known, rowsThatFit, writeCursor } from "../../../render/budget.ts";
import { shown } from "../../../render/fence.ts";
import { optionRow, optionText } from "../../../render/reading.ts";
import { LIMITS } from "../../../spec/limits.ts";
import { managementOf } from "../../apis.ts";
import type { ToolContext } from "../../context.ts";
import { type ToolAnswer, ToolError } from "../../definition.ts";
import { optionsNamed } from "../option-name.ts";
import { findTargeting, noting, type TargetingReference, ulidArgument } from "../targeting-name.ts";
import { type AskedOption, type PageAsked, placeOf } from "./asked.ts";
import { compareOptions, otherOption } from "./compare-options.ts";
import { savedContexts } from "./saved-read.ts";

const position = z.int().min(0).max(LIMITS.getOffset.value);

/** An option by ID, or by name in its targeting. */
interface OptionReference extends TargetingReference {
  readonly optionId?: string | undefined;
  readonly name?: string | undefined;
}

/** What of an option is asked for. */
interface ReadAsked extends OptionReference {
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly saveTo?: string | undefined;
  readonly delimiter?: string | undefined;
  readonly compareWith?: string | undefined;
  /** Whether a comparison also lists what both hold. */
  readonly detail?: "concise" | "detailed" | undefined;
}

/**
 * One option with a page of its Context IDs; or with `saveTo` all of them in a file, or with `compareWith` what it shares
 * with another. Throws ApiErrors, a FileError where the file may not be written, and a ToolError for bad arguments.
 */
export async function readOption(
  { limit, cursor, saveTo, delimiter, compareWith, detail, ...given }: ReadAsked,
  context: ToolContext,
): Promise<ToolAnswer> {
  const api = managementOf(context);
  const found = await optionAsked(given, api, context);
  if (saveTo)
    return noting(found.note, await savedContexts(found, { saveTo, delimiter: delimiter || undefined }, context));
  if (!compareWith) return noting(found.note, await pageOf(found._id, { limit, cursor }, api, context));
  const other = await otherOption(compareWith, found, api, context);
  const compared = await compareOptions(
    found._id,
    other._id,
    { limit, cursor, withShared: detail === "detailed" },
    api,
    context,
  );
  return noting(found.note, noting(other.note, compared));
}

async function optionAsked(
  { optionId, name, ...reference }: OptionReference,
  api: ManagementApi,
  context: ToolContext,
): Promise<AskedOption> {
  if (optionId && name) throw new ToolError("optionId and name were both given", "Give one of the two.");
  const targeting = await findTargeting(reference, context);
  const targetingId = targeting?._id;
  if (optionId) return { _id: ulidArgument("optionId", optionId), targetingId, note: targeting?.note };
  if (!name) throw new ToolError("optionId is missing", "Give optionId, or name with targetingId or targetingName.");
  if (targetingId === undefined) {
    throw new ToolError("name was given without its targeting", "Give targetingId (or targetingName) too.");
  }
  const found = await optionsNamed(targetingId, api, context.signal)(name);
  const notes = [targeting?.note, found.note].filter((note) => note !== undefined);
  return { _id: found._id, targetingId, ...(notes.length > 0 && { note: notes.join(" ") }) };
}

async function pageOf(
  optionId: string,
  { limit, cursor: given }: PageAsked,
  api: ManagementApi,
  { environment, signal }: ToolContext,
): Promise<ToolAnswer> {
  const query = { optionId };
  const offset = placeOf("option", given, query, { schema: position, beginning: 0 });
  const { option, contexts: page } = await api.getOption(optionId, { limit, offset }, { signal });
  const row = optionRow(option, "detailed");
  const contexts = page.slice(0, rowsThatFit(page, shown, [row, row]));
  const end = offset + contexts.length;
  const total = option.contextCount ?? offset + page.length;
  const isShort = contexts.length < page.length;
  const hasMore = contexts.length > 0 && (end < total || isShort);
  const cursor = hasMore && end <= LIMITS.getOffset.value ? writeCursor(query, end) : undefined;
  const note = isShort
    ? `This page ends after ${contexts.length} of ${limit}, since an answer holds no more.`
    : undefined;
  return {
    structured: known({ environment, option: row, contexts, total, note, cursor }),
    text: optionText({ row, contexts, total, note, cursor }),
    isError: false,
  };
}
