import type { CacheHint, Resource } from "@modelcontextprotocol/server";
import type { ToolServices } from "../tools/context.ts";

/** The services that reading a resource needs. */
export interface ResourceContext extends ToolServices {
  readonly caller: string;
}

/** A resource as data: its address, its content, and how it is read. A template without variables is a URI. */
export interface ResourceDefinition {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly uriTemplate: string;
  /** Reads the content; undefined if the resource does not exist. */
  readonly read: (
    variables: Readonly<Record<string, string>>,
    context: ResourceContext,
  ) => Promise<ResourceContent | undefined>;
  /** Lists the resources of this template; absent if they are not listed. */
  readonly list?: (context: ResourceContext) => Promise<Resource[]>;
  readonly complete?: Readonly<Record<string, (typed: string, context: ResourceContext) => Promise<string[]>>>;
  /** How long clients may cache it; absent: not at all. */
  readonly cacheHint?: CacheHint;
}

/** The content of a resource. */
export interface ResourceContent {
  readonly mimeType: string;
  readonly text: string;
}

/** The protocol's limit for one completion. */
const MOST = 100;

/** Returns the values that begin with the typed text, ignoring case. */
export function matching(typed: string, values: readonly string[]): string[] {
  const start = typed.toLowerCase();
  return [...new Set(values)].filter((value) => value.toLowerCase().startsWith(start)).slice(0, MOST);
}

/** Returns the names and IDs of known targetings. */
export async function targetingsLike(typed: string, { memory }: Pick<ToolServices, "memory">): Promise<string[]> {
  const known = (await memory.recent()).flatMap(({ _id, name }) => [name, _id]);
  return matching(typed, known);
}

/** Returns the IDs of known targetings. */
export async function targetingIdsLike(typed: string, { memory }: Pick<ToolServices, "memory">): Promise<string[]> {
  const known = (await memory.recent()).map(({ _id }) => _id);
  return matching(typed, known);
}

/** Returns the IDs of the caller's runs, newest first. */
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

/** Returns the IDs of the caller's suites of event tests. */
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
