import { plain } from "../answers/fence.ts";
import { RULES } from "../events/catalogue.ts";
import { arrivedFindings } from "../events/findings.ts";
import type { ArrivedEvent, EventLog } from "../sandbox/event-log.ts";
import { correctedEvent } from "./corrected-event.ts";
import { bodyOf, type Figures, platformOf } from "./event-figures.ts";
import { causeOf } from "./event-problems.ts";
import type { EventDetail, EventList, EventProblem, EventRow } from "./sandbox-wire.ts";

/** The most events of one update or one list. */
const MOST_EVENTS = 100;
/** The most letters of a name or user in a list. */
const MOST_LETTERS = 1000;
/** The most problems of one event. */
const MOST_PROBLEMS = 20;
/** Larger bodies are shown as they came. */
const MOST_CORRECTED = 100_000;

/** An event as the page lists it. */
function eventRow(event: ArrivedEvent, seq: number): EventRow {
  const { at, verdict, uid, eventName: name } = event;
  const cause = causeOf(event)?.words;
  const platform = platformOf(bodyOf(event));
  return {
    ...{ seq, at: Date.parse(at), verdict, uid: uid && cut(uid), name: name && cut(name) },
    ...(platform !== undefined && { platform }),
    ...(cause !== undefined && { cause }),
  };
}

function cut(text: string): string {
  return text.length <= MOST_LETTERS ? text : `${text.slice(0, MOST_LETTERS)}…`;
}

/** The newest events after number `from`, oldest first, at most 100. */
export function rowsAfter(log: EventLog, from: number): readonly EventRow[] {
  const rows: EventRow[] = [];
  const first = Math.max(from, log.newest() - MOST_EVENTS, log.cleared()) + 1;
  for (let seq = first; seq <= log.newest(); seq += 1) {
    const event = log.at(seq);
    if (event !== undefined) rows.push(eventRow(event, seq));
  }
  return rows;
}

/** Which events a person looks at. */
interface Wanted {
  /** Each word is in the result, the name, the uid, a rule or the body, in capital or small letters. */
  readonly filter: string;
  readonly verdict?: string | undefined;
  /** Events with one cause, by the key of it; null: by a cause that is not counted any more. */
  readonly cause?: string | null | undefined;
}

/** The newest events before number `before` that fit, oldest first. */
export function fittingEvents(
  log: EventLog,
  { filter, verdict, cause }: Wanted,
  before = Number.POSITIVE_INFINITY,
): EventList {
  const words = filter.split(/\s+/).filter((word) => word !== "");
  const patterns = words.map((word) => new RegExp(word.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"), "iu"));
  const isWanted = (event: ArrivedEvent): boolean =>
    (verdict === undefined || event.verdict === verdict) &&
    (cause === undefined || causeOf(event)?.key === cause) &&
    patterns.every((pattern) => fits(event, pattern));
  const rows: EventRow[] = [];
  let seq = Math.min(before, log.newest() + 1) - 1;
  for (; seq > log.cleared() && rows.length <= MOST_EVENTS; seq -= 1) {
    const event = log.at(seq);
    if (event === undefined) break;
    if (isWanted(event)) rows.push(eventRow(event, seq));
  }
  return { events: rows.slice(0, MOST_EVENTS).reverse(), older: rows.length > MOST_EVENTS };
}

/** How the page calls what the API calls ignored. */
const DROPPED = "dropped";

function fits({ verdict, eventName, uid, findings, text }: ArrivedEvent, pattern: RegExp): boolean {
  const shown = verdict === "ignored" ? DROPPED : "";
  return [verdict, shown, eventName ?? "", uid ?? "", ...findings.map(({ rule }) => rule), text].some((one) =>
    pattern.test(one),
  );
}

/** An event with everything that is known of it; undefined for one that is forgotten. */
export function eventDetail(log: EventLog, seq: number, figures: Figures): EventDetail | undefined {
  const event = log.at(seq);
  if (event === undefined) return undefined;
  const { text, forwarded } = event;
  const body = text.length <= MOST_CORRECTED ? bodyOf(event) : undefined;
  const problem = problemOf(event, figures);
  const corrected = event.verdict === "recorded" ? undefined : correctedEvent(body);
  return {
    ...{ event: eventRow(event, seq), text, problems: problemsOf(event) },
    ...(forwarded && { forwarded }),
    ...(problem && { sameProblem: problem }),
    ...(corrected && { corrected }),
  };
}

function problemOf(event: ArrivedEvent, figures: Figures) {
  const key = causeOf(event)?.key;
  return key === undefined ? undefined : figures.problemOf(key);
}

/** What is wrong with an event, and how to fix each of it, what decides first. */
function problemsOf(event: ArrivedEvent): readonly EventProblem[] {
  const body = bodyOf(event);
  const found = arrivedFindings({ body, findings: event.findings, ...(body === undefined && { text: "" }) });
  return found.slice(0, MOST_PROBLEMS).map(({ code, path, message, fix, isDecisive }) => ({
    message: plain(`${path.includes("[") ? `${path}: ` : ""}${message}`),
    fix: plain(fix),
    isDecisive,
    ...(isRule(code) && { section: RULES[code].section }),
  }));
}

function isRule(code: string): code is keyof typeof RULES {
  return Object.hasOwn(RULES, code);
}
