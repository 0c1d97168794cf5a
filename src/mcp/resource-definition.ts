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
