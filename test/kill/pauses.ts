import { setTimeout as delay } from "node:timers/promises";
import * as z from "zod";
import { startSandbox } from "../../src/sandbox/index.ts";
import { type Random, randomFrom } from "../faults/random.ts";
import { COMMAND, OPENING, startNode, toolCall } from "../support/server-process.ts";
import { type LeaseName, placeInFiles, type SharedPlace } from "./holders.ts";
import { page, type Result, wrongEvents, wrongOptions } from "./truth.ts";
import { type HeldLease, openWatchingGate, type Watcher, watcherOf } from "./watching-gate.ts";

/**
 * `run`: whether the other process executes another run or continues the same one while the first process is suspended.
 * `moment`: when the first process is suspended: anywhere, while it waits because the service is busy, or while it
 * sends a large body.
 */
export const PAUSES = [
  { run: "another", moment: "anywhere" },
  { run: "another", moment: "busy" },
  { run: "another", moment: "upload" },
  { run: "same", moment: "anywhere" },
  { run: "same", moment: "busy" },
  { run: "same", moment: "upload" },
  { run: "events", moment: "anywhere" },
] as const;
type PauseKind = (typeof PAUSES)[number];

/** The result of a pause. */
interface Paused {
  /** Writes of the suspended process that arrived after the first write of the new lease holder. */
  readonly late: readonly string[];
  /** Whatever was lost, done twice or reported wrongly. */
  readonly wrong: readonly string[];
  /** Whether the other process took over while the first one was suspended. */
  readonly takenOver: boolean;
}

const answered = z.looseObject({ result: z.looseObject({ structuredContent: z.looseObject({}).optional() }) });
const report = z.looseObject({ runId: z.string(), status: z.string(), counts: z.record(z.string(), z.number()) });
const targetings = z.object({ results: z.array(z.object({ data: z.object({ _id: z.string() }) })) });

/** The project of the two processes. */
const PROJECT = "paused";
const KEYS = { "x-api-key": "sandbox-key", "content-type": "application/json" };
/**
 * These need ten requests. Together, the requests of both processes take longer than the pause lasts after the lease
 * has ended.
 */
const GROUPS = 1500;
const EVENTS = 700;
/** How long a request takes, in milliseconds. */
const REQUEST_MS = { events: 250, others: 600 };
const LONGEST_RUN_MS = 180_000;
/** Longer than a lease lasts: 10 s in files, 6 s in a database. */
const PAUSE_MS = { least: 10_500, most: 15_000 };

/** How many pauses of which kinds are made, and how many at the same time. */
interface Schedule {
  readonly kinds: readonly PauseKind[];
  readonly count: number;
  readonly atOnce: number;
  /** Opens the place where both processes store their runs; absent: in files. */
  readonly openPlace?: () => Promise<SharedPlace>;
}

/**
 * Suspends many processes, one after another and at the same time. Returns what was wrong, and how often the other
 * process took over.
 */
