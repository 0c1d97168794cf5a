import { cutText } from "../platform/text.ts";
import type { Project, StoredOption } from "../sandbox/rules/store.ts";
import type { World } from "../sandbox/world.ts";
import type { OptionDetail, OptionList, OptionRow, TargetingRow } from "./sandbox-wire.ts";

/** The maximum number of rows in one response, of Context IDs of one option, and of characters in a name. */
const MAX_ROWS = 500;
const MAX_CONTEXTS = 1000;
const MAX_LETTERS = 1000;
const cut = (name: string): string => cutText(name, MAX_LETTERS);

export interface Part {
  readonly from: number;
  readonly limit: number;
}

/**
 * Returns a function that lists all targetings with their sizes and the time of their last change since the sandbox was
 * ready. To find deletions, it compares the targetings with those of its previous call.
 */
export function targetingSizes(world: World): () => readonly TargetingRow[] {
  const known = new Map<string, { readonly options: number; readonly contexts: number; readonly changedAt: number }>();
  return () => {
    const rows = [...world.projects.values()].flatMap((project) => {
      const sizes = sizesOf(project);
      return [...project.targetings.values()].map(({ _id, name, optionCount: options, createdAt, updatedAt }) => {
        const { contexts = 0, groups = 0, lastAt = 0 } = sizes.get(_id) ?? {};
        const before = known.get(_id);
        const isSmaller = before !== undefined && (options < before.options || contexts < before.contexts);
        const deletedAt = isSmaller ? world.sources.now() : (before?.changedAt ?? 0);
        const changedAt = Math.max(Date.parse(updatedAt), lastAt, deletedAt);
        known.set(_id, { options, contexts, changedAt });
        const row = { _id, name: cut(name), project: cut(project.name), options, groups, contexts };
        return { ...row, ...since({ createdAt: Date.parse(createdAt), changedAt }, world) };
      });
    });
    const ids = new Set(rows.map(({ _id }) => _id));
    for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
    return rows;
  };
}

/** Returns the times of creation and change. Times before the start of the sandbox are left out. */
function since(times: Readonly<Record<"createdAt" | "changedAt", number>>, { readyAt }: World) {
  return Object.fromEntries(Object.entries(times).filter(([, at]) => at > readyAt));
}

/** By targeting: the numbers of Context IDs and groups, and the time of the last change of one of its options. */
function sizesOf({ options }: Project): ReadonlyMap<string, { contexts: number; groups: number; lastAt: number }> {
  const sizes = new Map<string, { contexts: number; groups: number; lastAt: number }>();
  for (const { targeting, contexts, type, updatedAt } of options.values()) {
    const size = sizes.get(targeting) ?? { contexts: 0, groups: 0, lastAt: 0 };
    size.contexts += contexts.length;
    if (type === "collection") size.groups += 1;
    size.lastAt = Math.max(size.lastAt, Date.parse(updatedAt));
    sizes.set(targeting, size);
  }
  return sizes;
}

/** Returns the options directly below a targeting or group. Undefined if it does not exist. */
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
    const options = ids.page(from, Math.min(limit, MAX_ROWS)).flatMap((id) => project.options.get(id) ?? []);
    return { options: options.map((option) => optionRow(option, project, world)), total: ids.size };
  }
  return undefined;
}

/** Returns an option's Context IDs in the order in which they were added. Undefined without such an option. */
export function contextIdsOf(world: World, targetingId: string, optionId: string): OptionDetail | undefined {
  for (const { options } of world.projects.values()) {
    const option = options.get(optionId);
    if (option === undefined || option.targeting !== targetingId) continue;
    const contextIds = [...option.contexts].slice(0, MAX_CONTEXTS).map(cut);
    return { contextIds, total: option.contexts.length };
  }
  return undefined;
}

/**
 * Returns the options of all targetings whose name contains the text (case-insensitive) or that have it as a Context
 * ID.
 */
export function findMatchingOptions(world: World, search: string, { from, limit }: Part): OptionList {
  const wanted = search.toLowerCase();
  const options: OptionRow[] = [];
  let total = 0;
  for (const project of world.projects.values()) {
    for (const option of project.options.values()) {
      if (!option.name.toLowerCase().includes(wanted) && !option.contexts.includes(search)) continue;
      total += 1;
      const isWanted = total > from && options.length < Math.min(limit, MAX_ROWS);
      if (isWanted)
        options.push({
          ...optionRow(option, project, world),
          targeting: option.targeting,
          group: positionOf(project, option),
        });
    }
  }
  return { options, total };
}

function positionOf({ targetings, options }: Project, { targeting, parent }: StoredOption): string {
  const names = [targetings.get(targeting)?.name, parent === undefined ? undefined : options.get(parent)?.name];
  return names.flatMap((name) => (name === undefined ? [] : [cut(name)])).join(" / ");
}

function optionRow(option: StoredOption, project: Project, world: World): OptionRow {
  const { _id, name, type, contexts, children, createdAt, updatedAt } = option;
  const isGroup = type === "collection";
  const inside = [...children].flatMap((id) => project.options.get(id) ?? []);
  const isChanged = createdAt !== updatedAt;
  return {
    ...{ _id, name: cut(name), isGroup, contexts: contexts.length, children: children.size },
    ...(isGroup && { contextsInside: inside.reduce((sum, child) => sum + child.contexts.length, 0) }),
    ...since({ createdAt: isChanged ? 0 : Date.parse(createdAt), changedAt: Date.parse(updatedAt) }, world),
  };
}
