import { RATE_LIMITED } from "../api/errors.ts";
import {
  BASIS_WORDS,
  FINDINGS_KEPT,
  type Finding,
  type RuleBasis,
  type RuleName,
  verdictOfRule,
} from "../events/catalogue.ts";
import type { RepeatedPurchases } from "../events/run/source.ts";
import type { EventCode, VerdictGroup } from "../events/run/verdicts.ts";
import type { Uncorrected } from "../events/spelling.ts";
import { type InputFile, isSheet } from "../files/input-file.ts";
import { amount, capitalized, thousands } from "../platform/text.ts";
import type { ReportedObject } from "../runs/outcome.ts";
import { basisNote } from "./event-suites.ts";
import { joinedRanges, placesWords, placeWords, plain, quoteShort, quoteUntrusted } from "./fence.ts";
import { type Detail, type Message, many, onPage, resuming, type Sentence, type Text, texts } from "./message-words.ts";
import { rateLimitWords, refusalWords, remedyOf, storedRequestDetails } from "./request-messages.ts";

/** Returns what is wrong with an event. On the web page, it begins with `short` and names no section. */
function findingWords(why: string, short: string, { finding, section }: Detail): Text {
  if (typeof finding !== "string") return why;
  const whole = `${why}: ${plain(finding)} (event-tracking-api ${String(section)})`;
  return onPage(`${short}: ${plain(finding)}`, whole);
}

const DROPPED = 'not sent, since the service would answer "ok" and drop it';
const REFUSED = "not sent, since the service would refuse it";

function fixWords({ fix, uncorrected }: Detail, otherwise: string): string {
  if (typeof fix !== "string") return otherwise;
  const words = typeof uncorrected === "string" && isUncorrected(uncorrected) ? UNCORRECTED_WORDS[uncorrected] : "";
  const why = words === "" ? "" : ` Autocorrect cannot fix this: ${words}.`;
  return `${capitalized(plain(fix))}.${why}`;
}

const UNCORRECTED_WORDS: Readonly<Record<Uncorrected, string>> = {
  otherWord: "it corrects spelling, and this is another word",
  unclearName: "it is not clear which supported name is meant",
  noName: "no supported name is similar",
  unclearField: "it is not clear which field is meant",
  noField: "no field has a similar name",
  value: "it corrects names, not values",
};

function isUncorrected(reason: string): reason is Uncorrected {
  return Object.hasOwn(UNCORRECTED_WORDS, reason);
}

function requestWords({ kind, ...detail }: Detail, statusCode: number | undefined): Message {
  const known = storedRequestDetails(detail, statusCode);
  if (kind === "rateLimited")
    return { message: rateLimitWords(known), remedy: "Wait as long as the service asks, then send the event again." };
  const refused = typeof kind === "string" ? refusalWords(kind, { operation: "trackEvent", ...known }) : undefined;
  if (refused !== undefined) return refused;
  const why = known.reason === undefined ? "" : `: ${plain(known.reason)}`;
  const message =
    known.statusCode === undefined
      ? `the service could not be reached${why}`
      : `the service answered with status ${known.statusCode} until the last retry`;
  return { message, remedy: remedyOf({ setBy: "EVENT_API_URL", ...known }) };
}

/** Returns a note about repeated purchases. Empty for sheets, because other notes about the sheet mention them. */
export function repeatedPurchaseNotes(
  repeated: RepeatedPurchases | undefined,
  file?: Pick<InputFile, "format">,
): readonly string[] {
  if (repeated === undefined || repeated.count === 0 || isSheet(file)) return [];
  const { count, first } = repeated;
  const places = first.map((place) => [place, place] as const);
  const where = placesWords(places, { byLine: file !== undefined, omitted: count > first.length });
  const [has, each] = count === 1 ? ["has", "it counts"] : ["have", "each counts"];
  return [
    `${many(count, "purchase")} (${where}) ${has} the tx_id of an earlier purchase in this call: ${each} as a purchase of its own`,
  ];
}

export const MAX_USERS_NAMED = 3;

/**
 * Returns a note about users whose later events were sent, or would be, before an earlier one. `first`: of each of
 * these users, the first event that was not sent.
 */
