import * as z from "zod";
import { repeatedPurchasesNote, unknownPathsNote } from "../answers/arrival-notes.ts";
import {
  type ArrivedRow,
  arrivedLine,
  arrivedRow,
  type CheckRow,
  type ExpectationRow,
  eventCoverageText,
  reportCheck,
  reportExpectations,
  reportFindings,
  reportUsers,
} from "../answers/arrived-events.ts";
import { pageBudget, readCursor, renderAnswer, takeRows, writeCursor } from "../answers/budget.ts";
import { basisNote } from "../answers/event-suites.ts";
import { fenced, quoteUntrusted } from "../answers/fence.ts";
import { many } from "../answers/message-words.ts";
import type { SandboxEvent, SandboxEvents, SandboxQuery } from "../api/events.ts";
import { EVENT_NAMES, EVENT_SHAPES } from "../events/catalogue.ts";
import { countArrived, coverageOf, eventCoverageOf, type WrongKind, wrongKinds } from "../events/coverage.ts";
import {
  type ArrivedEvent,
  checkDuration,
  checkExpectations,
  checkOrder,
  type DurationResult,
} from "../events/expectations.ts";
import { nearestName } from "../events/spelling.ts";
import { TEST_UID_PREFIX } from "../events/suites/suite.ts";
import { isJsonObject } from "../platform/json.ts";
import { thousands } from "../platform/text.ts";
import { sandboxOf } from "./apis.ts";
import { type ToolAnswer, type ToolContext, type ToolDefinition, ToolError } from "./define-tool.ts";

const VERDICTS = ["recorded", "ignored", "rejected"] as const;
const MAX_EXPECTATIONS = 30;

const expectation = () =>
  z.strictObject({
    eventName: z.string().max(64),
    where: z.record(z.string(), z.unknown()).optional().describe("Parameter values it must have"),
    count: z.int().min(0).optional().describe("Exact number; default: at least one"),
    verdict: z.enum(VERDICTS).optional().describe("Default: recorded, and none ignored or rejected"),
  });

const input = () =>
  z.strictObject({
    uid: z.string().optional(),
    uids: z.array(z.string()).min(1).max(50).optional(),
    platform: z.string().optional(),
    eventName: z.string().optional(),
    verdict: z.enum(VERDICTS).optional(),
    since: z.union([z.string(), z.number()]).optional().describe("ISO 8601, or milliseconds since 1970"),
    limit: z.int().min(1).max(1000).default(20).describe("Events per answer, newest"),
    cursor: z.string().optional(),
    expect: z.array(expectation()).max(MAX_EXPECTATIONS).optional().describe("Events that must have arrived"),
    inOrder: z.boolean().optional().describe("Must arrive in this order"),
    withinMs: z.int().min(0).optional().describe("All of them within this time of the first"),
    coverage: z.boolean().optional().describe("Count each event and parameter, instead of listing"),
  });

type InspectInput = z.output<ReturnType<typeof input>>;

