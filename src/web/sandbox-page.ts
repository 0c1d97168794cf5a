import { randomBytes } from "node:crypto";
import * as z from "zod";
import type { EventSuite } from "../events/suites/suite.ts";
import { cutText } from "../platform/text.ts";
import { takeFromPage } from "../sandbox/apis.ts";
import { BUILT_IN_KEYS } from "../sandbox/callers.ts";
import { reset, resetSchema } from "../sandbox/control-plane.ts";
import { type Fault, type Faults, faultSchema } from "../sandbox/faults.ts";
import type { Project, StoredOption } from "../sandbox/rules/store.ts";
import type { World } from "../sandbox/world.ts";
import { LIMITS } from "../spec/limits.ts";
import { ROUTES } from "../spec/routes.ts";
import { eventDetail, eventFigures, type Figures, matchingEvents, rowsAfter } from "./event-figures.ts";
import { eventStream, type StreamSource, streamLimit } from "./event-stream.ts";
import { type ListPage, pageIn } from "./list-page.ts";
import { dataAnswer, fileAnswer, notRead, orRefused, type PageApp, pageApp, RefusedRequest } from "./page.ts";
import type {
  CoverageRow,
  EventsMessage,
  FaultField,
  FaultKind,
  FaultRow,
  FaultsMessage,
  OptionDetail,
  OptionList,
  OptionRow,
  SandboxMessage,
  TargetingRow,
  TestFormat,
} from "./sandbox-wire.ts";
import { type PageSession, pageSessions } from "./sessions.ts";
import { type Hello, type Message, PATHS } from "./wire.ts";

const newEvent = z.strictObject({ text: z.string() });

/**
 * Returns the request handler for the web page of the sandbox at `url`, with its events, targetings and faults. The
 * caller must have checked that requests come from this machine. The page needs no login, because its data is not real.
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
  const app = pageApp({
    address: url,
    shownAt: [PATHS.page],
    about: () => ({ session: sessions.open("local") }),
    async enter(request) {
      if (new URL(request.url).pathname === PATHS.page) throw notRead();
      return orRefused(await sessions.of(request), `Open ${url}/ in a browser first.`, 401);
    },
  });
  addChanges(app, world);
  addReads(app, { world, figures, url });
  const openStream = streamLimit();
  app.get(PATHS.stream, ({ req }) => {
    const ended = orRefused(openStream("local"), "Too many pages are open. Close some of them.", 503);
    return eventStream(req.raw, updates, { first, ended });
  });
  return async (request) => app.fetch(request);
}

type SandboxApp = PageApp<PageSession<"local">>;

function addChanges(app: SandboxApp, world: World): void {
  app.post(PATHS.reset, ({ var: { posted } }) => {
    const { only } = orRefused(
      resetSchema.safeParse(posted).data,
      "Only these parts can be reset: state, events, requests, faults.",
      400,
    );
    reset(world, only);
    return dataAnswer({});
  });
  app.post(PATHS.faults, ({ var: { posted } }) => {
    const wrong = addFault(world.faults, posted);
    if (wrong !== undefined) throw new RefusedRequest(400, wrong);
    return dataAnswer(faultsMessage(world.faults));
  });
  app.post(`${PATHS.faults}/:id{[0-9]{1,15}}/remove`, ({ req }) => {
    if (!world.faults.remove(Number(req.param("id")))) throw new RefusedRequest(404, "This fault was already removed.");
    return dataAnswer({});
  });
  app.post(PATHS.events, ({ var: { posted } }) => {
    const { text } = orRefused(newEvent.safeParse(posted).data, "There is no event in this request.", 400);
    takeFromPage(world, text);
    return dataAnswer({});
  });
}

interface Read {
  readonly world: World;
  readonly figures: Figures;
  readonly url: string;
}

function addReads(app: SandboxApp, { world, figures, url }: Read): void {
  app.get(PATHS.events, ({ req }) => {
    const { before, problem, filter = "", verdict } = req.query();
    const wanted = { filter, verdict, ...(problem !== undefined && { cause: figures.keyOf(Number(problem)) ?? null }) };
    return dataAnswer(matchingEvents(world.events, wanted, before === undefined ? undefined : Number(before)));
  });
  app.get(PATHS.eventTests, async ({ req }) => {
    const format = req.query("format") ?? "";
    if (!isTestFormat(format)) return orRefused<Response>(undefined);
    const file = await testsForUnseen(figures.now().coverage, format, url);
    const { fileName, text } = orRefused(file, "Every event and every parameter has arrived.");
    return fileAnswer(fileName, text);
  });
  app.get(`${PATHS.events}/:seq`, ({ req }) => {
    const detail = eventDetail(world.events, Number(req.param("seq")), figures);
    return dataAnswer(orRefused(detail, "This event is no longer stored."));
  });
  app.get(PATHS.targetings, ({ req }) => {
    const query = new URL(req.url).searchParams;
    return dataAnswer(findMatchingOptions(world, query.get("search") ?? "", pageIn(query, MAX_ROWS)));
  });
  app.get(`${PATHS.targetings}/:id`, ({ req }) => {
    const { option, parent } = req.query();
    const [id, page] = [req.param("id"), pageIn(new URL(req.url).searchParams, MAX_ROWS)];
    const list = option === undefined ? optionsIn(world, id, parent, page) : contextIdsOf(world, id, option);
    return dataAnswer(orRefused<object>(list, "This targeting, group or option no longer exists."));
  });
}

/** What a page already has: the number of its last event, and the versions of the other parts. */
interface Position {
  readonly newest: number;
  readonly cleared: number;
  readonly state: number;
  readonly faults: number;
}