export function orderNotes(
  { later, first }: { readonly later: number; readonly first: readonly ReportedObject[] },
  status: string,
  uidOf: (object: number) => string | undefined = () => undefined,
): readonly string[] {
  const [only] = first;
  if (only === undefined) return [];
  const uids = first.slice(0, MAX_USERS_NAMED).flatMap(({ index }) => uidOf(index) ?? []);
  const named = `${uids.map(quoteShort).join(", ")}${first.length > uids.length ? ", …" : ""}`;
  const users = first.length === 1 ? "its user" : many(first.length, "user");
  const whose = uids.length === 0 ? users : first.length === 1 ? `uid ${named}` : `${users} (uid ${named})`;
  const events = `${many(later, "later event")} of ${whose}`;
  const one = first.length === 1 ? placeWords(only) : undefined;
  if (status === "planned") {
    return [
      `${one === undefined ? "" : `${one} would fail, and `}${events} would be sent before ${one === undefined ? "their events that would fail" : "it"}. ` +
        "To keep the order of each user, fix what would fail first, and send all events in one call",
    ];
  }
  const again = one === undefined ? "an earlier event of such a user" : one;
  return [
    `${events} ${later === 1 ? "was" : "were"} already sent: if ${again} is sent now, it arrives after ${later === 1 ? "it" : "them"}. ` +
      "If the order matters, do not send it",
  ];
}

/** The messages that say why an event was not recorded, or may not be, by code. */
export const EVENT_SENTENCES: Readonly<Record<EventCode, Sentence>> = {
  EVENT_IGNORED: (detail) => ({
    message: findingWords(DROPPED, "not sent, since the event would not count", detail),
    shared: DROPPED,
    remedy: fixWords(detail, "Change the event."),
  }),
  EVENT_REJECTED: (detail) => ({
    message: findingWords(REFUSED, REFUSED, detail),
    shared: REFUSED,
    remedy: fixWords(detail, "Change the event."),
  }),
  EVENT_INVALID: (detail) => ({
    message: "the service answered !invalid; the event was not recorded",
    remedy: fixWords(detail, "Check the types and lengths of the event's parameters."),
  }),
  EVENT_REQUEST_REJECTED: (detail, { statusCode }) => {
    const known = storedRequestDetails(detail, statusCode);
    const refused = refusalWords(String(detail.kind), { operation: "trackEvent", ...known });
    const { setBy = "EVENT_API_URL", messages: [said] = [] } = known;
    const settings = setBy === "EVENT_API_URL" ? "EVENT_API_URL and EVENT_APP_KEY" : setBy;
    const words = said === undefined || detail.kind === "tooLarge" ? "" : `, and says ${quoteUntrusted(said)}`;
    const message = refused?.message ?? `the service refused the request (status ${statusCode ?? "unknown"})${words}`;
    return {
      message: `${message}: the event was not recorded`,
      remedy:
        detail.kind === "tooLarge"
          ? 'Shorten the texts of the event, or send fewer entries of "items".'
          : (refused?.remedy ??
            `${said === undefined ? "Check" : "Change the event as the service says. If it is right, check"} ${settings}.`),
    };
  },
  EVENT_ANSWER_LOST: ({ effect }, { statusCode }) => ({
    message:
      effect === "ended"
        ? "the server ended while it was sending this event: it may or may not have been sent and recorded"
        : statusCode === undefined
          ? "the event was sent, but no answer came: it may or may not have been recorded"
          : `the event was sent, but the service answered with status ${statusCode}: it may or may not have been recorded`,
    remedy: texts(
      'The event is not sent again, since that may record it twice. To send it anyway: make the same call with onUnknown "resend".',
      "The event is not sent again, since that may record it twice. Look for it in the reports of the web console.",
    ),
  }),
  EVENT_ANSWER_NOT_UNDERSTOOD: (_detail, { statusCode }) => ({
    message: `the service answered neither ok nor !invalid (status ${statusCode ?? "unknown"}): the event may or may not have been recorded`,
    remedy: "Look for the event in the reports of the web console.",
  }),
  EVENT_NOT_SENT: (detail) => {
    const { message, remedy } = requestWords(detail, undefined);
    return { message: `${message}; the event was not sent`, remedy: `${remedy} Then send the event again.` };
  },
  EVENT_BUSY: (detail, { statusCode }) => ({
    message:
      statusCode === RATE_LIMITED
        ? `${rateLimitWords(storedRequestDetails(detail))}; the event was not recorded`
        : "the service stayed busy until the last retry; the event was not recorded",
    remedy:
      statusCode === RATE_LIMITED
        ? "Wait as long as the service asks, then send the event again."
        : "Send the event again later.",
  }),
  EVENT_STOPPED: {
    message: "the call was stopped before this event was sent",
    remedy: "Send the event again if you still want it.",
  },
  EVENTS_ENDED: (detail, { statusCode }) => {
    const { message, remedy } = requestWords(detail, statusCode);
    return { message: `no event can be sent: ${message}`, remedy: resuming((_, then) => `${remedy} ${then}`) };
  },
};

