import * as z from "zod";
import { isJsonObject } from "../platform/json.ts";
import { type Finding, type Verdict, verdictOf } from "./event-verdict.ts";
import { type LastEntries, ringBuffer } from "./last-entries.ts";

/** A received event, as it is stored. */
export interface ArrivedEvent {
  /** When it arrived, ISO 8601. */
  readonly at: string;
  readonly verdict: Verdict;
  readonly findings: readonly Finding[];
  readonly uid: string | null;
  readonly eventName: string | null;
  /** The body as it was sent. */
  readonly text: string;
  readonly isJson: boolean;
  /** The answer of the real endpoint, if events are forwarded. */
  readonly forwarded?: { readonly status: number; readonly message: string };
}

/** Which events to read. `since` is in milliseconds since 1970. */
interface EventFilter {
  readonly verdict?: Verdict | undefined;
  readonly eventName?: string | undefined;
  readonly uid?: string | undefined;
  readonly since?: number | undefined;
}

/** The received events: the last 100,000, or the last 64 MiB of bodies and findings, whichever is less. */
export interface EventLog extends Omit<LastEntries<ArrivedEvent>, "newestFirst" | "dropped"> {
  /**
   * Returns the newest `limit` matching events, oldest first; the number of matches; and the number of events dropped
   * for space.
   */
  read(
    filter: EventFilter,
    limit: number,
  ): { readonly events: readonly ArrivedEvent[]; readonly total: number; readonly dropped: number };
  /** Returns the number of events by verdict since the start or the last `clear`, including dropped ones. */
  counts(): Readonly<Record<Verdict, number>>;
}

const REMEMBERED = 100_000;
const REMEMBERED_LETTERS = 64 * 1_048_576;
const LETTERS_OF_FINDING = 128;

/** Creates an empty event log. Calls `changed` after each change. */
export function eventLog(changed: () => void = () => undefined): EventLog {
  const kept = ringBuffer<ArrivedEvent>({ most: REMEMBERED, mostLetters: REMEMBERED_LETTERS, lettersOf });
  let counts = NONE;
  return {
    ...kept,
    add(event) {
      kept.add(event);
      counts = { ...counts, [event.verdict]: counts[event.verdict] + 1 };
      changed();
    },
    clear() {
      kept.clear();
      counts = NONE;
      changed();
    },
    read(filter, limit) {
      const newestFirst: ArrivedEvent[] = [];
      let total = 0;
      for (const event of kept.newestFirst()) {
        if (!matches(event, filter)) continue;
        total += 1;
        if (newestFirst.length < limit) newestFirst.push(event);
      }
      return { events: newestFirst.reverse(), total, dropped: kept.dropped() };
    },
    counts: () => counts,
  };
}

const NONE: Readonly<Record<Verdict, number>> = { recorded: 0, ignored: 0, rejected: 0 };

/** Returns the approximate size of an event. */
function lettersOf({ text, findings }: ArrivedEvent): number {
  return text.length + findings.length * LETTERS_OF_FINDING;
}

function matches(event: ArrivedEvent, { verdict, eventName, uid, since }: EventFilter): boolean {
  return (
    (verdict === undefined || event.verdict === verdict) &&
    (eventName === undefined || event.eventName === eventName) &&
    (uid === undefined || event.uid === uid) &&
    (since === undefined || Date.parse(event.at) >= since)
  );
}

/** The maximum size of bodies and findings in one answer, in characters. Older ones are omitted. */
const LETTERS_SHOWN = 16 * 1_048_576;
const LETTERS_OF_FINDING_IN_PAGE = 100;
/** The number of findings shown of an event whose body is omitted. */
const FINDINGS_SHOWN = 3;

const instant = z
  .string()
  .transform((text) => (/^\d+$/.test(text) ? Number(text) : Date.parse(text)))
  .refine((time) => Number.isFinite(time), { error: "must be an ISO 8601 time or milliseconds since 1970" });

/** Which events to show. `limit` defaults to 100. */
export const eventQuery = z.strictObject({
  verdict: z.enum(["recorded", "ignored", "rejected"]).optional(),
  eventName: z.string().optional(),
  uid: z.string().optional(),
  since: instant.optional(),
  limit: z.coerce.number().int().min(0).max(100_000).default(100),
});

/** Returns the newest matching events, oldest first, as JSON text. Their bodies are exactly as received. */
export function eventPage(log: EventLog, { limit, ...filter }: z.output<typeof eventQuery>): string {
  const { events, total, dropped } = log.read(filter, limit);
  let letters = 0;
  const shown = events
    .toReversed()
    .map((event) => {
      letters += event.text.length + event.findings.length * LETTERS_OF_FINDING_IN_PAGE;
      return eventText(event, letters <= LETTERS_SHOWN);
    })
    .reverse();
  return `{"events":[${shown.join(",")}],"total":${total},"dropped":${dropped}}`;
}

function eventText({ text, isJson, ...event }: ArrivedEvent, withBody: boolean): string {
  const findings = withBody ? event.findings : event.findings.slice(0, FINDINGS_SHOWN);
  const head = JSON.stringify({ ...event, findings, bytes: Buffer.byteLength(text, "utf8") }).slice(0, -1);
  if (!withBody) return `${head}}`;
  return isJson ? `${head},"body":${text}}` : `${head},"text":${JSON.stringify(text)}}`;
}

/** The maximum number of stored findings per event. */
const FINDINGS_KEPT = 100;

/** An event as it is stored, with the verdict of its findings. `body` is the value of `text`, if that is JSON. */
export function arrivedEvent({
  at,
  text,
  body,
  findings,
}: Pick<ArrivedEvent, "at" | "text" | "findings"> & { readonly body: unknown }): ArrivedEvent {
  const { uid, eventName } = isJsonObject(body) ? body : {};
  return {
    at,
    verdict: verdictOf(findings),
    findings: findings.slice(0, FINDINGS_KEPT),
    uid: identity(uid),
    eventName: identity(eventName),
    text,
    isJson: body !== undefined,
  };
}

/** Returns a field by which events are looked up, if it is a text of a reasonable length. */
function identity(value: unknown): string | null {
  return typeof value === "string" && value.length <= 2048 ? value : null;
}
