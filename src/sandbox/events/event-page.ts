import * as z from "zod";
import type { ArrivedEvent, EventLog } from "./event-log.ts";

/** Bodies and findings shown in one answer, in letters; older ones are left out, so that an answer stays readable. */
const LETTERS_SHOWN = 16 * 1_048_576;
const LETTERS_OF_FINDING = 100;
/** Of an event whose body is left out. */
const FINDINGS_SHOWN = 3;

const instant = z
  .string()
  .transform((text) => (/^\d+$/.test(text) ? Number(text) : Date.parse(text)))
  .refine((time) => Number.isFinite(time), { error: "must be an ISO 8601 time or milliseconds since 1970" });

/** Which events to show; `limit` is 100 where absent. */
export const eventQuery = z.strictObject({
  verdict: z.enum(["recorded", "ignored", "rejected"]).optional(),
  eventName: z.string().optional(),
  uid: z.string().optional(),
  since: instant.optional(),
  limit: z.coerce.number().int().min(0).max(100_000).default(100),
});

/** The newest events that match, oldest first, as JSON text: their bodies travel exactly as they came. */
export function eventPage(log: EventLog, { limit, ...filter }: z.output<typeof eventQuery>): string {
  const { events, total, dropped } = log.read(filter, limit);
  let letters = 0;
  const shown = events
    .toReversed()
    .map((event) => {
      letters += event.text.length + event.findings.length * LETTERS_OF_FINDING;
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
