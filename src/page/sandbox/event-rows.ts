import { parseJson } from "../../platform/json.ts";
import { arrivedSentences } from "../../render/arrived-events.ts";
import type { ArrivedEvent, EventLog } from "../../sandbox/event-log.ts";
import { isFields } from "../../sandbox/event-verdict.ts";
import { EVENTS, type EventSpec } from "../../spec/events.ts";
import type { CoverageRow, EventList, EventRow } from "../wire.ts";

/** The most events of one update or one list. */
const MOST_EVENTS = 100;

/** An event as the page lists it. */
function eventRow(event: ArrivedEvent, seq: number): EventRow {
  const { at, verdict, uid, eventName: name, findings } = event;
  return { seq, at: Date.parse(at), verdict, uid, name, says: arrivedSentences(findings, bodyOf(event)) };
}

function bodyOf({ text, isJson }: ArrivedEvent): unknown {
  return isJson ? parseJson(text) : undefined;
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

/**
 * The newest events before number `before` that fit, oldest first: each word of the filter stands in the verdict, the
 * name, the uid, a rule or the body, in capital or small letters.
 */
export function fittingEvents(log: EventLog, filter: string, before = Number.POSITIVE_INFINITY): EventList {
  const words = filter.split(/\s+/).filter((word) => word !== "");
  const patterns = words.map((word) => new RegExp(word.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"), "iu"));
  const rows: EventRow[] = [];
  let seq = Math.min(before, log.newest() + 1) - 1;
  for (; seq > log.cleared() && rows.length <= MOST_EVENTS; seq -= 1) {
    const event = log.at(seq);
    if (event === undefined) break;
    if (patterns.every((pattern) => fits(event, pattern))) rows.push(eventRow(event, seq));
  }
  return { events: rows.slice(0, MOST_EVENTS).reverse(), older: rows.length > MOST_EVENTS };
}

function fits({ verdict, eventName, uid, findings, text }: ArrivedEvent, pattern: RegExp): boolean {
  const told = [verdict, eventName ?? "", uid ?? "", ...findings.map(({ rule }) => rule), text];
  return told.some((one) => pattern.test(one));
}

interface Counted extends CoverageRow {
  count: number;
  wrong: number;
  readonly parameters: Record<string, number>;
}

/** Counts what arrived of each event of the documents (event-tracking-api 2.2), each event once, as it is asked for. */
export function coverageCounter(log: EventLog): () => readonly CoverageRow[] {
  let counted = emptyCoverage();
  let last = 0;
  let cleared = 0;
  return () => {
    if (log.cleared() !== cleared) counted = emptyCoverage();
    cleared = log.cleared();
    last = Math.max(last, cleared);
    for (; last < log.newest(); last += 1) {
      const event = log.at(last + 1);
      const body = event && bodyOf(event);
      const entry = counted.get(event?.eventName ?? "");
      if (event === undefined || entry === undefined || !isFields(body)) continue;
      entry.count += 1;
      if (event.verdict !== "recorded") entry.wrong += 1;
      for (const name of Object.keys(body)) {
        if (Object.hasOwn(entry.parameters, name)) entry.parameters[name] = (entry.parameters[name] ?? 0) + 1;
      }
    }
    return structuredClone([...counted.values()]);
  };
}

function emptyCoverage(): ReadonlyMap<string, Counted> {
  return new Map(
    Object.entries<EventSpec>(EVENTS).map(([name, { parameters: known }]) => {
      const parameters = Object.fromEntries(Object.keys(known).map((parameter) => [parameter, 0]));
      return [name, { name, count: 0, wrong: 0, parameters }];
    }),
  );
}
