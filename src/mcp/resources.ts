import {
  type CacheHint,
  type McpServer,
  type Resource,
  ResourceNotFoundError,
  ResourceTemplate,
} from "@modelcontextprotocol/server";
import { suiteReportUri, suiteUri } from "../answers/event-suites.ts";
import type { Redactor } from "../answers/fence.ts";
import { isUlid } from "../spec/names-and-contexts.ts";
import type { ToolServices } from "../tools/define-tool.ts";

export interface ResourceContext extends ToolServices {
  readonly caller: string;
}

/** A resource; a template for many resources if its URI has variables. */
interface ResourceDefinition {
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
  /** How long clients may cache the content. Absent if they must not. */
  readonly cacheHint?: CacheHint;
}

interface ResourceContent {
  readonly mimeType: string;
  readonly text: string;
}

const JSON_TYPE = "application/json";
/** For content that changes only with the version of the server: clients may cache it for a day. */
export const LASTING = { ttlMs: 86_400_000, cacheScope: "public" } as const;

function page(name: string, title: string, description: string, content: () => Promise<unknown>): ResourceDefinition {
  const uri = `targeting://spec/${name}`;
  return {
    name: `spec-${name}`,
    title,
    description,
    uriTemplate: uri,
    cacheHint: LASTING,
    read: async () => ({ mimeType: JSON_TYPE, text: JSON.stringify(await content(), null, 1) }),
  };
}

const SPEC_RESOURCES: readonly ResourceDefinition[] = [
  page("events", "Supported events", "Every supported event with its required and optional parameters.", async () => ({
    events: (await import("../events/event-types.ts")).listEventTypes(),
  })),
  page("limits", "Limits", "Every limit of both APIs, with the section that states it.", async () => {
    const { EVENT_LIMITS, LIMITS } = await import("../spec/limits.ts");
    return { management: LIMITS, events: EVENT_LIMITS };
  }),
  page(
    "errors",
    "Error codes",
    "Every error code of the management API, when it occurs, and the fields of its detail.",
    async () => ({ errors: (await import("../spec/error-codes.ts")).ERROR_CODES }),
  ),
];

const JUNIT = "application/xml";

const emitting = () => import("../events/suites/emit.ts");

const SUITE_RESOURCES: readonly ResourceDefinition[] = [
  {
    name: "event-test-suite",
    title: "Suite of event tests",
    description: "A suite of event tests, in the requested format.",
    uriTemplate: suiteUri("{suiteId}"),
    complete: { suiteId: suitesLike },
    async read({ suiteId = "" }, context) {
      const kept = await context.suites.find(context.caller, suiteId);
      if (kept === undefined) return undefined;
      const [{ emitSuite, SUITE_FORMATS }, { emittedUrl }] = await Promise.all([
        emitting(),
        import("../tools/apis.ts"),
      ]);
      const { suite, format } = kept;
      const text = await emitSuite(suite, format, await emittedUrl(format, context));
      return { mimeType: SUITE_FORMATS[format].mimeType, text };
    },
    async list({ suites, caller }) {
      const { SUITE_FORMATS } = await emitting();
      return (await suites.list(caller)).map(({ suiteId, suite, format }) => ({
        uri: suiteUri(suiteId),
        name: `${suite.cases.length} event tests (${SUITE_FORMATS[format].fileName})`,
        mimeType: SUITE_FORMATS[format].mimeType,
      }));
    },
  },
  {
    name: "event-test-report",
    title: "Report of event tests",
    description: "The results of the last run of a suite of event tests, as JUnit XML.",
    uriTemplate: suiteReportUri("{suiteId}"),
    complete: { suiteId: suitesLike },
    async read({ suiteId = "" }, { suites, caller }) {
      const report = (await suites.find(caller, suiteId))?.report;
      if (report === undefined) return undefined;
      const { junitXml } = await import("../events/suites/run-suite.ts");
      return { mimeType: JUNIT, text: junitXml(report, `event tests ${suiteId}`) };
    },
    async list({ suites, caller }) {
      const run = (await suites.list(caller)).filter(({ report }) => report !== undefined);
      return run.map(({ suiteId }) => ({
        uri: suiteReportUri(suiteId),
        name: `Report of the event tests ${suiteId}`,
        mimeType: JUNIT,
      }));
    },
  },
];

const NDJSON = "application/x-ndjson";
/** A part of a list of options ends after this many characters, or this many milliseconds of reading. */
const PART_CHARACTERS = 1_000_000;
const PART_MS = 10_000;

const LOST =
  "The list changed since the previous part, so some of its options may be missing in these parts. To read all, start with the first part again.";

