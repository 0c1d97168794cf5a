import { existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import * as z from "zod";
import { toolCall } from "../support/server-process.ts";
import { answer, linesAt, type Report, type Server, started, tool } from "./deadly-server.ts";
import type { Death } from "./death.ts";
import { type EventService, startEventService } from "./event-service.ts";
import { runsIn } from "./journals.ts";

/** A call that sends events. Each event is of another user: `person-N` for the Nth event. */
export interface EventScenario {
  readonly name: string;
  readonly tool: "track_events" | "track_event";
  readonly events: number;
  /** The indexes of events that are never sent, because the service would ignore them. */
  readonly wrong: readonly number[];
  readonly onUnknown: "report" | "resend";
  readonly asFile: boolean;
}

/** How a new process continues the interrupted run. */
export type TakenUpBy = "resume_run" | "the same call";

/**
 * The server has at most IN_FLIGHT requests in progress, and its journal announces at most GROUP events in addition.
 */
const IN_FLIGHT = 16;
const GROUP = 100;

const row = z.looseObject({ index: z.number(), outcome: z.string() });

/**
 * Kills a real process while it sends events. A new process then continues the run, and its report is compared with
 * what the service received. Returns false if all events were sent before the process was killed.
 */
export async function dieSending(scenario: EventScenario, death: Death, by: TakenUpBy): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-kill-"));
  const runs = join(folder, "state", "runs");
  const unannounced: string[] = [];
  let dying: Server | undefined;
  const service = await startEventService({
    deadly: death.at === "request" ? death.request : undefined,
    onArrival: (uid) => {
      if (!announcedIn(runs).has(placeOf(uid))) unannounced.push(uid);
    },
    kill: async () => {
      dying?.child.kill("SIGKILL");
      await dying?.exited;
    },
  });
  const environment = {
    EVENT_API_URL: service.url,
    EVENT_APP_KEY: "sandbox-app-key",
    TARGETING_MCP_MODE: "live",
    TARGETING_MCP_STATE_DIR: join(folder, "state"),
    TARGETING_MCP_ALLOWED_DIRS: folder,
    TARGETING_MCP_LOG_LEVEL: "silent",
  };
  const args = await argumentsOf(scenario, folder);
  const deadly = death.at === "operation" || death.at === "line" ? { DEADLY: `${death.at}:${death.nth}` } : {};
  dying = started({ ...environment, ...deadly });
  dying.send(toolCall("call", scenario.tool, args));
  const first = await Promise.race([answer(dying, "call"), dying.exited.then(() => undefined)]);
  dying.child.stdin.end();
  const isDead = (await dying.exited).signal === "SIGKILL";
  expect(first !== undefined || isDead).toBe(true);

  const next = started(environment);
  const report = await takeUp(next, { scenario, args, by, runs, service });
  await compare(next, { scenario, report, service });
  const sent = total(service);
  const again = await tool(next, "resume_run", { runId: report.runId });
  expect({ ...again, sent: total(service) }).toMatchObject({ status: report.status, counts: report.counts, sent });
  expect(unannounced).toEqual([]);
  const { unknown = 0 } = report.counts;
  // Failed events stay stored, so that they can be shown and sent again.
  expect(peopleIn(join(runs, String(report.runId)))).toBe(scenario.wrong.length + unknown);
  next.child.stdin.end();
  expect(await next.exited).toEqual({ code: 0, signal: null });
  return isDead;
}

async function argumentsOf(
  { tool: name, events, wrong, onUnknown, asFile }: EventScenario,
  folder: string,
): Promise<Readonly<Record<string, unknown>>> {
  const given = Array.from({ length: events }, (_, place) => ({
    uid: `person-${place}`,
    eventName: wrong.includes(place) ? "sign_up" : "app_open",
  }));
  if (name === "track_event") return { ...given[0], onUnknown };
  if (!asFile) return { events: given, onUnknown };
  const file = join(folder, "events.csv");
  await writeFile(file, ["uid,eventName", ...given.map(({ uid, eventName }) => `${uid},${eventName}`)].join("\n"));
  return { file, onUnknown };
}

