import type { CacheHint, Resource } from "@modelcontextprotocol/server";
import type { ToolServices } from "../tools/context.ts";

export interface ResourceContext extends ToolServices {
  readonly caller: string;
}

/** A resource or, if its URI has variables, a template of resources. */
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
  /** Lists the resources of this template; absent: they are not listed. */
  readonly list?: (context: ResourceContext) => Promise<Resource[]>;
  readonly complete?: Readonly<Record<string, (typed: string, context: ResourceContext) => Promise<string[]>>>;
  /** How long clients may cache the content; absent: they may not. */
  readonly cacheHint?: CacheHint;
}

export interface ResourceContent {
  readonly mimeType: string;
  readonly text: string;
}

/** The maximum number of suggestions that the protocol allows in one completion. */
const MOST = 100;

/** Returns the values that start with the typed text (case-insensitive). */
export function matching(typed: string, values: readonly string[]): string[] {
  const start = typed.toLowerCase();
  return [...new Set(values)].filter((value) => value.toLowerCase().startsWith(start)).slice(0, MOST);
}

/** Returns the names and IDs of known targetings that match the typed text. */
export async function targetingsLike(typed: string, { memory }: Pick<ToolServices, "memory">): Promise<string[]> {
  const known = (await memory.recent()).flatMap(({ _id, name }) => [name, _id]);
  return matching(typed, known);
}

/** Returns the IDs of known targetings that match the typed text. */
export async function targetingIdsLike(typed: string, { memory }: Pick<ToolServices, "memory">): Promise<string[]> {
  const known = (await memory.recent()).map(({ _id }) => _id);
  return matching(typed, known);
}

/** Returns the IDs of the caller's runs that match the typed text, newest first. */
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

/** Returns the IDs of the caller's suites of event tests that match the typed text. */
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