export const inspectEvents = {
  name: "inspect_events",
  title: "Look at the events that arrived",
  description:
    "Shows the received events of the sandbox with their verdicts (recorded, ignored, rejected). Checks whether each user's events arrived, in what order and when; counts events and parameters.",
  toolset: "events",
  effect: "reads",
  idempotent: true,
  needsSandbox: true,
  input,
  output: () =>
    z.looseObject({
      environment: z.string(),
      events: z.array(z.looseObject({})).optional(),
      total: z.number().optional(),
      expectations: z.array(z.looseObject({})).optional(),
      order: z.looseObject({}).optional(),
      within: z.looseObject({}).optional(),
      findings: z.array(z.looseObject({})).optional(),
      coverage: z.array(z.looseObject({})).optional(),
      cursor: z.string().optional(),
      notes: z.array(z.string()).optional(),
    }),
  handler: inspection,
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

const LOOKED_AT = 100_000;
/** A position after the last user: at most LOOKED_AT events are checked, so there are at most as many users. */
const AFTER_ALL_USERS = LOOKED_AT;

async function inspection(given: InspectInput, context: ToolContext): Promise<ToolAnswer> {
  const { eventName, verdict, limit } = given;
  const filters = { uid: given.uid, since: instant(given.since), eventName, verdict };
  const { uids, platform } = given;
  if (given.uid !== undefined && uids !== undefined) {
    throw new ToolError("uid and uids were both given", "Give only one of them.");
  }
  const isWanted = wantedBy({ uids, platform });
  const listed = wantedEvents(await look(filters, context), isWanted);
  const isFiltered = eventName !== undefined || verdict !== undefined;
  const all = isFiltered
    ? wantedEvents(await look({ uid: filters.uid, since: filters.since }, context), isWanted)
    : listed;
  const query = { ...filters, ...(uids !== undefined && { uids }), ...(platform !== undefined && { platform }) };
  const { expect, inOrder, withinMs } = given;
  const queries = { ofEvents: query, ofUsers: { ...query, expect, inOrder, withinMs } };
  const from = given.cursor ? readPosition(given.cursor, queries, listed) : { before: listed.total, user: 0 };
  const checked = checkedOf(all.events, isFiltered ? listed.events : undefined, { ...given, user: from.user });
  const known = [
    ...(hasNoZone(given.since) ? ["since has no time zone, so it was read as UTC."] : []),
    ...(isInSeconds(given.since) ? [secondsNote(filters.since)] : []),
    ...notesOn(all),
    ...unknownPathsNote(listed),
    ...repeatedPurchasesNote(listed.events),
    ...(given.coverage ? testEventsNote(listed.events) : []),
    ...withoutEvents(all.events, given),
    ...(isFiltered && (expect ?? []).length > 0
      ? ["expect is checked with all events: eventName and verdict only choose which are listed."]
      : []),
    ...withoutName(all.events, eventName),
    ...checked.notes,
  ];
  // Notes are in an answer twice: as data and as text.
  const beside = [checked.facts, checked.text, known, known];
  const page = given.coverage ? undefined : pageOf(listed, { limit, before: from.before, beside });
  const next = { before: page?.next ?? 0, dropped: listed.dropped };
  const user = checked.nextUser;
  const cursor =
    user !== undefined
      ? writeCursor(queries.ofUsers, { ...next, user })
      : next.before > 0
        ? writeCursor(queries.ofEvents, { ...next, ...(from.user > 0 && { user: AFTER_ALL_USERS }) })
        : undefined;
  const bases = page?.rows.flatMap(({ basis, findings = [] }) => [basis, ...findings.map((one) => one.basis)]) ?? [];
  const { total } = listed;
  const newest = total === 0 ? (await look({}, context, 1)).events.at(-1) : undefined;
  const isTooLate = newest !== undefined && Date.parse(newest.at) < (filters.since ?? 0);
  const notes = [
    ...(isTooLate ? [`since is after the newest event, which arrived at ${newest.at}.`] : []),
    ...(page?.isCut ? [`No more than these ${page.rows.length} events fit an answer.`] : []),
    ...known,
    ...basisNote([...checked.bases, ...bases]),
  ];
  const { environment } = context;
  const isEmpty = total === 0 && newest === undefined;
  return renderAnswer({ environment, events: page?.rows, total, ...checked.facts, notes: notes[0] && notes, cursor }, [
    ...checked.text,
    ...(page === undefined || (from.before === 0 && total > 0) ? [] : pageText(page.rows, total, isEmpty)),
    ...notes,
    cursor !== undefined &&
      `${user === undefined ? "Older events" : `More such users${next.before > 0 ? ", and older events" : ""}`}: the same call with cursor ${cursor}`,
  ]);
}

const MAX_UNSUPPORTED_SHOWN = 5;

/** Checks `arrived` for the answer. `matching`: the events with the requested name and verdict, if any is requested. */
function checkedOf(
  arrived: readonly SandboxEvent[],
  matching: readonly SandboxEvent[] | undefined,
  given: InspectInput & { readonly user: number },
) {
  const counted = countArrived(matching ?? arrived);
  const { expectations, order, within, notes } = checksOf(arrived, given);
  const summary = coverageOf(counted);
  const isShown = (event: { readonly eventName: string }): boolean =>
    given.eventName === undefined || event.eventName === given.eventName;
  const coverage = given.coverage ? eventCoverageOf(counted).filter(isShown) : undefined;
  const unsupported = Object.fromEntries(Object.entries(summary.unsupported).slice(0, MAX_UNSUPPORTED_SHOWN));
  const kinds = wrongKinds(arrived).filter(isAskedFor(given));
  const { expect = [] } = given;
  const isOfFindings = given.limit === 1 && given.coverage !== true && expect.length === 0;
  const findings = reportFindings(kinds, isOfFindings ? "most" : given.coverage ? "beside coverage" : "beside events");
  const users = reportUsers(expectations, [...(order ?? []), ...(within ?? [])], given.user);
  const room = given.limit === 1 ? "most" : "least";
  const picked = [
    users,
    reportExpectations(expectations, expect, users.tokens),
    reportCheck("order", order, { expectations, expect, room }),
    reportCheck("within", within, { expectations, expect, room }),
    findings,
  ];
  return {
    facts: {
      ...Object.assign({}, ...picked.map(({ facts }) => facts)),
      ...(coverage !== undefined && { coverage, unsupported }),
    },
    text: [
      ...(coverage === undefined ? [] : eventCoverageText(coverage, summary, { isFiltered: matching !== undefined })),
      ...picked.flatMap(({ text }) => text),
    ],
    notes,
    nextUser: users.next,
    bases: findings.bases,
  };
}

/**
 * Returns a function that tells whether the call asks for a kind of wrong events. The kind must have the requested
 * verdict, and the requested name or, if that is supported, a probable misspelling of it.
 */
function isAskedFor({ eventName = "", verdict }: InspectInput) {
  const isMisspelt = (name: string | null): boolean =>
    name !== null && !EVENT_SHAPES.has(name) && nearestName(name, [eventName]) !== undefined;
  return (kind: WrongKind): boolean =>
    (verdict === undefined || kind.verdict === verdict) &&
    (eventName === "" || kind.eventName === eventName || (EVENT_SHAPES.has(eventName) && isMisspelt(kind.eventName)));
}

function pageText(rows: readonly ArrivedRow[], total: number, isEmpty: boolean): readonly string[] {
  if (rows.length === 0) return [isEmpty ? "The sandbox has received no events." : "No events match."];
  return [
    `${rows.length === total ? `${total > 1 ? "All " : ""}${many(total, "event")}` : `${thousands(rows.length)} of ${many(total, "event")}`}, the newest last:`,
    fenced(rows.map(arrivedLine)),
  ];
}

type Filters = Omit<SandboxQuery, "limit">;

function look(filters: Filters, context: ToolContext, limit = LOOKED_AT): Promise<SandboxEvents> {
  return sandboxOf(context).events({ ...filters, limit }, { signal: context.signal });
}

type Wanted = ((event: SandboxEvent) => boolean) | undefined;

function wantedBy({ uids, platform }: Pick<InspectInput, "uids" | "platform">): Wanted {
  if (uids === undefined && platform === undefined) return undefined;
  const users = uids === undefined ? undefined : new Set<unknown>(uids);
  return ({ uid, body }) => {
    const isOn = platform === undefined || (isJsonObject(body) && body.platform === platform);
    return isOn && (users === undefined || users.has(uid));
  };
}

function wantedEvents(seen: SandboxEvents, isWanted: Wanted): SandboxEvents {
  if (isWanted === undefined) return seen;
  const events = seen.events.filter(isWanted);
  return { ...seen, events, total: events.length };
}

function hasNoZone(since: string | number | undefined): since is string {
  return typeof since === "string" && /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?$/.test(since);
}

/** As milliseconds, numbers between these are in the years 1970 to 1973. As seconds, they are after the year 2000. */
const SECONDS = [1e9, 1e11] as const;

function isInSeconds(since: string | number | undefined): boolean {
  return Number(since) >= SECONDS[0] && Number(since) < SECONDS[1];
}

function secondsNote(since = 0): string {
  return `since is too small for milliseconds, so it was read as seconds: ${new Date(since).toISOString()}.`;
}

/** The latest time that a `Date` can represent, in milliseconds since 1970. */
const LAST_TIME = 8.64e15;

/** Returns false if a time begins with a date that does not exist: 31 November would be read as 1 December. */
function hasRealDay(time: string): boolean {
  const [day] = /^\d{4}-\d\d-\d\d/.exec(time) ?? [];
  return day === undefined || new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);
}

