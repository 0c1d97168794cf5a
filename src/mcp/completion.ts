import type { ToolServices } from "../tools/context.ts";

/** The most that a completion gives (the protocol's limit). */
const MOST = 100;

/** The values that begin with the typed text, in upper or lower case. */
export function matching(typed: string, values: readonly string[]): string[] {
  const start = typed.toLowerCase();
  return [...new Set(values)].filter((value) => value.toLowerCase().startsWith(start)).slice(0, MOST);
}

/** Names and IDs of targetings seen before. */
export async function targetingsLike(typed: string, { memory }: Pick<ToolServices, "memory">): Promise<string[]> {
  const known = (await memory.recent()).flatMap(({ _id, name }) => [name, _id]);
  return matching(typed, known);
}

/** IDs of targetings seen before. */
export async function targetingIdsLike(typed: string, { memory }: Pick<ToolServices, "memory">): Promise<string[]> {
  const known = (await memory.recent()).map(({ _id }) => _id);
  return matching(typed, known);
}

/** IDs of the caller's runs, the newest first. */
export async function runsLike(
  typed: string,
  { runs, caller }: Pick<ToolServices, "runs"> & { readonly caller: string },
): Promise<string[]> {
  const ids: string[] = [];
  for await (const { runId } of runs.list(caller)) {
    if (ids.push(runId) >= MOST) break;
  }
  return matching(typed, ids);
}

/** IDs of the caller's suites of event tests. */
export async function suitesLike(
  typed: string,
  { suites, caller }: Pick<ToolServices, "suites"> & { readonly caller: string },
): Promise<string[]> {
  const known = await suites.list(caller);
  return matching(
    typed,
    known.map(({ suiteId }) => suiteId),
  );
}