export function sandboxUpdates(
  world: World,
  figures = eventFigures(world.events, world.sources.now),
): StreamSource<Message> {
  // A random text that is a part of each position. A position with another text comes from an earlier process and is
  // not used.
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

export function isTestFormat(format: string): format is TestFormat {
  return ["vitest", "playwright", "curl", "json"].includes(format);
}

/**
 * Generates a test file for events and parameters that have not arrived: all test cases for an event that is missing,
 * one complete event if only parameters are missing. Undefined if everything has arrived. `sandboxUrl` is the address
 * to which the tested website sends its events.
 */
export async function testsForUnseen(
  coverage: readonly Pick<CoverageRow, "name" | "count" | "parameters">[],
  format: TestFormat,
  sandboxUrl: string,
): Promise<{ readonly fileName: string; readonly text: string } | undefined> {
  const never = coverage.filter(({ count }) => count === 0).map(({ name }) => name);
  const partly = coverage
    .filter(({ count, parameters }) => count > 0 && parameters.some((parameter) => parameter.count === 0))
    .map(({ name }) => name);
  if (never.length + partly.length === 0) return undefined;
  // Imported only when needed, because few people generate tests.
  const [{ generateEventTests }, { emitSuite, SUITE_FORMATS }] = await Promise.all([
    import("../events/suites/generate.ts"),
    import("../events/suites/emit.ts"),
  ]);
  const whole = generateEventTests({ eventNames: never });
  const full = generateEventTests({ eventNames: partly, kinds: ["full"] });
  const suite: EventSuite = { ...whole, cases: [...whole.cases, ...full.cases] };
  return { fileName: SUITE_FORMATS[format].fileName, text: await emitSuite(suite, format, sandboxUrl) };
}

/** The maximum number of rows in one response, of Context IDs of one option, and of characters in a name. */
const MAX_ROWS = 500;
const MAX_CONTEXTS = 1000;
const MAX_LETTERS = 1000;
const cut = (name: string): string => cutText(name, MAX_LETTERS);

/**
 * Returns a function that lists all targetings with their sizes and the time of their last change, if that was after
 * the sandbox was ready. Each call compares the sizes with those of the previous call to notice deletions.
 */
export function targetingSizes(world: World): () => readonly TargetingRow[] {
  const known = new Map<string, { readonly options: number; readonly contexts: number; readonly changedAt: number }>();
  return () => {
    const rows = [...world.projects.values()].flatMap((project) => {
      const sizes = sizesOf(project);
      return [...project.targetings.values()].map(({ _id, name, optionCount: options, createdAt, updatedAt }) => {
        const { contexts = 0, groups = 0, lastAt = 0 } = sizes.get(_id) ?? {};
        const before = known.get(_id);
        const isSmaller = before !== undefined && (options < before.options || contexts < before.contexts);
        const deletedAt = isSmaller ? world.sources.now() : (before?.changedAt ?? 0);
        const changedAt = Math.max(Date.parse(updatedAt), lastAt, deletedAt);
        known.set(_id, { options, contexts, changedAt });
        const row = { _id, name: cut(name), project: cut(project.name), options, groups, contexts };
        return { ...row, ...since({ createdAt: Date.parse(createdAt), changedAt }, world) };
      });
    });
    const ids = new Set(rows.map(({ _id }) => _id));
    for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
    return rows;
  };
}

/** Returns the times of creation and last change. Omits times before the sandbox was ready, which initial data has. */
function since(times: Readonly<Record<"createdAt" | "changedAt", number>>, { readyAt }: World) {
  return Object.fromEntries(Object.entries(times).filter(([, at]) => at > readyAt));
}

/** Returns for each targeting the numbers of Context IDs and groups, and when one of its options was last changed. */
function sizesOf({ options }: Project): ReadonlyMap<string, { contexts: number; groups: number; lastAt: number }> {
  const sizes = new Map<string, { contexts: number; groups: number; lastAt: number }>();
  for (const { targeting, contexts, type, updatedAt } of options.values()) {
    const size = sizes.get(targeting) ?? { contexts: 0, groups: 0, lastAt: 0 };
    size.contexts += contexts.length;
    if (type === "collection") size.groups += 1;
    size.lastAt = Math.max(size.lastAt, Date.parse(updatedAt));
    sizes.set(targeting, size);
  }
  return sizes;
}

/** Returns the options directly below a targeting or group. Undefined if it does not exist. */
export function optionsIn(
  world: World,
  targetingId: string,
  parent: string | undefined,
  { from, limit }: ListPage,
): OptionList | undefined {
  for (const project of world.projects.values()) {
    const targeting = project.targetings.get(targetingId);
    const ids = parent === undefined ? targeting?.topLevel : project.options.get(parent)?.children;
    if (targeting === undefined || ids === undefined) continue;
    const options = ids.page(from, limit).flatMap((id) => project.options.get(id) ?? []);
    return { options: options.map((option) => optionRow(option, project, world)), total: ids.size };
  }
  return undefined;
}

/** Returns an option's first Context IDs in the order in which they were added. Undefined if it does not exist. */
export function contextIdsOf(world: World, targetingId: string, optionId: string): OptionDetail | undefined {
  for (const { options } of world.projects.values()) {
    const option = options.get(optionId);
    if (option === undefined || option.targeting !== targetingId) continue;
    const contextIds = [...option.contexts].slice(0, MAX_CONTEXTS).map(cut);
    return { contextIds, total: option.contexts.length };
  }
  return undefined;
}

/** Returns a page of the options whose name contains the text, ignoring case, or that have it as a Context ID. */
export function findMatchingOptions(world: World, search: string, { from, limit }: ListPage): OptionList {
  const wanted = search.toLowerCase();
  const options: OptionRow[] = [];
  let total = 0;
  for (const project of world.projects.values()) {
    for (const option of project.options.values()) {
      if (!option.name.toLowerCase().includes(wanted) && !option.contexts.includes(search)) continue;
      total += 1;
      if (total <= from || options.length === limit) continue;
      const place = { targeting: option.targeting, group: pathOf(project, option) };
      options.push({ ...optionRow(option, project, world), ...place });
    }
  }
  return { options, total };
}

function pathOf({ targetings, options }: Project, { targeting, parent }: StoredOption): string {
  const names = [targetings.get(targeting)?.name, parent === undefined ? undefined : options.get(parent)?.name];
  return names.flatMap((name) => (name === undefined ? [] : [cut(name)])).join(" / ");
}

function optionRow(option: StoredOption, project: Project, world: World): OptionRow {
  const { _id, name, type, contexts, children, createdAt, updatedAt } = option;
  const isGroup = type === "collection";
  const inside = [...children].flatMap((id) => project.options.get(id) ?? []);
  const isChanged = createdAt !== updatedAt;
  return {
    ...{ _id, name: cut(name), isGroup, contexts: contexts.length, children: children.size },
    ...(isGroup && { contextsInside: inside.reduce((sum, child) => sum + child.contexts.length, 0) }),
    ...since({ createdAt: isChanged ? 0 : Date.parse(createdAt), changedAt: Date.parse(updatedAt) }, world),
  };
}

/** The maximum delay of a fault, and the maximum time after which a fault is removed, in milliseconds. */
const MAX_MS = 600_000;

const applied: FaultField = { name: "applied", label: "After the request was carried out", value: false };
const delay: FaultField = { name: "delayMs", label: "Delay in ms", value: 1000, least: 0, most: MAX_MS };
const retryAfter: FaultField = {
  ...{ name: "retryAfterMs", label: "Retry after, in ms", value: 100 },
  ...{ least: 0, most: LIMITS.retryAfterMs.value },
};

/** The kinds of faults that the sandbox can simulate, each with its own fields (docs/reference/sandbox.md). */
const KINDS = {
  status: {
    says: "answered with an error status",
    fields: [{ name: "status", label: "Status", value: 500, least: 300, most: 599 }, applied],
  },
  reset: { says: "the connection breaks before the answer", fields: [applied] },
  timeout: { says: "never answered", fields: [applied] },
  late: {
    says: "the connection breaks at once, and the write is carried out later",
    fields: [delay, { name: "holdsLock", label: "Hold the write lock until then", value: true }],
  },
  slow: { says: "answered late", fields: [delay] },
  hold: { says: "waits until this fault is removed", fields: [] },
  busy: { says: "refused, since another writer holds the lock", fields: [retryAfter] },
  takeover: {
    says: "another writer takes the lock in the middle of the request",
    fields: [{ name: "from", label: "From item", value: 0, least: 0 }, retryAfter],
  },
  uncatched: {
    says: "items fail with UNCATCHED",
    fields: [{ name: "addApplied", label: "Add the Context IDs before the item fails", value: false }],
  },
} as const satisfies Record<Fault["kind"], Omit<FaultKind, "name">>;

/** The fault that simulates a lock: how many milliseconds it lasts, and how many write requests it refuses at most. */
const LOCK_MS = 5000;
const LOCKED_WRITES = 1_000_000;

/** The most common faults. */
const PRESETS: FaultsMessage["presets"] = [
  {
    title: "Answer lost after the write",
    says: "The next write is carried out, and its answer never arrives: does the client find out, or write twice?",
    fault: { operation: "write", kind: "reset", applied: true, times: 1 },
  },
  {
    title: "Locked for 5 s",
    says: "Another writer holds the lock: every write is refused for 5 seconds. Does the client wait and try again?",
    fault: { operation: "write", kind: "busy", retryAfterMs: 500, times: LOCKED_WRITES, forMs: LOCK_MS },
  },
  {
    title: "One in ten fails",
    says: "Each request has a chance of 10 % to fail with status 500, until the fault is removed.",
    fault: { operation: "any", kind: "status", status: 500, probability: 0.1 },
  },
];

const OPERATIONS = ["write", "read", "any", ...Object.keys(ROUTES)];

export function faultsMessage(faults: Faults): FaultsMessage {
  const kinds = Object.entries(KINDS).map(([name, { says, fields }]) => ({ name, says, fields }));
  return { kind: "faults", faults: faults.list().map(faultRow), operations: OPERATIONS, kinds, presets: PRESETS };
}

function faultRow({ id, fault, met, struck }: ReturnType<Faults["list"]>[number]): FaultRow {
  const { on } = fault;
  return {
    ...{ id, operation: typeof on === "string" ? on : on.join(", "), kind: kindOf(fault), times: timesOf(fault) },
    ...{ says: whatHappens(fault), met, struck },
  };
}

function kindOf(fault: Fault): string {
  if (fault.kind === "status") return `status ${fault.status}`;
  return "delayMs" in fault && fault.delayMs !== undefined ? `${fault.kind}, ${fault.delayMs} ms` : fault.kind;
}

function whatHappens(fault: Fault): string {
  const afterwards = "applied" in fault && fault.applied;
  switch (fault.kind) {
    case "status":
      return `answered with status ${fault.status}${afterwards ? " after the request was carried out" : ""}`;
    case "reset":
      return afterwards
        ? "the answer is lost after the request was carried out"
        : "the connection breaks before anything is done";
    case "timeout":
      return afterwards ? "carried out, and never answered" : "never answered";
    case "slow":
      return `answered ${fault.delayMs} ms late`;
    case "busy":
      return "refused, since another writer holds the lock";
    default:
      return KINDS[fault.kind].says;
  }
}

function timesOf({ nth, times, probability }: Fault): string {
  const chance = probability === undefined ? "" : `, each with a chance of ${Math.round(1000 * probability) / 10} %`;
  if (times === LOCKED_WRITES) return "until it removes itself";
  if (nth !== undefined) return `${times ?? 1} from request ${nth} on${chance}`;
  return `${times ?? (probability === undefined ? 1 : "always")}${chance}`;
}

const newFault = z.looseObject({
  operation: z.string(),
  kind: z.string(),
  forMs: z.int().min(1).max(MAX_MS).optional(),
});

/** Adds a fault from the page's form data. Returns an error text if the data is invalid, otherwise undefined. */
export function addFault(faults: Faults, data: unknown): string | undefined {
  const described = newFault.safeParse(data);
  if (!described.success) return z.prettifyError(described.error);
  const { operation: on, kind, forMs, ...its } = described.data;
  const [, known] = Object.entries(KINDS).find(([name]) => name === kind) ?? [];
  const usual = known?.fields.map(({ name, value }) => [name, value] as const) ?? [];
  const fault = faultSchema.safeParse({ on, kind, ...Object.fromEntries(usual), ...its });
  if (!fault.success) return z.prettifyError(fault.error);
  faults.add([fault.data]);
  const id = faults.list().at(-1)?.id;
  if (forMs !== undefined && id !== undefined) setTimeout(() => faults.remove(id), forMs).unref();
  return undefined;
}
