import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import * as z from "zod";
import { startSandbox } from "../../src/sandbox/index.ts";
import { CALLS, FILES, type Known, type TypicalCall } from "./calls.ts";

const COMMAND = join(import.meta.dirname, "..", "..", "dist", "main.js");

const answer = z.object({
  content: z.array(z.looseObject({ text: z.string().optional() })),
  structuredContent: z.looseObject({}).optional(),
});
const named = z.looseObject({ _id: z.string(), name: z.string() });
const told = z.looseObject({
  runId: z.string().optional(),
  results: z.array(z.looseObject({})).default([]),
  confirmation: z.looseObject({ token: z.string() }).optional(),
});

/** An answer as agents read it, and the call that it answers. */
export interface Snapshot {
  readonly wish: string;
  readonly tool: string;
  readonly given: string;
  readonly text: string;
}

/**
 * Makes the calls of one session with the built command over stdio: against an empty sandbox of its own, or against the
 * embedded one with the sample data.
 */
export async function takeSnapshots(
  calls: readonly TypicalCall[] = CALLS,
  seed: "none" | "sample" = "none",
): Promise<readonly Snapshot[]> {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-answers-"));
  const sandbox = await startSandbox();
  const client = new Client({ name: "answers", version: "0" });
  try {
    for (const [name, text] of Object.entries(FILES)) await writeFile(join(folder, name), text);
    const env = {
      PATH: process.env.PATH ?? "",
      ...(seed === "none" ? { TARGETING_MCP_SANDBOX_URL: sandbox.url } : { TARGETING_MCP_SANDBOX_SEED: seed }),
      TARGETING_MCP_STATE_DIR: join(folder, "state"),
      TARGETING_MCP_ALLOWED_DIRS: folder,
      TARGETING_MCP_LOG_LEVEL: "silent",
      // So long a service may be locked before the answer says so.
      TARGETING_MCP_RETRY_BUDGET_MS: "1500",
    };
    await client.connect(new StdioClientTransport({ command: process.execPath, args: [COMMAND], env }));
    return await session(client, calls, sandbox.url, folder);
  } finally {
    await client.close();
    await sandbox.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function session(
  client: Client,
  calls: readonly TypicalCall[],
  url: string,
  folder: string,
): Promise<readonly Snapshot[]> {
  const ids = new Map<string, string>();
  let runId = "";
  let token = "";
  const known: Known = {
    id: (name) => ids.get(name) ?? name,
    runId: () => runId,
    token: () => token,
    file: (name) => join(folder, name),
  };
  const steady = steadily(folder);
  const snapshots: Snapshot[] = [];
  for (const { wish, tool, given, before } of calls) {
    if (before !== undefined) {
      await fetch(`${url}/_sandbox${before[0]}`, { method: "POST", body: JSON.stringify(before[1]) });
    }
    const args = { ...given(known) };
    const { content, structuredContent } = answer.parse(await client.callTool({ name: tool, arguments: args }));
    const { results, confirmation, ...rest } = told.parse(structuredContent ?? {});
    for (const row of results) {
      const { data } = named.safeParse(row);
      if (data !== undefined) ids.set(data.name, data._id);
    }
    runId = rest.runId ?? runId;
    token = confirmation?.token ?? token;
    const text = content.map((part) => part.text ?? "").join("\n");
    snapshots.push({ wish, tool, given: steady(summaryAtRest(JSON.stringify(args))), text: steady(text) });
  }
  return snapshots;
}

const LONGEST_GIVEN = 600;

/** Arguments as the page shows them. */
function summaryAtRest(given: string): string {
  return given.length <= LONGEST_GIVEN ? given : `${given.slice(0, LONGEST_GIVEN)}…`;
}

const MOVING: readonly (readonly [RegExp, string])[] = [
  [/<(\/?)data-[0-9a-f]{8}>/g, "<$1data>"],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, "TIME"],
  [/until \d{4}-\d\d-\d\d/g, "until DATE"],
  [/(?<![\w-])[\w-]{40}(?![\w-])/g, "TOKEN"],
  [/[\d.]+ s waited/g, "N s waited"],
  [/Requests sent: \d+ \((\d+) planned\), \d+ of them again/g, "Requests sent: N ($1 planned), N of them again"],
  [/tried \d+ times, waiting \d+ s/g, "tried N times, waiting N s"],
  [/waiting \d+ s/g, "waiting N s"],
  [/"[0-9a-f]{64}"/g, '"HASH"'],
  [/cursor [\w-]{6,}/g, "cursor CURSOR"],
];

/** Makes texts of one session the same each time: IDs are numbered as they come, times and tokens are named. */
function steadily(folder: string): (text: string) => string {
  const ids = new Map<string, string>();
  const numbered = (id: string): string => {
    const known = ids.get(id) ?? `ID${ids.size + 1}`;
    ids.set(id, known);
    return known;
  };
  return (text) => {
    let steady = inShortLists(text)
      .replaceAll(`${folder}/`, "")
      .replaceAll(JSON.stringify(`${folder}/`).slice(1, -1), "");
    steady = steady.replace(/\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b/g, numbered);
    for (const [pattern, words] of MOVING) steady = steady.replace(pattern, words);
    return steady;
  };
}

const MOST_ROWS = 6;

/** Leaves out the later rows of long lists: how many of them fit an answer depends on the letters of the IDs. */
function inShortLists(text: string): string {
  let rows = 0;
  const lines = text.split("\n").flatMap((line) => {
    rows = /^(?:item|line) [\d,]+: /.test(line) ? rows + 1 : 0;
    if (rows <= MOST_ROWS) return [line];
    return rows === MOST_ROWS + 1 ? ["(… further rows)"] : [];
  });
  return lines.join("\n").replace(/\([\d,]+ more, all at/g, "(N more, all at");
}

const LONGEST_LINE = 400;

/** The page with all snapshots. */
export function answersPage(snapshots: readonly Snapshot[]): string {
  const parts = snapshots.map(
    ({ wish, tool, given, text }, at) =>
      `## ${at + 1}. ${wish}\n\n\`${tool}\` with \`${cut(given)}\`\n\n\`\`\`text\n${text}\n\`\`\`\n`,
  );
  return [
    "# Typical answers\n",
    "Thirty calls of one session against the sandbox, each with its answer as agents read it. `npm run docs` makes this page; IDs, times and tokens are replaced by names.\n",
    ...parts,
  ].join("\n");
}

function cut(line: string): string {
  return line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line;
}
