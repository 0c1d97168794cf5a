import { type McpServer, ProtocolError, ProtocolErrorCode, ResourceTemplate } from "@modelcontextprotocol/server";
import type { Redactor } from "../../render/redact.ts";
import { runsLike } from "../prompts/completion.ts";
import type { ResourceContent, ResourceContext, ResourceDefinition } from "./definition.ts";
import { SPEC_RESOURCES } from "./spec-resources.ts";
import { SUITE_RESOURCES } from "./suite-resources.ts";
import { TARGETING_RESOURCES } from "./targeting-resources.ts";

const NDJSON = "application/x-ndjson";
/** What reads runs. Only reading one loads it, so that starting stays fast. */
const reads = () => import("./run-reads.ts");

/** Every resource template. */
export const RESOURCES: readonly ResourceDefinition[] = [
  {
    name: "run-results",
    title: "Results of a run",
    description:
      "Every item of a run with how it ended, one JSON object a line. A last line with `next` names the next part.",
    uriTemplate: "targeting://runs/{runId}/results",
    complete: { runId: runsLike },
    read: async ({ runId = "" }, context) => ndjson(await (await reads()).readResults(runId, 0, context)),
  },
  {
    name: "run-results-part",
    title: "Further results of a run",
    description: "The results of a run from an item on.",
    uriTemplate: "targeting://runs/{runId}/results/{from}",
    read: async ({ runId = "", from = "" }, context) =>
      ndjson(await (await reads()).readResults(runId, Number(from), context)),
  },
  {
    name: "run-removed",
    title: "What a run took away",
    description: "What a run deleted or took away, one JSON object a line, kept so that it can be brought back.",
    uriTemplate: "targeting://runs/{runId}/removed",
    complete: { runId: runsLike },
    read: async ({ runId = "" }, context) => ndjson(await (await reads()).readPart(runId, "removed", 0, context)),
  },
  {
    name: "run-removed-part",
    title: "Further things that a run took away",
    description: "What a run took away from a byte on.",
    uriTemplate: "targeting://runs/{runId}/removed/{from}",
    complete: { runId: runsLike },
    read: async ({ runId = "", from = "" }, context) =>
      ndjson(await (await reads()).readPart(runId, "removed", Number(from), context)),
  },
  {
    name: "run-rejects",
    title: "Rows of a run's file that failed",
    description:
      "The rows of a file that failed, with their reasons, as CSV or NDJSON that the tool reads once they are mended. " +
      "A last line with `next` names the next part.",
    uriTemplate: "targeting://runs/{runId}/rejects",
    complete: { runId: runsLike },
    read: async ({ runId = "" }, context) => plainText(await (await reads()).readPart(runId, "rejects", 0, context)),
  },
  {
    name: "run-rejects-part",
    title: "Further rows that failed",
    description: "The rows of a run's file that failed, from a byte on.",
    uriTemplate: "targeting://runs/{runId}/rejects/{from}",
    complete: { runId: runsLike },
    read: async ({ runId = "", from = "" }, context) =>
      plainText(await (await reads()).readPart(runId, "rejects", Number(from), context)),
  },
  {
    name: "run-plan",
    title: "Plan of a run",
    description: "All of a planned desired state or way back, as targeting-mcp plan --json prints it.",
    uriTemplate: "targeting://runs/{runId}/plan",
    complete: { runId: runsLike },
    read: async ({ runId = "" }, context) => json(await (await reads()).readPlanned(runId, context)),
  },
  ...SUITE_RESOURCES,
  ...TARGETING_RESOURCES,
  ...SPEC_RESOURCES,
];

/** Registers resources with a server. Their content passes the redactor. */
export function registerResources(
  server: McpServer,
  resources: readonly ResourceDefinition[],
  context: () => Promise<ResourceContext>,
  redactor: Redactor,
): void {
  for (const { name, title, description, uriTemplate, read, list, complete = {}, cacheHint } of resources) {
    const about = { title, description, ...(cacheHint && { cacheHint }) };
    const answer = async (uri: URL, variables: Readonly<Record<string, string | string[]>>) => {
      const given = Object.fromEntries(Object.entries(variables).map(([key, value]) => [key, String(value)]));
      const content = await read(given, await context());
      if (content === undefined) {
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, `there is nothing at ${uri.href}`);
      }
      return { contents: [{ uri: uri.href, mimeType: content.mimeType, text: redactor.text(content.text) }] };
    };
    if (!uriTemplate.includes("{")) {
      server.registerResource(name, uriTemplate, about, (uri) => answer(uri, {}));
      continue;
    }
    const completions = Object.entries(complete).map(
      ([variable, find]) => [variable, async (typed: string) => find(typed, await context())] as const,
    );
    const template = new ResourceTemplate(uriTemplate, {
      list: list && (async () => ({ resources: [...(await list(await context()))] })),
      complete: Object.fromEntries(completions),
    });
    server.registerResource(name, template, about, answer);
  }
}

function ndjson(text: string | undefined): ResourceContent | undefined {
  return text === undefined ? undefined : { mimeType: NDJSON, text };
}

function json(text: string | undefined): ResourceContent | undefined {
  return text === undefined ? undefined : { mimeType: "application/json", text };
}

function plainText(text: string | undefined): ResourceContent | undefined {
  return text === undefined ? undefined : { mimeType: "text/plain", text };
}