export interface VerdictRow {
  readonly index: number;
  readonly count: number;
  readonly indexes: readonly number[];
  readonly lines?: readonly number[];
  readonly predicted: string;
  readonly basis: RuleBasis;
  readonly observed?: string;
  readonly findings: readonly Pick<Finding, "path" | "rule" | "section" | "basis" | "message" | "fix">[];
  readonly findingsOmitted?: number;
  readonly ofFirst?: true;
}

/** How many positions and findings a row about events with the same verdict shows. */
export type VerdictForm = readonly [places: number, findings: number];

/** Returns the row for events with the same verdict. `group.objects`: the indexes of these events in `events`. */
export function verdictRow(group: VerdictGroup, events: readonly ReportedObject[]): VerdictRow {
  const { predicted, basis, observed, count, objects, isOfFirst, omitted = 0 } = group;
  // Events that are not sent are among the failures, which already contain the findings that decide this.
  const findings = isRefused(group) ? group.findings.filter(({ rule }) => !isDeciding(rule)) : group.findings;
  const lines = objects.flatMap((object) => events[object]?.line ?? []);
  return {
    index: objects[0] ?? 0,
    count,
    indexes: objects,
    ...(lines.length > 0 && { lines }),
    predicted,
    basis,
    ...(observed !== undefined && { observed }),
    findings: findings.map(({ path, rule, section, basis: known, message, fix }) => ({
      path: plain(path),
      rule,
      section,
      basis: known,
      message: plain(message),
      fix: plain(fix),
    })),
    ...(omitted > 0 && findings.length > 0 && { findingsOmitted: omitted }),
    ...(isOfFirst && findings.length > 0 && { ofFirst: true }),
  };
}

function isRefused({ predicted }: { readonly predicted?: string | undefined }): boolean {
  return predicted === "ignored" || predicted === "rejected";
}

/** Returns whether an event that breaks this rule is not recorded. */
function isDeciding(rule: RuleName): boolean {
  return isRefused({ predicted: verdictOfRule(rule) });
}

export function shortVerdictRow(row: VerdictRow, [places, most]: VerdictForm): VerdictRow {
  const { indexes, lines, findings, findingsOmitted = 0 } = row;
  const omitted = findingsOmitted + Math.max(0, findings.length - most);
  return {
    ...row,
    indexes: indexes.slice(0, places),
    ...(lines !== undefined && { lines: lines.slice(0, places) }),
    findings: findings.slice(0, most),
    ...(omitted > 0 && { findingsOmitted: omitted }),
  };
}

export function verdictLine(row: VerdictRow): string {
  const { count, indexes, lines, predicted, basis, observed, findings, findingsOmitted = 0, ofFirst } = row;
  const numbers = lines ?? indexes.map((index) => index + 1);
  const places = joinedRanges(numbers.map((place) => [place, place]));
  const words = placesWords(places, { byLine: lines !== undefined, omitted: count > indexes.length });
  const place = count === 1 ? words : `${thousands(count)} events (${words})`;
  const seen = observed === undefined ? "" : `, actual ${observed}`;
  const found = findings.map(
    ({ path, basis: known, message, fix }) =>
      `${path === "" ? "event" : path} (${BASIS_WORDS[known]}): ${message}; ${fix}`,
  );
  const rest = `${many(findingsOmitted, "more finding")} (a dry run of the event alone shows up to ${FINDINGS_KEPT})`;
  const more = findingsOmitted > 0 ? [rest] : [];
  const first = ofFirst ? " (of the first event; the others break the same rule in other ways)" : "";
  const all = found.length > 0 ? `${[...found, ...more].join(" | ")}${first}` : "";
  if (observed === undefined && isRefused(row)) return `${place}, other findings: ${all}`;
  return `${place}: expected ${predicted} (${BASIS_WORDS[basis]})${seen}${all && `. ${all}`}`;
}

const MAX_CORRECTIONS_SHOWN = 10;

/**
 * Returns a note for each corrected name, with the number of events and the position of the first one. `leavesOut`:
 * names were also corrected in failed events, which are not in `objects`.
 */