/** Returns a time in whole milliseconds since 1970. A time without a zone is UTC, like the times in answers. */
function instant(since: string | number | undefined): number | undefined {
  if (since === undefined) return undefined;
  if (isInSeconds(since)) return Math.ceil(Number(since) * 1000);
  const zoned = hasNoZone(since) ? `${since.slice(0, 10)}T${since.slice(11) || "00:00"}Z` : since;
  const isNumber = typeof zoned === "number" || /^\d+(\.\d+)?$/.test(zoned);
  const time = isNumber ? Math.ceil(Number(zoned)) : Date.parse(zoned);
  if (time >= 0 && time <= LAST_TIME && (typeof zoned === "number" || hasRealDay(zoned))) return time;
  throw new ToolError(
    "the argument since is not a time",
    "Give an ISO 8601 time such as 2026-01-02T03:04:05Z, or milliseconds since 1970.",
  );
}

/**
 * The content of a cursor. The next page ends before the event with the number `before`. `dropped`: how many events the
 * sandbox had deleted; if it has deleted more since, the cursor is invalid. `user`: the next page continues the list of
 * users who do not meet all expectations at the user with this index.
 */
const position = z.object({ before: z.int().min(0), dropped: z.int().min(0), user: z.int().min(0).default(0) });

function pageOf(
  { events, total }: SandboxEvents,
  asked: { readonly limit: number; readonly before: number; readonly beside: unknown },
) {
  const oldest = total - events.length;
  const { before } = asked;
  const newestFirst = events
    .slice(0, Math.max(0, before - oldest))
    .reverse()
    .slice(0, asked.limit)
    .map(arrivedRow);
  const rows = takeRows(newestFirst, arrivedLine, pageBudget({ beside: asked.beside })).toReversed();
  const first = Math.max(before - rows.length, oldest);
  const hasMore = rows.length > 0 && first > oldest;
  return { rows, isCut: rows.length < newestFirst.length, next: hasMore ? first : 0 };
}

