import * as z from "zod";
import { isJsonObject } from "../platform/json.ts";
import { type Finding, type Verdict, verdictOf } from "./event-verdict.ts";
import { ringBuffer } from "./last-entries.ts";

export interface ArrivedEvent {
  readonly at: string;
  readonly verdict: Verdict;
  readonly findings: readonly Finding[];
  readonly uid: string | null;
  readonly eventName: string | null;
  readonly text: string;
  readonly isJson: boolean;
  readonly forwarded?: { readonly status: number; readonly message: string };
}

const REMEMBERED = 100_000;
const REMEMBERED_LETTERS = 64 * 1_048_576;
const LETTERS_OF_FINDING = 128;

export type EventLog = ReturnType<typeof eventLog>;

/** `since` is in milliseconds since 1970. */
type EventFilter = Omit<z.output<typeof eventQuery>, "limit">;

/**
 * Stores the newest events: at most 100,000, and at most 64 MiB of bodies and findings. Calls `changed` after each
 * change.
 */
export function eventLog(changed: () => void = () => undefined) {
  const kept = ringBuffer<ArrivedEvent>({ most: REMEMBERED, mostLetters: REMEMBERED_LETTERS, lettersOf });
  let counts = NONE;
  return {
    ...kept,
    add(event: ArrivedEvent): void {
      kept.add(event);
      counts = { ...counts, [event.verdict]: counts[event.verdict] + 1 };
      changed();
    },
    clear(): void {
      kept.clear();
      counts = NONE;
      changed();
    },
    /** Returns the newest `limit` matching events, oldest first. `total` counts all matches. */
    read(filter: EventFilter, limit: number) {
      const newestFirst: ArrivedEvent[] = [];
      let total = 0;
      for (const event of kept.newestFirst()) {
        if (!matches(event, filter)) continue;
        total += 1;
        if (newestFirst.length < limit) newestFirst.push(event);
      }
      return { events: newestFirst.reverse(), total, dropped: kept.dropped() };
    },
    /** Includes events that were removed for space. */
    counts: () => counts,
  };
}

const NONE: Readonly<Record<Verdict, number>> = { recorded: 0, ignored: 0, rejected: 0 };

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

/** The most characters of the bodies and findings in one answer. Bodies beyond it are omitted. */
const LETTERS_SHOWN = 16 * 1_048_576;
const LETTERS_OF_FINDING_IN_PAGE = 100;
const FINDINGS_SHOWN = 3;

const instant = z
  .string()
  .transform((text) => (/^\d+$/.test(text) ? Number(text) : Date.parse(text)))
  .refine((time) => Number.isFinite(time), { error: "must be an ISO 8601 time or milliseconds since 1970" });

export const eventQuery = z.strictObject({
  verdict: z.enum(["recorded", "ignored", "rejected"]).optional(),
  eventName: z.string().optional(),
  uid: z.string().optional(),
  since: instant.optional(),
  limit: z.coerce.number().int().min(0).max(100_000).default(100),
});

/** Returns the newest matching events, oldest first, as JSON text with their unchanged bodies. */
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

const FINDINGS_KEPT = 100;

/** Creates an entry of the event log. `body` is the parsed `text`, if that is JSON. */
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

/** Returns null if events cannot be found by the value: it is not a text or is too long. */
function identity(value: unknown): string | null {
  return typeof value === "string" && value.length <= 2048 ? value : null;
}
