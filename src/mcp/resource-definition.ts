import type { CacheHint, Resource } from "@modelcontextprotocol/server";
import type { ToolServices } from "../tools/define-tool.ts";

export interface ResourceContext extends ToolServices {
  readonly caller: string;
}

/** A resource. If its URI has variables, it is a template of resources. */
export interface ResourceDefinition {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly uriTemplate: string;
  readonly read: (
    variables: Readonly<Record<string, string>>,
    context: ResourceContext,
  ) => Promise<ResourceContent | undefined>;
  readonly list?: (context: ResourceContext) => Promise<Resource[]>;
  readonly complete?: Readonly<Record<string, (typed: string, context: ResourceContext) => Promise<string[]>>>;
  /** How long clients may cache the content. Absent if they may not cache it. */
  readonly cacheHint?: CacheHint;
}

export interface ResourceContent {
  readonly mimeType: string;
  readonly text: string;
}

const MOST = 100;

export function matching(typed: string, values: readonly string[]): string[] {
  const start = typed.toLowerCase();
  return [...new Set(values)].filter((value) => value.toLowerCase().startsWith(start)).slice(0, MOST);
}

export async function targetingsLike(typed: string, { memory }: Pick<ToolServices, "memory">): Promise<string[]> {
  return matching(
    typed,
    (await memory.recent()).flatMap(({ _id, name }) => [name, _id]),
  );
}

export async function targetingIdsLike(typed: string, { memory }: Pick<ToolServices, "memory">): Promise<string[]> {
  return matching(
    typed,
    (await memory.recent()).map(({ _id }) => _id),
  );
}

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

export async function suitesLike(
  typed: string,
  { suites, caller }: Pick<ToolServices, "suites"> & { readonly caller: string },
): Promise<string[]> {
  const known = (await suites.list(caller)).map(({ suiteId }) => suiteId);
  return matching(typed, known);
}
