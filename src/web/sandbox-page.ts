import { randomBytes } from "node:crypto";
import * as z from "zod";
import type { EventSuite } from "../events/suites/suite.ts";
import { reset, resetSchema } from "../sandbox/control-plane.ts";
import { takeFromPage } from "../sandbox/event-endpoint.ts";
import { BUILT_IN_KEYS } from "../sandbox/keys.ts";
import type { World } from "../sandbox/world.ts";
import {
  bodyOf,
  dataAnswer,
  fileAnswer,
  pageAsset,
  pageDocument,
  refusalAnswer,
  rejectForeignPost,
  rejectForeignScheme,
} from "./answers.ts";
import { eventDetail, eventFigures, type Figures, matchingEvents, rowsAfter } from "./event-figures.ts";
import { eventStream, type StreamSource } from "./event-stream.ts";
import { addFault, faultsMessage } from "./faults.ts";
import type { CoverageRow, EventsMessage, SandboxMessage, TestFormat } from "./sandbox-wire.ts";
import { pageSessions } from "./sessions.ts";
import { contextIdsOf, findMatchingOptions, optionsIn, type Part, targetingSizes } from "./tree.ts";
import { type Hello, type Message, PATHS } from "./wire.ts";

const ROWS = 150;

const newEvent = z.strictObject({ text: z.string() });

/**
 * Returns the handler of a sandbox's page at `url`: its events, targetings and faults. The caller has checked that
 * requests come from this machine. Loading the page opens a session without a link, because the data is not real.
 */
export function sandboxPage(world: World, url: string): (request: Request) => Promise<Response> {
  const sessions = pageSessions({ person: z.literal("local") });
  const figures = eventFigures(world.events, world.sources.now);
  const updates = sandboxUpdates(world, figures);
  const hello: Hello = {
    kind: "hello",
    views: ["events", "targetings", "faults"],
    environment: { kind: "sandbox", address: new URL(url).host },
    returns: true,
  };
  const [appKey] = BUILT_IN_KEYS.app;
  const first = [hello, { kind: "sandbox", address: url, appKey } satisfies SandboxMessage];
  return async (request) => {
    const { method } = request;
    const address = new URL(request.url);
    const isRead = method === "GET" || method === "HEAD";
    if (address.pathname === PATHS.page) {
      if (!isRead) return notAllowed();
      return pageDocument({ session: sessions.open("local") }, { isHead: method === "HEAD" });
    }
    const asset = isRead ? await pageAsset(address.pathname) : undefined;
    if (asset !== undefined) return asset;
    if ((await sessions.of(request)) === undefined) return refusalAnswer(401, `open ${url}/ first`);
    if (method === "POST")
      return (
        rejectForeignScheme(request, url) ?? rejectForeignPost(request) ?? change(world, address.pathname, request)
      );
    if (!isRead) return notAllowed();
    if (address.pathname === PATHS.stream) return eventStream(request, updates, { first });
    return data({ world, figures, url }, address);
  };
}

/** Executes a POST of the page. */
async function change(world: World, path: string, request: Request): Promise<Response> {
  const body = await bodyOf(request);
  if (body instanceof Response) return body;
  if (path === PATHS.reset) {
    const only = resetSchema.safeParse(body.data);
    if (!only.success) return refusalAnswer(400, "there is no such thing to reset");
    reset(world, only.data.only);
    return dataAnswer({});
  }
  if (path === PATHS.faults) {
    const wrong = addFault(world.faults, body.data);
    return wrong === undefined ? dataAnswer(faultsMessage(world.faults)) : refusalAnswer(400, wrong);
  }
  if (path === PATHS.events) {
    const event = newEvent.safeParse(body.data);
    if (!event.success) return refusalAnswer(400, "There is no event in this request.");
    takeFromPage(world, event.data.text);
    return dataAnswer({});
  }
  const [, id] = new RegExp(`^${PATHS.faults}/(\\d{1,15})/remove$`).exec(path) ?? [];
  if (id === undefined) return nothingHere();
  return world.faults.remove(Number(id)) ? dataAnswer({}) : refusalAnswer(404, "this fault is no longer there");
}

/** The sources of the page's data. */
interface Read {
  readonly world: World;
  readonly figures: Figures;
  readonly url: string;
}

/** Answers the page's requests for data, except the stream. */
async function data({ world, figures, url }: Read, { pathname, searchParams: query }: URL): Promise<Response> {
  if (pathname === PATHS.events) return eventList({ world, figures }, query);
  if (pathname === PATHS.eventTests) {
    const format = query.get("format") ?? "";
    if (!isTestFormat(format)) return nothingHere();
    const file = await testsForUnseen(figures.now().coverage, format, url);
    if (file === undefined) return refusalAnswer(404, "Every event and every parameter has arrived.");
    return fileAnswer(file.fileName, file.text);
  }
  if (pathname.startsWith(`${PATHS.events}/`)) {
    const detail = eventDetail(world.events, Number(pathname.slice(PATHS.events.length + 1)), figures);
    return detail === undefined ? refusalAnswer(404, "This event is not stored any more.") : dataAnswer(detail);
  }
  const part: Part = { from: countIn(query, "from", 0), limit: countIn(query, "limit", ROWS) };
  if (pathname === PATHS.targetings) return dataAnswer(findMatchingOptions(world, query.get("search") ?? "", part));
  if (!pathname.startsWith(`${PATHS.targetings}/`)) return nothingHere();
  const targetingId = pathname.slice(PATHS.targetings.length + 1);
  const option = query.get("option");
  const list =
    option === null
      ? optionsIn(world, targetingId, query.get("parent") ?? undefined, part)
      : contextIdsOf(world, targetingId, option);
  return list === undefined ? refusalAnswer(404, "This was deleted meanwhile.") : dataAnswer(list);
}

