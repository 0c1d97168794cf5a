import {
  type McpServer,
  ResourceNotFoundError,
  ResourceTemplate,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { emitSuite, SUITE_FORMATS } from "../events/emit.ts";
import { junitXml } from "../events/junit.ts";
import type { Redactor } from "../render/redact.ts";
import { suiteReportUri, suiteUri } from "../render/suite-reading.ts";
import type { ToolServices } from "../tools/context.ts";
import type { Toolset } from "../tools/definition.ts";
import { isOffered, type Offer } from "./listing.ts";

/** Who reads, and what the server has. */
export interface ResourceReader {
  readonly services: ToolServices;
  /** What is kept is shown only to whoever made it. */
  readonly caller: string;
}

/** A kind of resource, as data: what clients read about it, and how one of the kind is found. */
export interface ResourceDefinition {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly toolset: Toolset;
  /** The address, with the variable `{id}`. */
  readonly template: string;
  /** The content of one resource; undefined where there is none. */
  readonly read: (id: string, reader: ResourceReader) => Promise<ResourceContent | undefined>;
  /** Those that there are now. */
  readonly list: (reader: ResourceReader) => Promise<readonly ListedResource[]>;
}

/** The content of a resource. */
export interface ResourceContent {
  readonly mimeType: string;
  readonly text: string;
}

/** A resource as lists show it. */
export interface ListedResource {
  readonly uri: string;
  readonly name: string;
  readonly mimeType: string;
}

const JUNIT = "application/xml";

/** Every kind of resource. */
export const RESOURCES: readonly ResourceDefinition[] = [
  {
    name: "event-test-suite",
    title: "Suite of event tests",
    description: "A suite of event tests, in the form that was asked for.",
    toolset: "events",
    template: suiteUri("{id}"),
    async read(id, { services, caller }) {
      const kept = await services.suites.find(caller, id);
      if (kept === undefined) return undefined;
      const { suite, format } = kept;
      return { mimeType: SUITE_FORMATS[format].mimeType, text: emitSuite(suite, format) };
    },
    async list({ services, caller }) {
      return (await services.suites.list(caller)).map(({ suiteId, suite, format }) => ({
        uri: suiteUri(suiteId),
        name: `${suite.cases.length} event tests (${SUITE_FORMATS[format].fileName})`,
        mimeType: SUITE_FORMATS[format].mimeType,
      }));
    },
  },
  {
    name: "event-test-report",
    title: "Report of event tests",
    description: "What the last run of a suite of event tests gave, case by case, as JUnit XML.",
    toolset: "events",
    template: suiteReportUri("{id}"),
    async read(id, { services, caller }) {
      const report = (await services.suites.find(caller, id))?.report;
      return report && { mimeType: JUNIT, text: junitXml(report, `event tests ${id}`) };
    },
    async list({ services, caller }) {
      const run = (await services.suites.list(caller)).filter(({ report }) => report !== undefined);
      return run.map(({ suiteId }) => ({
        uri: suiteReportUri(suiteId),
        name: `Report of the event tests ${suiteId}`,
        mimeType: JUNIT,
      }));
    },
  },
];

/** The kinds of resources that are listed and readable. */
export function listedResources(resources: readonly ResourceDefinition[], offer: Offer): readonly ResourceDefinition[] {
  return resources.filter(({ toolset }) => isOffered({ toolset, effect: "reads" }, offer));
}

/** Registers kinds of resources with a server. What is read is redacted, like every answer. */
export function registerResources(
  server: McpServer,
  resources: readonly ResourceDefinition[],
  { services, redactor }: { readonly services: ToolServices; readonly redactor: Redactor },
): void {
  const readerOf = (call: ServerContext): ResourceReader => ({
    services,
    caller: call.http?.authInfo?.clientId ?? "local",
  });
  for (const { name, title, description, template, read, list } of resources) {
    const listing = async (call: ServerContext) => ({ resources: [...(await list(readerOf(call)))] });
    server.registerResource(
      name,
      new ResourceTemplate(template, { list: listing }),
      { title, description },
      async (uri, { id }, call) => {
        const content = typeof id === "string" ? await read(id, readerOf(call)) : undefined;
        if (content === undefined) throw new ResourceNotFoundError(uri.href);
        return { contents: [{ uri: uri.href, mimeType: content.mimeType, text: redactor.text(content.text) }] };
      },
    );
  }
}
