import * as z from "zod";
import type { ManagementApi } from "../../../api/management.ts";
import { readOptionContents } from "../../../reading/option-contents.ts";
import { known, rowsThatFit, writeCursor } from "../../../render/budget.ts";
import { shown } from "../../../render/fence.ts";
import { comparedText, optionRow } from "../../../render/reading.ts";
import { isUlid } from "../../../spec/ulid.ts";
import type { ToolContext } from "../../context.ts";
import { type ToolAnswer, ToolError } from "../../definition.ts";
import { optionsNamed } from "../option-name.ts";
import { type AskedOption, type PageAsked, placeOf } from "./asked.ts";

/**
 * The option to compare with, by ID, or by name in the targeting of the first. Throws a ToolError where a name is
 * unknown, and ApiErrors.
 */
export async function otherOption(
  given: string,
  { _id, targetingId }: AskedOption,
  api: ManagementApi,
  { signal }: ToolContext,
): Promise<AskedOption> {
  if (isUlid(given)) return { _id: given };
  const own = targetingId ?? (await api.getOption(_id, { limit: 1 }, { signal })).option.targeting;
  if (own !== undefined) return optionsNamed(own, api, signal)(given);
  throw new ToolError("compareWith is a name, and its targeting is not known", "Give targetingId too, or an ID.");
}

const KINDS = ["onlyHere", "onlyThere", "shared"] as const;
type Kind = (typeof KINDS)[number];
const place = z.record(z.enum(KINDS), z.int().min(0));

/**
 * What two options share and what only one of them holds: the numbers, and of the Context IDs as many as the page holds,
 * those that only one holds first. Throws ApiErrors, and a ToolError for a cursor of something else.
 */
export async function compareOptions(
  optionId: string,
  otherId: string,
  { limit, cursor: given, withShared = false }: PageAsked & { readonly withShared?: boolean | undefined },
  api: ManagementApi,
  { environment, signal }: ToolContext,
): Promise<ToolAnswer> {
  const query = { optionId, otherId, withShared };
  const from = placeOf("option", given, query, { schema: place, beginning: ofEach(() => 0) });
  const [here, there] = await Promise.all([
    readOptionContents(api, optionId, signal),
    readOptionContents(api, otherId, signal),
  ]);
  const [inHere, inThere] = [new Set(here.contexts), new Set(there.contexts)];
  const all = {
    onlyHere: here.contexts.filter((id) => !inThere.has(id)),
    onlyThere: there.contexts.filter((id) => !inHere.has(id)),
    shared: here.contexts.filter((id) => inThere.has(id)),
  };
  // The differences come first; what both hold is listed only where that is wanted.
  const listed = withShared ? KINDS : KINDS.filter((kind) => kind !== "shared");
  const [row, other] = [optionRow(here.option, "concise"), optionRow(there.option, "concise")];
  // In turn, so that a page shows some of each kind.
  const rest = inTurn(listed.map((kind) => all[kind].slice(from[kind]).map((id) => ({ kind, id })))).slice(0, limit);
  const ids = rest.map(({ id }) => id);
  const page = rest.slice(0, rowsThatFit(ids, shown, [row, other, row, other]));
  const { shared, onlyHere, onlyThere } = ofEach((kind) => {
    const contexts = page.flatMap((each) => (each.kind === kind ? [each.id] : []));
    return { total: all[kind].length, contexts, complete: from[kind] + contexts.length === all[kind].length };
  });
  const lists = { onlyHere, onlyThere, shared: withShared ? shared : { total: shared.total } };
  const behind = { ...from, ...ofEach((kind) => from[kind] + { onlyHere, onlyThere, shared }[kind].contexts.length) };
  const hasMore = listed.some((kind) => behind[kind] < all[kind].length);
  const cursor = hasMore ? writeCursor(query, behind) : undefined;
  const note =
    hasMore && page.length < rest.length
      ? `This page ends after ${page.length} of ${limit} Context IDs, since an answer holds no more.`
      : undefined;
  return {
    structured: known({ environment, option: row, other, ...lists, note, cursor }),
    text: comparedText({ row, other, ...lists, note, cursor }),
    isError: false,
  };
}

function ofEach<Value>(value: (kind: Kind) => Value): Readonly<Record<Kind, Value>> {
  return { onlyHere: value("onlyHere"), onlyThere: value("onlyThere"), shared: value("shared") };
}

/** The entries of several lists: the first of each, then the second of each, and so on. */
function inTurn<Entry>(lists: readonly (readonly Entry[])[]): readonly Entry[] {
  const longest = Math.max(...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, at) => lists.flatMap((list) => list.slice(at, at + 1))).flat();
}
