import { type McpServer, ResourceNotFoundError, ResourceTemplate } from "@modelcontextprotocol/server";
import type { Redactor } from "../../render/redact.ts";
import { runsLike } from "../prompts/completion.ts";
import type { ResourceContent, ResourceContext, ResourceDefinition } from "./definition.ts";
import { SPEC_RESOURCES } from "./spec-resources.ts";
import { SUITE_RESOURCES } from "./suite-resources.ts";
import { TARGETING_RESOURCES } from "./targeting-resources.ts";

const NDJSON = "application/x-ndjson";
/** What reads runs. Only reading one loads it, so that starting stays fast. */
const reads = () => import("./run-reads.ts");

/** What is kept of a run, and read in parts: the first part that is cut names the next one. */
const IN_PARTS = [
  {
    part: "results",
    mimeType: NDJSON,
    title: "Results of a run",
    description:
      "Every item of a run with how it ended, one JSON object a line. A last line with `next` names the next part.",
    further: { title: "Further results of a run", description: "The results of a run from an item on." },
  },
  {
    part: "removed",
    mimeType: NDJSON,
    title: "What a run took away",
    description: "What a run deleted or took away, one JSON object a line, kept so that it can be brought back.",
    further: { title: "Further things that a run took away", description: "What a run took away from a byte on." },
  },
  {
    part: "not-removed",
    mimeType: NDJSON,
    title: "What a run did not take away",
    description:
      "What a run was to delete or take away and did not, or where that is not known, one JSON object a line with " +
      '`removed: "no"` or `"unknown"`.',
    further: {
      title: "Further things that a run did not take away",
      description: "What a run did not take away, or may not have, from a byte on.",
    },
  },
  {
    part: "rejects",
    mimeType: "text/plain",
    title: "Rows of a run's file that failed",
    description:
      "The rows of a file that failed, with their reasons, as CSV or NDJSON that the tool reads once they are fixed. " +
      "A last line with `next` names the next part.",
    further: {
      title: "Further rows that failed",
      description: "The rows of a run's file that failed, from a byte on.",
    },
  },
] as const;

/** Every resource template. */
export const RESOURCES: readonly ResourceDefinition[] = [
  ...IN_PARTS.flatMap(({ part, mimeType, further, ...whole }): readonly ResourceDefinition[] => {
    const name = `run-${part}`;
    const uriTemplate = `targeting://runs/{runId}/${part}`;
    const read: ResourceDefinition["read"] = async ({ runId = "", from = "0" }, context) =>
      content(mimeType, await (await reads()).readPart(runId, part, Number(from), context));
    return [
      { name, ...whole, uriTemplate, complete: { runId: runsLike }, read },
      { name: `${name}-part`, ...further, uriTemplate: `${uriTemplate}/{from}`, complete: { runId: runsLike }, read },
    ];
  }),
  {
    name: "run-plan",
    title: "Plan of a run",
    description: "All of a planned desired state or undo, as targeting-mcp plan --json prints it.",
    uriTemplate: "targeting://runs/{runId}/plan",
    complete: { runId: runsLike },
    read: async ({ runId = "" }, context) =>
      content("application/json", await (await reads()).readPlanned(runId, context)),
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
      if (content === undefined) throw new ResourceNotFoundError(uri.href, `there is nothing at ${uri.href}`);
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
      list: list && (async () => ({ resources: await list(await context()) })),
      complete: Object.fromEntries(completions),
    });
    server.registerResource(name, template, about, answer);
  }
}

function content(mimeType: string, text: string | undefined): ResourceContent | undefined {
  return text === undefined ? undefined : { mimeType, text };
}