/**
 * Reads a cursor. Throws a ToolError if the cursor belongs to another query, or if the sandbox has deleted events
 * since. For a cursor that continues a list of users, the checks are a part of the query.
 */
function readPosition(
  cursor: string,
  queries: { readonly ofEvents: unknown; readonly ofUsers: unknown },
  { total, dropped }: Pick<SandboxEvents, "total" | "dropped">,
): z.output<typeof position> {
  const found = readCursor(cursor, queries.ofEvents, position) ?? readCursor(cursor, queries.ofUsers, position);
  if (found === undefined) {
    throw new ToolError("cursor does not come from this query", "Leave cursor out to start at the beginning.");
  }
  if (found.before <= total && found.dropped === dropped) return found;
  throw new ToolError(
    "the sandbox has deleted events since the last answer, so cursor is no longer valid",
    "Leave cursor out to start at the beginning.",
  );
}

function notesOn({ events, total, dropped }: SandboxEvents): readonly string[] {
  const unseen = events.filter(({ body, text }) => body === undefined && text === undefined).length;
  return [
    dropped > 0 && `Not checked: ${many(dropped, "older event")} that the sandbox no longer has.`,
    total > events.length && `Expectations and coverage look at the newest ${events.length} of ${total} events.`,
    unseen > 0 && `Not checked: ${many(unseen, "event")} with a body too large to read.`,
  ].filter((note) => note !== false);
}

function withoutEvents(
  events: readonly SandboxEvent[],
  { uids = [], platform, since }: InspectInput,
): readonly string[] {
  const seen = new Set(events.map(({ uid }) => uid));
  const without = uids.filter((uid) => !seen.has(uid));
  if (without.length === 0) return [];
  const filters = Object.entries({ platform, since }).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  const match = filters.length === 0 ? "" : ` match ${filters.join(" and ")}`;
  return [`No events of uid ${without.map((uid) => quoteUntrusted(uid)).join(", ")}${match}.`];
}

function testEventsNote(events: readonly SandboxEvent[]): readonly string[] {
  const { length } = events.filter(({ uid }) => uid?.startsWith(TEST_UID_PREFIX));
  const words = `of test runs (uid "${TEST_UID_PREFIX}…"). To leave them out, give uids, or since.`;
  return length === 0 ? [] : [`The counts include ${many(length, "event")} ${words}`];
}

/** Returns a note if no event has the requested name, but a similar name exists, which was probably meant. */
function withoutName(events: readonly SandboxEvent[], wanted: string | undefined): readonly string[] {
  const names = new Set(events.flatMap(({ eventName }) => eventName ?? []));
  if (wanted === undefined || names.has(wanted)) return [];
  const [nearest] = [[...names], EVENT_NAMES].flatMap(
    (some) =>
      nearestName(
        wanted,
        some.filter((name) => name !== wanted),
      ) ?? [],
  );
  if (nearest === undefined) return [];
  return [`No event has the name ${quoteUntrusted(wanted)}. Did you mean ${quoteUntrusted(nearest)}?`];
}

/** The results of the checks. `order` and `within` are absent if the call does not ask for them. */
interface Checks {
  readonly expectations: readonly ExpectationRow[];
  readonly order?: readonly CheckRow[];
  readonly within?: readonly CheckRow[];
  readonly notes: readonly string[];
}

