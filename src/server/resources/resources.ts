import { type McpServer, ProtocolError, ProtocolErrorCode, ResourceTemplate } from "@modelcontextprotocol/server";
import { messageFor } from "../../render/failures/messages.ts";
import type { Redactor } from "../../render/redact.ts";
import type { RunPart } from "../../runs/backend/store.ts";
import type { Run } from "../../runs/kind.ts";
import { objectResult } from "../../runs/report.ts";
import { runsLike } from "../prompts/completion.ts";
import type { ResourceContent, ResourceContext, ResourceDefinition } from "./definition.ts";
import { SPEC_RESOURCES } from "./spec-resources.ts";
import { SUITE_RESOURCES } from "./suite-resources.ts";
import { TARGETING_RESOURCES } from "./targeting-resources.ts";

const NDJSON = "application/x-ndjson";
/** Messages over stdio must stay well below 10 MiB: longer results are read in parts. */
const PART_CHARACTERS = 4_000_000;
const NEWLINE = 0x0a;

/** Every resource template. */
export const RESOURCES: readonly ResourceDefinition[] = [
  {
    name: "run-results",
    title: "Results of a run",
    description:
      "Every item of a run with how it ended, one JSON object a line. A last line with `next` names the next part.",
    uriTemplate: "targeting://runs/{runId}/results",
    complete: { runId: runsLike },
    read: async ({ runId = "" }, context) => ndjson(await readResults(runId, 0, context)),
  },
  {
    name: "run-results-part",
    title: "Further results of a run",
    description: "The results of a run from an item on.",
    uriTemplate: "targeting://runs/{runId}/results/{from}",
    read: async ({ runId = "", from = "" }, context) => ndjson(await readResults(runId, Number(from), context)),
  },
  {
    name: "run-removed",
    title: "What a run took away",
    description: "What a run deleted or took away, one JSON object a line, kept so that it can be brought back.",
    uriTemplate: "targeting://runs/{runId}/removed",
    complete: { runId: runsLike },
    read: async ({ runId = "" }, context) => ndjson(await readPart(runId, "removed", 0, context)),
  },
  {
    name: "run-removed-part",
    title: "Further things that a run took away",
    description: "What a run took away from a byte on.",
    uriTemplate: "targeting://runs/{runId}/removed/{from}",
    complete: { runId: runsLike },
    read: async ({ runId = "", from = "" }, context) => ndjson(await readPart(runId, "removed", Number(from), context)),
  },
  {
    name: "run-rejects",
    title: "Rows of a run's file that failed",
    description:
      "The rows of a file that failed, with their reasons, as CSV or NDJSON that the tool reads once they are mended. " +
      "A last line with `next` names the next part.",
    uriTemplate: "targeting://runs/{runId}/rejects",
    complete: { runId: runsLike },
    read: async ({ runId = "" }, context) => plainText(await readPart(runId, "rejects", 0, context)),
  },
  {
    name: "run-rejects-part",
    title: "Further rows that failed",
    description: "The rows of a run's file that failed, from a byte on.",
    uriTemplate: "targeting://runs/{runId}/rejects/{from}",
    complete: { runId: runsLike },
    read: async ({ runId = "", from = "" }, context) =>
      plainText(await readPart(runId, "rejects", Number(from), context)),
  },
  ...SUITE_RESOURCES,
  ...TARGETING_RESOURCES,
  ...SPEC_RESOURCES,
];

/** Registers resources with a server. Their content passes the redactor. */
export function registerResources(
  server: McpServer,
  resources: readonly ResourceDefinition[],
  context: ResourceContext,
  redactor: Redactor,
): void {
  for (const { name, title, description, uriTemplate, read, list, complete = {}, cacheHint } of resources) {
    const about = { title, description, ...(cacheHint && { cacheHint }) };
    const answer = async (uri: URL, variables: Readonly<Record<string, string | string[]>>) => {
      const given = Object.fromEntries(Object.entries(variables).map(([key, value]) => [key, String(value)]));
      const content = await read(given, context);
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
      ([variable, find]) => [variable, (typed: string) => find(typed, context)] as const,
    );
    const template = new ResourceTemplate(uriTemplate, {
      list: list && (async () => ({ resources: [...(await list(context))] })),
      complete: Object.fromEntries(completions),
    });
    server.registerResource(name, template, about, answer);
  }
}

function ndjson(text: string | undefined): ResourceContent | undefined {
  return text === undefined ? undefined : { mimeType: NDJSON, text };
}

function plainText(text: string | undefined): ResourceContent | undefined {
  return text === undefined ? undefined : { mimeType: "text/plain", text };
}

async function ownRun(runId: string, { runs, caller }: ResourceContext): Promise<Run | undefined> {
  const run = await runs.find(runId);
  return run?.header.caller === caller ? run : undefined;
}

/** What is kept of a run beside its journal, cut behind a line where it is too long for one message. */
async function readPart(
  runId: string,
  part: RunPart,
  from: number,
  context: ResourceContext,
): Promise<string | undefined> {
  const run = await ownRun(runId, context);
  if (run === undefined || !Number.isSafeInteger(from) || from < 0) return undefined;
  const chunks: Uint8Array[] = [];
  let passed = 0;
  let size = 0;
  for await (const chunk of context.runs.part(runId, part)()) {
    const wanted = chunk.subarray(Math.max(0, from - passed));
    passed += chunk.length;
    if (wanted.length === 0) continue;
    chunks.push(wanted);
    size += wanted.length;
    if (size > PART_CHARACTERS && chunk.includes(NEWLINE)) break;
  }
  const bytes = Buffer.concat(chunks);
  if (size <= PART_CHARACTERS) return bytes.toString("utf8");
  const end = bytes.lastIndexOf("\n") + 1;
  const next = JSON.stringify({ next: `targeting://runs/${runId}/${part}/${from + end}` });
  return `${bytes.subarray(0, end).toString("utf8")}${next}\n`;
}

async function readResults(runId: string, from: number, context: ResourceContext): Promise<string | undefined> {
  const run = await ownRun(runId, context);
  if (run === undefined || !Number.isSafeInteger(from) || from < 0) return undefined;
  const lines: string[] = [];
  let size = 0;
  for (let object = from; object < run.state.objects.length; object += 1) {
    if (size > PART_CHARACTERS) {
      lines.push(JSON.stringify({ next: `targeting://runs/${runId}/results/${object}` }));
      break;
    }
    const { reason, ...result } = objectResult(run.state, object);
    const { code: errorCode, statusCode, detail } = reason ?? {};
    const why = reason === undefined ? {} : { errorCode, statusCode, detail, ...messageFor(reason) };
    const line = JSON.stringify({ ...result, ...why });
    lines.push(line);
    size += line.length;
  }
  return lines.map((line) => `${line}\n`).join("");
}