export async function pauseAll({ kinds, count, atOnce, openPlace }: Schedule) {
  const seed = Number(process.env.TARGETING_MCP_TEST_SEED ?? Date.now() % 1_000_000);
  const ends: string[] = [];
  let next = 0;
  let takenOver = 0;
  const pauseInTurn = async (): Promise<void> => {
    while (next < count) {
      const number = next;
      next += 1;
      const kind = kinds[number % kinds.length] ?? PAUSES[0];
      const about = `seed ${seed + number}, ${kind.run}, ${kind.moment}`;
      try {
        const { late, wrong, takenOver: isTakenOver } = await pauseOnce(kind, seed + number, openPlace);
        takenOver += isTakenOver ? 1 : 0;
        const shown = [...new Set([...late, ...wrong])].slice(0, 3);
        const told = `${about}: ${late.length} late, ${wrong.length} wrong ${shown.join("; ")}`;
        process.stdout.write(`${told}\n`);
        if (shown.length > 0) ends.push(told);
      } catch (thrown) {
        ends.push(`${about}: ${thrown instanceof Error ? thrown.stack : String(thrown)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, pauseInTurn));
  process.stdout.write(`${count} pauses from seed ${seed} on; the other process took over in ${takenOver} of them\n`);
  return { ends, takenOver };
}

/**
 * Suspends one of two processes for longer than its lease lasts, at a random moment, and checks the result. `seed`
 * makes the moment repeatable. `openPlace` opens the place where both processes store their runs.
 */
async function pauseOnce(
  { run, moment }: PauseKind,
  seed: number,
  openPlace = async () => placeInFiles(PROJECT),
): Promise<Paused> {
  const random = randomFrom(seed);
  const sandbox = await startSandbox({ lockWaitMs: 0 });
  const place = await openPlace();
  const held = () => heldIn(place, run);
  const watcher = watcherOf(held);
  const requestMs = run === "events" ? REQUEST_MS.events : REQUEST_MS.others;
  const beforeMs = random.below(requestMs);
  const pace = { beforeMs, afterMs: requestMs - beforeMs };
  const gates = await Promise.all([1, 2].map(() => openWatchingGate(sandbox.url, watcher, pace)));
  const servers = gates.map((gate) => {
    const server = serverAt(gate.url, place.settings);
    gate.pid = server.pid;
    return server;
  });
  const [first, second] = servers;
  if (first === undefined || second === undefined) throw new RangeError("there are two servers");
  try {
    const targetingId = await newTargeting(sandbox.url);
    const call = (who: string) => (run === "events" ? eventCall() : groupCall(targetingId, who, moment));
    for (const server of servers) await untilAnswered(server);
    const mine = accepted(() => first.call(call("First")));
    const stopped = stopAt(moment, { random, watcher, pid: first.pid, sandbox: sandbox.url });
    // A refused call sends nothing, so the moment to suspend the process would never come.
    await Promise.race([stopped, mine.then((told) => (told === undefined ? Promise.reject(REFUSED) : stopped))]);
    await delay(50);
    const before = new Set(watcher.written);
    const pauseMs = random.between(PAUSE_MS.least, PAUSE_MS.most);
    const awake = delay(pauseMs).then(() => process.kill(first.pid, "SIGCONT"));
    // A busy machine can refuse the first call after its run was stored. The run of the accepted call is the newest.
    const runId = (await place.runs()).toSorted().at(-1) ?? "";
    const theirs = run === "another" ? second.call(call("Second")) : takeOver(second, runId, place, awake);
    await awake;
    const takenOver = (await held()).some((holder) => holder.pid === second.pid) || watcher.written.size > before.size;
    const told = await Promise.all([mine, theirs]);
    const ids = [...new Set([runId, ...told.flatMap((one) => (one === undefined ? [] : [one.runId]))])];
    const wrong: string[] = [];
    for (const id of ids) wrong.push(...(await wrongWith(id, servers, sandbox.url, run === "events")));
    return { late: watcher.late, wrong, takenOver };
  } finally {
    for (const server of servers) await server.end();
    for (const gate of gates) gate.close();
    await sandbox.close();
    await place.close();
  }
}

/**
 * Returns the holders of the leases that allow writes. If each process has its own run, this is only the project's
 * lease.
 */
async function heldIn(place: SharedPlace, run: PauseKind["run"]): Promise<readonly HeldLease[]> {
  const ofRuns = run === "another" ? [] : (await place.runs()).map((runId): LeaseName => `run ${runId}`);
  const names: readonly LeaseName[] = run === "events" ? ofRuns : ["project", ...ofRuns];
  const holders = await Promise.all(names.map(async (name) => ({ name, holder: await place.holder(name) })));
  return holders.flatMap(({ name, holder }) => (holder === undefined ? [] : [{ name, ...holder }]));
}

/** Suspends a process when the moment has come. */
async function stopAt(
  moment: PauseKind["moment"],
  { random, watcher, pid, sandbox }: { random: Random; watcher: Watcher; pid: number; sandbox: string },
): Promise<void> {
  const stop = (): void => void process.kill(pid, "SIGSTOP");
  const nth = random.between(1, 4);
  await new Promise<void>((resolve) => {
    // At most 90 % of the body: the rest arrives as one piece, and the process must be suspended before it does.
    const share = 0.9 * random.next();
    watcher.onBytes = (from, write, arrived, total) => {
      if (moment !== "upload" || from !== pid || write < nth || arrived < share * total) return;
      watcher.onBytes = () => {};
      stop();
      resolve();
    };
    watcher.onWrite = (from, write) => {
      if (from !== pid || write < nth || moment === "upload") return;
      watcher.onWrite = () => {};
      resolve();
    };
  });
  if (moment === "upload") return;
  if (moment === "busy") await post(sandbox, "/_sandbox/lock", { ms: 3000 });
  await delay(random.below(moment === "busy" ? 2000 : 3000));
  stop();
}

/** Asks a process repeatedly to continue a run, until the process does so or the run has ended. */
async function takeOver(server: Server, runId: string, place: SharedPlace, awake: Promise<unknown>) {
  let over = false;
  void awake.then(() => {
    over = true;
  });
  for (;;) {
    const told = report.safeParse(await server.ask("resume_run", { runId })).data;
    // If an answer has no report of the run, the call is repeated. The store may, for example, not have answered in
    // time.
    if (told !== undefined && (over || (await place.holder(`run ${runId}`))?.pid === server.pid)) return told;
    await delay(200);
  }
}

/** Waits until a process and its store answer, so that the start of the process does not delay later calls. */
async function untilAnswered(server: Server): Promise<void> {
  while (unavailable.safeParse(await server.ask("get_run", {})).success) await delay(200);
}

function groupCall(targetingId: string, who: string, moment: PauseKind["moment"]) {
  // Each request holds 150 groups, or 10,000 Context IDs (300 KB or more).
  const large = moment === "upload";
  const items = Array.from({ length: large ? 36 : GROUPS }, (_, number) => ({
    name: `${who} ${number}`,
    ...(!large && { type: "collection" }),
    contexts: Array.from({ length: large ? 5000 : 1 }, (_, id) =>
      `${who} ${number} ${id} `.padEnd(large ? 60 : 0, "x"),
    ),
  }));
  return {
    tool: "bulk_add_options",
    args: { targetingId, items: large && who === "Second" ? items.slice(0, 4) : items },
  };
}

function eventCall() {
  const items = Array.from({ length: EVENTS }, (_, number) => ({ uid: `user-${number}`, eventName: "app_open" }));
  return { tool: "track_events", args: { events: items } };
}

async function newTargeting(sandbox: string): Promise<string> {
  const made = await post(sandbox, "/context-targeting/bulk/create", { items: [{ name: "Paused" }] });
  return targetings
    .parse(made)
    .results.map(({ data }) => data._id)
    .join();
}

async function post(sandbox: string, path: string, body: unknown): Promise<unknown> {
  return (await fetch(`${sandbox}${path}`, { method: "POST", headers: KEYS, body: JSON.stringify(body) })).json();
}

/** A call of a tool that writes. */
interface Call {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
}

const REFUSED = new Error("the call of the process that is to stand still was refused");

/**
 * Makes a call again while it is refused, which sends nothing. On a busy machine, a store can answer too late for the
 * first call.
 */
async function accepted<Told>(make: () => Promise<Told | undefined>, tries = 4): Promise<Told | undefined> {
  const told = await make();
  return told === undefined && tries > 0 ? accepted(make, tries - 1) : told;
}

type Server = ReturnType<typeof serverAt>;

function serverAt(url: string, settings: Readonly<Record<string, string>>) {
  const server = startNode([COMMAND], {
    TARGETING_API_URL: url,
    TARGETING_API_KEY: "sandbox-key",
    EVENT_API_URL: url,
    EVENT_APP_KEY: "sandbox-app-key",
    TARGETING_MCP_MODE: "live",
    TARGETING_MCP_PROJECT: PROJECT,
    ...settings,
    TARGETING_MCP_LOG_LEVEL: "silent",
    TARGETING_MCP_WAIT_MS: "30000",
  });
  for (const message of OPENING) server.send(message);
  let calls = 0;
  const ask = async (tool: string, args: Readonly<Record<string, unknown>>): Promise<unknown> => {
    calls += 1;
    server.send(toolCall(`call ${calls}`, tool, args));
    const answer = await server.answer(`call ${calls}`);
    const structured = answered.safeParse(answer).data?.result.structuredContent;
    if (structured === undefined) throw new Error(`${tool} was answered with ${JSON.stringify(answer).slice(0, 500)}`);
    return structured;
  };
  return {
    pid: server.child.pid ?? 0,
    ask,
    /** Calls a tool that writes. Returns the report of its run; undefined if the answer has none. */
    call: async ({ tool, args }: Call) => report.safeParse(await ask(tool, args)).data,
    end: async () => {
      server.child.kill("SIGCONT");
      server.child.kill("SIGKILL");
      await server.exited;
    },
  };
}

/**
 * Waits until a run has stopped. Compares the reports of all processes with the data of the service. Returns
 * differences.
 */
async function wrongWith(runId: string, servers: readonly Server[], sandbox: string, isEvents: boolean) {
  const wrong: string[] = [];
  const said: string[] = [];
  for (const server of servers) {
    const { status, counts, failures } = await atRest(server, runId);
    const expected = isEvents && (counts.unknown ?? 0) > 0 ? "partial" : "succeeded";
    said.push(JSON.stringify({ status, counts }));
    if (status !== expected) wrong.push(`${server.pid} says of ${runId} ${said.at(-1)}: ${JSON.stringify(failures)}`);
  }
  if (new Set(said).size > 1) wrong.push(`they say different things of ${runId}: ${said.join(" and ")}`);
  const results: Result[] = [];
  const [stopped] = servers;
  for (let cursor: string | undefined; stopped !== undefined; ) {
    const next = page.parse(await stopped.ask("get_run", { runId, limit: 1000, ...(cursor && { cursor }) }));
    results.push(...next.results);
    cursor = next.cursor;
    if (cursor === undefined) break;
  }
  wrong.push(...(isEvents ? await wrongEvents(results, sandbox) : await wrongOptions(results, sandbox)));
  return wrong;
}

async function atRest(server: Server, runId: string) {
  const until = Date.now() + LONGEST_RUN_MS;
  for (let waitMs = 1000; ; waitMs = 5000) {
    const answer = await server.ask("get_run", { runId, waitMs });
    const told = report.safeParse(answer).data;
    // A process that was suspended until now may say that its store is unavailable, because the store has not answered
    // it for so long.
    const isOver = told === undefined ? !unavailable.safeParse(answer).success : told.status !== "running";
    if (isOver || Date.now() >= until) return report.parse(answer);
  }
}

const unavailable = z.object({ error: z.object({ errorCode: z.literal("STORE_UNAVAILABLE") }) });