const readOptions: ResourceDefinition["read"] = async ({ targetingId = "", from = "0" }, context) => {
  const { management, clock, waitMs, stopping } = context;
  const [, top, inside, last] = /^(\d{1,6})(?:-(\d{1,6}))?(?:\.([0-9A-Z]{4}))?$/i.exec(from) ?? [];
  if (top === undefined || management === undefined || !isUlid(targetingId)) return undefined;
  const given = { top: Number(top), inside: inside === undefined ? undefined : Number(inside), last };
  const end = clock.now() + PART_MS;
  // Imported only when needed, so that the server starts fast.
  const { managementOf } = await import("../tools/apis.ts");
  const api = managementOf({ management, clock, waitMs, arrivedAt: clock.now() });
  const { positionNow, walkOptions } = await import("../reads/option-lists.ts");
  const { untilStable } = await import("../reads/pages.ts");
  const { optionRow } = await import("../answers/reading.ts");
  const text = await untilStable(async (walk) => {
    const list = { targetingId, signal: stopping, ...walk };
    const start = await positionNow(api, list, given);
    const lines = start.isLost ? [JSON.stringify({ note: LOST })] : [];
    let size = 0;
    for await (const { option, next } of walkOptions(api, list, start.from)) {
      const line = JSON.stringify(optionRow(option, "detailed"));
      lines.push(line);
      size += line.length;
      if (size < PART_CHARACTERS && clock.now() < end) continue;
      const place = next.inside === undefined ? `${next.top}` : `${next.top}-${next.inside}`;
      lines.push(JSON.stringify({ next: `targeting://targetings/${targetingId}/options/${place}.${next.last}` }));
      break;
    }
    return lines.map((line) => `${line}\n`).join("");
  });
  return { mimeType: NDJSON, text };
};

const TARGETING_RESOURCES: readonly ResourceDefinition[] = [
  {
    name: "targeting-options",
    title: "Options of a targeting",
    description:
      "Every option of a targeting, each group followed by its sub-options, one JSON object a line. " +
      "A last line with `next` names the next part.",
    uriTemplate: "targeting://targetings/{targetingId}/options",
    complete: { targetingId: targetingIdsLike },
    read: readOptions,
  },
  {
    name: "targeting-options-part",
    title: "Further options of a targeting",
    description:
      "A later part of the options of a targeting, from a given position. The previous part ends with this address.",
    uriTemplate: "targeting://targetings/{targetingId}/options/{from}",
    complete: { targetingId: targetingIdsLike },
    read: readOptions,
  },
];

const reads = () => import("../tools/run-files.ts");

/** The stored data of a run, as resources. A long one has parts: each names the address of the next. */
const IN_PARTS = [
  {
    part: "results",
    mimeType: NDJSON,
    title: "Results of a run",
    description:
      "Every item of a run with how it ended, one JSON object a line. A last line with `next` names the next part.",
    further: {
      title: "Further results of a run",
      description: "A later part of the results of a run, from a given item. The previous part ends with this address.",
    },
  },
  {
    part: "removed",
    mimeType: NDJSON,
    title: "What a run removed",
    description: "What a run deleted or removed, one JSON object a line, stored so that an undo can restore it.",
    further: {
      title: "More of what a run removed",
      description: "A later part of what a run removed, from a given byte. The previous part ends with this address.",
    },
  },
  {
    part: "not-removed",
    mimeType: NDJSON,
    title: "What a run did not remove",
    description:
      "What a run planned to delete or remove, but did not or may not have, one JSON object a line. " +
      '`removed` is "no" or "unknown".',
    further: {
      title: "More of what a run did not remove",
      description:
        "A later part of what a run did not remove, from a given byte. The previous part ends with this address.",
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
      description: "A later part of the rows that failed, from a given byte. The previous part ends with this address.",
    },
  },
] as const;

const RESOURCES: readonly ResourceDefinition[] = [
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
    description:
      "The complete plan of a desired state or of an undo, in the form that targeting-mcp plan --json prints.",
    uriTemplate: "targeting://runs/{runId}/plan",
    complete: { runId: runsLike },
    read: async ({ runId = "" }, context) =>
      content("application/json", await (await reads()).readPlanned(runId, context)),
  },
  ...SUITE_RESOURCES,
  ...TARGETING_RESOURCES,
  ...SPEC_RESOURCES,
];

export function registerResources(
  server: McpServer,
  context: () => Promise<ResourceContext>,
  redactor: Redactor,
): void {
  for (const { name, title, description, uriTemplate, read, list, complete = {}, cacheHint } of RESOURCES) {
    const about = { title, description, ...(cacheHint && { cacheHint }) };
    const answer = async (uri: URL, variables: Readonly<Record<string, string | string[]>>) => {
      const given = Object.fromEntries(Object.entries(variables).map(([key, value]) => [key, String(value)]));
      const content = await read(given, await context());
      if (content === undefined)
        throw new ResourceNotFoundError(
          uri.href,
          `There is no resource at ${uri.href}. Check the ID; runs and suites of other callers are not visible.`,
        );
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

async function targetingIdsLike(typed: string, { memory }: Pick<ToolServices, "memory">): Promise<string[]> {
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

async function suitesLike(
  typed: string,
  { suites, caller }: Pick<ToolServices, "suites"> & { readonly caller: string },
): Promise<string[]> {
  const known = (await suites.list(caller)).map(({ suiteId }) => suiteId);
  return matching(typed, known);
}