function eventList({ world, figures }: Pick<Read, "world" | "figures">, query: URLSearchParams): Response {
  const [before, problem] = [query.get("before"), query.get("problem")];
  const wanted = {
    filter: query.get("filter") ?? "",
    verdict: query.get("verdict") ?? undefined,
    ...(problem !== null && { cause: figures.keyOf(Number(problem)) ?? null }),
  };
  return dataAnswer(matchingEvents(world.events, wanted, before === null ? undefined : Number(before)));
}

function countIn(query: URLSearchParams, name: string, otherwise: number): number {
  const given = query.get(name) ?? "";
  return /^\d{1,9}$/.test(given) ? Number(given) : otherwise;
}

function nothingHere(): Response {
  return refusalAnswer(404, "the page has nothing here");
}

function notAllowed(): Response {
  return refusalAnswer(405, "the page is read by GET");
}

/** The position of a page in the updates: the events that it has, and the versions of the other parts. */
interface Position {
  readonly newest: number;
  readonly cleared: number;
  readonly state: number;
  readonly faults: number;
}

/** Returns the updates of a sandbox's page: its events, targetings and faults. */
export function sandboxUpdates(
  world: World,
  figures = eventFigures(world.events, world.sources.now),
): StreamSource<Message> {
  // Positions of an earlier process are not valid here.
  const process = randomBytes(6).toString("hex");
  const targetings = targetingSizes(world);
  const versions = { state: 0, faults: 0 };
  for (const part of ["state", "faults"] as const) {
    world.watch(part, () => {
      versions[part] += 1;
    });
  }
  const eventsFrom = ({ newest, cleared }: Position): EventsMessage => ({
    kind: "events",
    whole: cleared !== world.events.cleared(),
    events: rowsAfter(world.events, newest),
    counts: world.events.counts(),
    ...figures.now(),
  });
  return {
    since(told) {
      const had = positionOf(told, process);
      const now = { newest: world.events.newest(), cleared: world.events.cleared(), ...versions };
      const messages: Message[] = [];
      if (had.newest !== now.newest || had.cleared !== now.cleared) messages.push(eventsFrom(had));
      if (had.state !== now.state) {
        const sent = { version: now.state, now: world.sources.now() };
        messages.push({ kind: "targetings", targetings: targetings(), ...sent });
      }
      if (had.faults !== now.faults) messages.push(faultsMessage(world.faults));
      return { messages, position: [process, now.newest, now.cleared, now.state, now.faults].join(".") };
    },
    watch(changed) {
      const unwatch = (["state", "events", "faults"] as const).map((part) => world.watch(part, changed));
      return () => {
        for (const end of unwatch) end();
      };
    },
  };
}

function positionOf(told: string | undefined, process: string): Position {
  const [of, ...numbers] = (told ?? "").split(".");
  const [newest = -1, cleared = -1, state = -1, faults = -1] = of === process ? numbers.map(Number) : [];
  return { newest, cleared, state, faults };
}

/** A generated test file. */
interface TestFile {
  readonly fileName: string;
  readonly text: string;
}

/** Returns whether a text is the name of a test format. */
export function isTestFormat(format: string): format is TestFormat {
  return ["vitest", "playwright", "curl", "json"].includes(format);
}

/**
 * Generates tests for events and parameters that have not arrived: all cases for missing events, and the full event
 * if only a parameter is missing. Returns undefined if everything has arrived. `sandboxUrl` is the address to which a
 * page under test sends its events.
 */
export async function testsForUnseen(
  coverage: readonly CoverageRow[],
  format: TestFormat,
  sandboxUrl: string,
): Promise<TestFile | undefined> {
  const never = coverage.filter(({ count }) => count === 0).map(({ name }) => name);
  const partly = coverage
    .filter(({ count, parameters }) => count > 0 && parameters.some((parameter) => parameter.count === 0))
    .map(({ name }) => name);
  if (never.length + partly.length === 0) return undefined;
  // Loaded late: few people generate tests.
  const [{ generateEventTests }, { emitSuite, SUITE_FORMATS }] = await Promise.all([
    import("../events/suites/generate.ts"),
    import("../events/suites/emit.ts"),
  ]);
  const whole = generateEventTests({ eventNames: never });
  const full = generateEventTests({ eventNames: partly, kinds: ["full"] });
  const suite: EventSuite = { ...whole, cases: [...whole.cases, ...full.cases] };
  return { fileName: SUITE_FORMATS[format].fileName, text: await emitSuite(suite, format, sandboxUrl) };
}
