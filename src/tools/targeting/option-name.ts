import type { ManagementApi } from "../../api/management.ts";
import { readOptions } from "../../reading/option-lists.ts";
import { fenced, shown } from "../../render/fence.ts";
import { listLine, optionRow } from "../../render/reading.ts";
import { NameIndex } from "../../spec/names.ts";
import type { OptionRecord } from "../../spec/records.ts";
import { ToolError } from "../definition.ts";
import type { FoundByName } from "./targeting-name.ts";

/** Finds options of one targeting by name; its lists are read once. Throws a ToolError with the candidates. */
export function optionsNamed(targetingId: string, api: ManagementApi, signal: AbortSignal) {
  let index: Promise<NameIndex<OptionRecord>> | undefined;
  return async (name: string): Promise<FoundByName> => {
    index ??= indexOf(targetingId, api, signal);
    const found = (await index).find(name);
    if (found.kind === "one") {
      const { _id, name: own } = found.thing;
      return found.isExact
        ? { _id }
        : { _id, note: `${shown(name)} matched ${shown(own)}, which differs in case or outer spaces.` };
    }
    const candidates = found.candidates.map((option) => listLine(optionRow(option, "concise")));
    const near = candidates.length === 0 ? "" : ` Nearest (ID, name, Context IDs):\n${fenced(candidates)}`;
    const problem = found.kind === "unknown" ? "no option of the targeting is" : "several options of the targeting are";
    throw new ToolError(
      `${problem} named ${shown(name)}`,
      `Give its ID; list_options with search finds it by a part of its name.${near}`,
    );
  };
}

async function indexOf(targetingId: string, api: ManagementApi, signal: AbortSignal): Promise<NameIndex<OptionRecord>> {
  const index = new NameIndex<OptionRecord>();
  for await (const option of readOptions(api, targetingId, signal)) index.add(option);
  return index;
}
