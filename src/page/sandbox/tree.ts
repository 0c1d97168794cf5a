import type { Project, StoredOption } from "../../sandbox/rules/store.ts";
import type { World } from "../../sandbox/world.ts";
import type { OptionList, OptionRow, TargetingRow } from "../wire.ts";

/** The most rows of one answer, and the most letters of a name in it. */
const MOST_ROWS = 500;
const MOST_LETTERS = 1000;

/** Which part of a list is wanted. */
export interface Part {
  readonly from: number;
  readonly limit: number;
}

/** All targetings with the number of their options, sub-options included. */
export function targetingRows(world: World): readonly TargetingRow[] {
  return [...world.projects.values()].flatMap(({ name: project, targetings }) =>
    [...targetings.values()].map(({ _id, name, optionCount }) => ({
      _id,
      name: cut(name),
      project: cut(project),
      options: optionCount,
    })),
  );
}

/** What is directly in a targeting, or in a group of it; undefined where there is no such targeting or group. */
export function optionsIn(
  world: World,
  targetingId: string,
  parent: string | undefined,
  { from, limit }: Part,
): OptionList | undefined {
  for (const project of world.projects.values()) {
    const targeting = project.targetings.get(targetingId);
    const ids = parent === undefined ? targeting?.topLevel : project.options.get(parent)?.children;
    if (targeting === undefined || ids === undefined) continue;
    const options = ids.page(from, Math.min(limit, MOST_ROWS)).flatMap((id) => project.options.get(id) ?? []);
    return { options: options.map((option) => optionRow(option)), total: ids.size };
  }
  return undefined;
}

/** The options of all targetings whose name contains a text, in capital or small letters, or that hold it as a Context ID. */
export function foundOptions(world: World, search: string, { from, limit }: Part): OptionList {
  const wanted = search.toLowerCase();
  const options: OptionRow[] = [];
  let total = 0;
  for (const project of world.projects.values()) {
    for (const option of project.options.values()) {
      if (!option.name.toLowerCase().includes(wanted) && !option.contexts.has(search)) continue;
      total += 1;
      const isWanted = total > from && options.length < Math.min(limit, MOST_ROWS);
      if (isWanted) options.push({ ...optionRow(option), group: placeOf(project, option) });
    }
  }
  return { options, total };
}

function placeOf({ targetings, options }: Project, { targeting, parent }: StoredOption): string {
  const names = [targetings.get(targeting)?.name, parent === undefined ? undefined : options.get(parent)?.name];
  return names.flatMap((name) => (name === undefined ? [] : [cut(name)])).join(" / ");
}

function optionRow({ _id, name, type, contexts, children }: StoredOption): OptionRow {
  return { _id, name: cut(name), isGroup: type === "collection", contexts: contexts.size, children: children.size };
}

function cut(name: string): string {
  return name.length <= MOST_LETTERS ? name : `${name.slice(0, MOST_LETTERS)}…`;
}