export function correctionNotes(
  objects: readonly ReportedObject[],
  { leavesOut }: { readonly leavesOut: boolean },
): readonly string[] {
  const without = leavesOut ? ", not counting failed ones" : "";
  const kinds = new Map<string, { count: number; readonly first: ReportedObject }>();
  for (const object of objects) {
    for (const one of new Set((object.mended ?? []).map((name) => name.replaceAll(/\[\d+\]/g, "[]")))) {
      const kind = kinds.get(one) ?? { count: 0, first: object };
      kind.count += 1;
      kinds.set(one, kind);
    }
  }
  const most = [...kinds].sort(([, one], [, other]) => other.count - one.count);
  const named = most.slice(0, MAX_CORRECTIONS_SHOWN).map(([one, { count, first }]) => {
    return `corrected: ${plain(one)} (${count === 1 ? placeWords(first) : `${thousands(count)} events${without}, first ${placeWords(first)}`})`;
  });
  const more = most.length - named.length;
  return more > 0
    ? [...named, `${amount(more, "more name")} ${more === 1 ? "was" : "were"} corrected: get_run shows each`]
    : named;
}

/** Returns a note about unknown parameters that autocorrect did not rename, although a supported one is similar. */
export function unrenamedNote(verdicts: readonly VerdictGroup[]): readonly string[] {
  const isLeft = ({ rule, fix }: Finding): boolean => rule === "unknownParameter" && fix.startsWith("did you mean");
  if (!verdicts.some(({ predicted, findings }) => predicted === "recorded" && findings.some(isLeft))) return [];
  return [
    "autocorrect did not rename unknown parameters that are not clearly misspelt, or whose right name the event already has",
  ];
}

/** Returns notes that explain the word "expected" in answers about sent events whose actual result is unknown. */
export function predictedNotes(
  verdicts: readonly VerdictGroup[],
  { status, environment }: { readonly status: string; readonly environment: "live" | "sandbox" },
): readonly string[] {
  const isSeen = verdicts.some(({ observed }) => observed !== undefined);
  if (isSeen || status === "planned" || verdicts.every(({ predicted }) => predicted !== "recorded")) return [];
  const actual =
    environment === "sandbox"
      ? "inspect_events shows the actual result"
      : "the service answers ok to dropped events too, so the actual result cannot be seen";
  return [`"expected" is the result that the API's documents state; ${actual}`];
}

/** Returns notes that say how the verdicts in an answer are known: by the API document, or by an assumption. */
export function basisNotes(verdicts: readonly VerdictRow[]): readonly string[] {
  // Events that were not sent are among the failures, so only the verdicts of sent events need an explanation.
  return basisNote(
    verdicts.flatMap((row) => [...(isRefused(row) ? [] : [row.basis]), ...row.findings.map(({ basis }) => basis)]),
  );
}

/** Returns a note about the empty arguments of `track_event`, for an event that lacks a parameter. */
export function emptyArgumentNotes(findings: readonly Finding[]): readonly string[] {
  if (!findings.some(({ rule, path }) => rule === "requiredMissing" && !path.startsWith("items"))) return [];
  return ["here, an argument that is null or empty counts as not given; track_events sends such a value as it is"];
}

/** Returns what a call did because an identical recent call is unfinished, or has events with an unknown result. */
export function repeatedEventWords(repeat: "attached" | "resumed" | "resent", isOne: boolean): string {
  switch (repeat) {
    case "attached":
      return (
        "an identical call was made before and this is its run; nothing was sent now. " +
        `If ${isOne ? "its result stays" : "results stay"} unknown, the same call with onUnknown "resend" sends ${isOne ? "it" : "those events"} again`
      );
    case "resumed":
      return `an identical call was interrupted before ${isOne ? "its event was" : "its events were"} sent; its run was resumed`;
    case "resent":
      return isOne
        ? "the result of an identical call was unknown; its run was resumed and sent the event again"
        : "an identical call had unknown results; its run was resumed and sent those events again";
  }
}

/** Returns a note to a dry run about the run that the same call without `dryRun` would continue. */
export function continuedRunNote({ runId, sends }: { readonly runId: string; readonly sends: boolean }): string {
  const what = sends ? "continues that run, and sends only what is left" : "returns that run, and sends nothing";
  return `the same call was made before (run ${runId}): without dryRun, it ${what}`;
}
