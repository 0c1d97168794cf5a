import type { Run } from "../runs/kind.ts";
import { DamagedRunError } from "../runs/store.ts";
import { planTextOf, removedLines, resultLine } from "../tools/run-files.ts";
import type { ResourceContext } from "./resource-definition.ts";

/** Messages over stdio must stay well below 10 MiB: longer results are read in parts. */
const PART_CHARACTERS = 4_000_000;
const NEWLINE = 0x0a;

/** A run of the caller. Of a damaged one what was taken away is still served: all of it, since its journal is lost. */
async function ownOrDamaged(runId: string, { runs, caller }: ResourceContext): Promise<Run | "damaged" | undefined> {
  try {
    return await runs.findOwn(runId, caller);
  } catch (thrown) {
    if (thrown instanceof DamagedRunError) return "damaged";
    throw thrown;
  }
}

/**
 * The results of a run from an object on, one JSON object a line, or what is kept of it beside its journal, from a byte
 * on; cut behind a line where it is too long for one message. Undefined where there is no such run of the caller.
 */
export async function readPart(
  runId: string,
  part: "results" | "removed" | "not-removed" | "rejects",
  from: number,
  context: ResourceContext,
): Promise<string | undefined> {
  if (!Number.isSafeInteger(from) || from < 0) return undefined;
  const { runs } = context;
  const next = (end: number): string => nextLine(runId, part, end);
  const run = part === "removed" ? await ownOrDamaged(runId, context) : await runs.findOwn(runId, context.caller);
  if (run === undefined) return undefined;
  if (run === "damaged") return keptFrom(runs.part(runId, "removed")(), from, next);
  if (part === "results") return resultsFrom(run, from);
  return keptFrom(part === "rejects" ? runs.part(runId, part)() : removedLines(run, part, context), from, next);
}

async function keptFrom(
  content: AsyncIterable<Uint8Array>,
  from: number,
  next: (end: number) => string,
): Promise<string> {
  const chunks: Uint8Array[] = [];
  let passed = 0;
  let size = 0;
  for await (const chunk of content) {
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
  return `${bytes.subarray(0, end).toString("utf8")}${next(from + end)}`;
}

function resultsFrom(run: Run, from: number): string {
  const lines: string[] = [];
  let size = 0;
  for (let object = from; object < run.state.objects.length; object += 1) {
    if (size > PART_CHARACTERS) {
      lines.push(nextLine(run.header.runId, "results", object));
      break;
    }
    const line = resultLine(run, object);
    lines.push(line);
    size += line.length;
  }
  return lines.join("");
}

function nextLine(runId: string, part: string, from: number): string {
  return `${JSON.stringify({ next: `targeting://runs/${runId}/${part}/${from}` })}\n`;
}

/** The plan of a planned run as JSON; undefined where there is no such run of the caller. */
export async function readPlanned(runId: string, context: ResourceContext): Promise<string | undefined> {
  const run = await context.runs.findOwn(runId, context.caller);
  return run && planTextOf(run, context);
}
