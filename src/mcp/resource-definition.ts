import type { CacheHint, Resource } from "@modelcontextprotocol/server";
import type { ToolServices } from "../tools/context.ts";

/** What a resource is read with. */
export interface ResourceContext extends ToolServices {
  readonly caller: string;
}

/** A resource, as data: where it is, what it holds, and how it is read. A template without variables is a URI. */
export interface ResourceDefinition {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly uriTemplate: string;
  /** Reads the content; undefined where the resource does not exist. */
  readonly read: (
    variables: Readonly<Record<string, string>>,
    context: ResourceContext,
  ) => Promise<ResourceContent | undefined>;
  /** Lists the resources of this template; absent where lists leave them out. */
  readonly list?: (context: ResourceContext) => Promise<Resource[]>;
  /** By variable: completes what a person typed. */
  readonly complete?: Readonly<Record<string, (typed: string, context: ResourceContext) => Promise<string[]>>>;
  /** How long clients may keep it; absent: they ask again. */
  readonly cacheHint?: CacheHint;
}

/** What a resource holds. */
export interface ResourceContent {
  readonly mimeType: string;
  readonly text: string;
}

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