/** Checks events. Each user is checked separately if the call names users, or checks order or time. */
export function checksOf(arrived: readonly SandboxEvent[], given: InspectInput): Checks {
  const { expect = [], inOrder = false, withinMs, uids } = given;
  const users = uids ?? (inOrder || withinMs !== undefined ? usersWith(arrived, expect) : []);
  const isEach = uids !== undefined || users.length > 1;
  const parts = isEach ? byUser(arrived, new Set(users)) : [{ events: arrived }];
  const shares = isEach ? [] : sharesOf(arrived, expect);
  const expectations: ExpectationRow[] = [];
  const order: CheckRow[] = [];
  const within: CheckRow[] = [];
  let isRepeated = false;
  for (const part of parts) {
    const events = part.events.map(arrivedEvent);
    const of = "uid" in part ? { uid: part.uid } : {};
    for (const [index, result] of checkExpectations(events, expect, given).entries()) {
      const { eventName } = expect[index] ?? {};
      isRepeated ||= result.found > expect.filter((one) => one.eventName === eventName).length;
      expectations.push({ ...of, ...("uid" in of && { index }), ...result, ...shares[index] });
    }
    if (inOrder) order.push({ ...of, ...checkOrder(events, expect) });
    if (withinMs !== undefined) {
      const took = checkDuration(events, expect, { inOrder, withinMs });
      const { met, tookMs } = took;
      within.push({
        ...of,
        met,
        ...(tookMs !== undefined && { tookMs }),
        ...(!met && { reason: whyLate(took, expect, withinMs) }),
      });
    }
  }
  const isNothingExpected = expect.length === 0 && (inOrder || withinMs !== undefined);
  return {
    expectations,
    ...(inOrder && expect.length > 0 && { order }),
    ...(withinMs !== undefined && expect.length > 0 && { within }),
    notes: [
      isNothingExpected &&
        "inOrder and withinMs check only the events in expect, which is empty. So nothing was checked.",
      inOrder && isRepeated && ROUNDS_NOTE,
    ].filter((note) => note !== false),
  };
}

const ROUNDS_NOTE =
  "Some expected events arrived repeatedly. inOrder only checks that they arrived once in this order (with count: all " +
  "of one event before the next). " +
  "To check every repetition, list the events in expect again for each repetition, and leave count out.";

function usersWith(
  arrived: readonly SandboxEvent[],
  expect: readonly { readonly eventName: string }[],
): readonly string[] {
  const names = new Set<unknown>(expect.map(({ eventName }) => eventName));
  return [...new Set(arrived.flatMap(({ uid, eventName }) => (uid !== null && names.has(eventName) ? [uid] : [])))];
}

function byUser(arrived: readonly SandboxEvent[], uids: ReadonlySet<string>) {
  const events = new Map([...uids].map((uid): readonly [string, SandboxEvent[]] => [uid, []]));
  for (const event of arrived) if (event.uid !== null) events.get(event.uid)?.push(event);
  return [...events].map(([uid, own]) => ({ uid, events: own }));
}

/**
 * Returns for each expectation how many users have such an event (`users`), and how many users there are (`ofUsers`).
 * Empty if there are fewer than two users.
 */
function sharesOf(arrived: readonly SandboxEvent[], expect: NonNullable<InspectInput["expect"]>) {
  const all = new Set(arrived.flatMap(({ uid }) => uid ?? []));
  if (all.size < 2) return [];
  const users = expect.map(() => 0);
  for (const { events } of byUser(arrived, all)) {
    for (const [index, { found }] of checkExpectations(events.map(arrivedEvent), expect).entries()) {
      if (found > 0) users[index] = (users[index] ?? 0) + 1;
    }
  }
  return users.map((some) => ({ users: some, ofUsers: all.size }));
}

const MISSING_NAMED = 3;

function whyLate(
  { tookMs, missing }: DurationResult,
  expect: readonly { readonly eventName: string }[],
  withinMs: number,
): string {
  if (tookMs !== undefined) return `${thousands(tookMs)} ms, ${thousands(withinMs)} allowed`;
  const named = missing
    .slice(0, MISSING_NAMED)
    .map((index) => `${JSON.stringify(expect[index]?.eventName)} (expectation ${index + 1})`);
  const more = missing.length - named.length;
  return `not all of the expected events arrived: ${[...named, ...(more > 0 ? [`${more} more`] : [])].join(", ")}`;
}

export function arrivedEvent({ body, verdict, at }: SandboxEvent): ArrivedEvent {
  return { body, verdict, arrivedAt: Date.parse(at) };
}