interface Left {
  readonly scenario: EventScenario;
  readonly args: Readonly<Record<string, unknown>>;
  readonly by: TakenUpBy;
  readonly runs: string;
  readonly service: EventService;
}

/**
 * Continues the stored run. If no run was stored, checks that the server says so and has sent nothing, and makes the
 * call again.
 */
async function takeUp(server: Server, { scenario, args, by, runs, service }: Left): Promise<Report> {
  for (const runId of runsIn(runs)) {
    const found = await tool(server, "get_run", { runId });
    const isOver = found.runId !== undefined && found.status !== "interrupted";
    // After the run has ended, the same call would send the events once more.
    if (by === "resume_run" || isOver) {
      const resumed = await tool(server, "resume_run", { runId });
      if (resumed.runId !== undefined) return resumed;
      expect(JSON.stringify(resumed.refused)).toMatch(/nothing was sent|there is no run/);
    }
  }
  if (by === "resume_run") expect(total(service)).toBe(0);
  return tool(server, scenario.tool, args);
}

interface Ended {
  readonly scenario: EventScenario;
  readonly report: Report;
  readonly service: EventService;
}

/** Checks that each event has exactly one outcome, which agrees with what the service received. */
async function compare(server: Server, { scenario, report, service }: Ended): Promise<void> {
  const { events, wrong, onUnknown } = scenario;
  const rows = (await linesAt(server, `targeting://runs/${report.runId}/results`)).map((line) => row.parse(line));
  expect(report.counts.items).toBe(events);
  expect(rows.map(({ index }) => index)).toEqual(Array.from({ length: events }, (_, place) => place));
  const contradictions = rows.filter(({ index, outcome }) => {
    const times = service.received.get(`person-${index}`) ?? 0;
    if (wrong.includes(index)) return outcome !== "failed" || times > 0;
    if (onUnknown === "resend") return outcome !== "succeeded" || times < 1 || times > 2;
    return outcome === "succeeded" ? times !== 1 : outcome !== "unknown" || times > 1;
  });
  expect(contradictions).toEqual([]);
  const unknown = rows.filter(({ outcome }) => outcome === "unknown").length;
  const { items, pending, ...counts } = report.counts;
  expect({ items, pending, unknown: counts.unknown }).toEqual({ items: events, pending: 0, unknown });
  expect(unknown).toBeLessThanOrEqual(IN_FLIGHT + GROUP);
}

function total({ received }: EventService): number {
  return [...received.values()].reduce((sum, times) => sum + times, 0);
}

function placeOf(uid: string): number {
  return Number(uid.slice("person-".length));
}

/** Returns the indexes of the events that may have been sent, according to the journals. */
function announcedIn(folder: string): ReadonlySet<number> {
  const announced = new Set<number>();
  for (const line of journalLines(folder)) {
    if (!line.startsWith('{"t":"leave"')) continue;
    const { objects } = z.object({ objects: z.array(z.number()) }).parse(JSON.parse(line));
    for (const object of objects) announced.add(object);
  }
  return announced;
}

/** Returns the complete lines of the journals in a folder of runs. */
export function journalLines(folder: string): readonly string[] {
  return runsIn(folder).flatMap((runId) => {
    const file = join(folder, runId, "journal.ndjson");
    return existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : [];
  });
}

/** Returns for how many people the files of a folder contain the identifier as it was sent. */
function peopleIn(folder: string): number {
  const files = readdirSync(folder, { withFileTypes: true }).filter((one) => one.isFile());
  const texts = files.map(({ name }) => readFileSync(join(folder, name), "utf8"));
  return new Set(texts.flatMap((text) => text.match(/person-\d+/g) ?? [])).size;
}
