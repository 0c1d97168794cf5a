import * as z from "zod";
import { inputFile } from "../../files/input-file.ts";
import type { Fixed } from "../../platform/json.ts";
import type { RunView } from "../../runs/kind.ts";
import {
  type Counts,
  NO_COUNTS,
  type Outcome,
  ownReason,
  type Reason,
  type ReportedObject,
  type RowCounts,
  reason,
  reportedObject,
  type Standing,
  type StopCause,
  stopEntry,
} from "../../runs/outcome.ts";
import type { Prediction } from "../../runs/report.ts";
import { BASES, RULES, type RuleName, VERDICTS } from "../catalogue.ts";
import { type EventSettlement, eventReason, type VerdictGroup, VerdictKinds, verdictOf } from "./verdicts.ts";

export const eventCall = z.object({
  tool: z.enum(["track_events", "track_event"]),
  input: z.object({
    events: z.object({
      digest: z.string(),
      /** How to read the caller's file. Absent if the events are stored as one JSON text per line. */
      file: inputFile.exactOptional(),
      /** Set if misspelt names are corrected when the events are read (autocorrect). */
      mend: z.literal(true).exactOptional(),
    }),
    onUnknown: z.enum(["report", "resend"]),
  }),
});
export type EventCall = Fixed<z.output<typeof eventCall>>;

const at = z.number();
const object = z.number();
const verdict = z.enum(VERDICTS);
const basis = z.enum(BASES);

const eventVerdict = z.object({
  predicted: verdict,
  basis,
  observed: verdict.exactOptional(),
  findings: z.array(
    z.object({
      path: z.string(),
      rule: z.custom<RuleName>((name) => typeof name === "string" && Object.hasOwn(RULES, name)),
      section: z.string(),
      basis,
      severity: z.enum(["verdict", "warning"]),
      message: z.string(),
      fix: z.string(),
    }),
  ),
  omitted: z.number().exactOptional(),
});

/** One line of the journal. Applying all lines in order restores the state of the run. */
export const eventEntry = z.discriminatedUnion("t", [
  z.object({ t: z.literal("begin"), items: z.number(), skipped: z.number().exactOptional(), at }),
  z.object({ t: z.literal("events"), objects: z.array(reportedObject), at }),
  /** The events that are sent next. After a crash, each of them that has no outcome gets the outcome `unknown`. */
  z.object({ t: z.literal("leave"), objects: z.array(object), at }),
  /** The predicted verdict on an event of a dry run, or the sandbox's verdict on an event that was sent. */
  z.object({ t: z.literal("predicted"), object, verdict: eventVerdict.exactOptional(), at }),
  z.object({
    t: z.literal("settled"),
    object,
    outcome: z.enum(["succeeded", "alreadyDone", "failed", "notApplied", "unknown"]),
    reason: reason.exactOptional(),
    attempts: z.number(),
    /** The predicted verdict. Absent if the event is recorded and has no findings. */
    verdict: eventVerdict.exactOptional(),
    /** Set if the service may have recorded the event twice, because an earlier attempt got no answer. */
    maybeTwice: z.literal(true).exactOptional(),
    /** Set if the event may have been sent before a crash. Its predicted verdict is no longer known. */
    afterCrash: z.literal(true).exactOptional(),
    at,
  }),
  z.object({ t: z.literal("accepted"), objects: z.array(object), at }),
  stopEntry.extend({ waitedMs: z.number() }),
  /** The run was resumed. It sends events that were not applied and, with `resend`, those with unknown results. */
  z.object({ t: z.literal("resume"), resend: z.boolean(), at }),
]);
export type EventEntry = Fixed<z.output<typeof eventEntry>>;

export const ANSWER_LOST: Reason = { code: "EVENT_ANSWER_LOST" };
/** The reason of an event that was about to be sent, or was sent, when the process ended. */
export const SENDING_ENDED: Reason = { ...ANSWER_LOST, detail: { effect: "ended" } };

const STOP_CODES = {
  finished: "INTERRUPTED",
  interrupted: "INTERRUPTED",
  cancelled: "CANCELLED",
  ended: "RUN_ENDED",
} as const;

export class EventRunState implements RunView<EventEntry> {
  readonly objects: ReportedObject[] = [];
  readonly requests = { planned: 0, sent: 0, resent: 0, waitedMs: 0 };
  stopped: { readonly cause: StopCause } | undefined;
  updatedAt = 0;
  /** Whether the run was resumed so that events with an unknown result are sent again. */
  isResent = false;
  resumed: { readonly counts: Counts } | undefined;
  /** How many events have been read so far. Of the other events, only the number is known. */
  described = 0;
  /** How many accepted events the service may have dropped: their predicted verdict is `uncertain`. */
  uncertain = 0;
  /** `rows` is set if the file has empty rows. */
  facts: { readonly rows?: RowCounts } = {};
  /** The indexes of the events that the service may have recorded twice. */
  readonly maybeTwice: number[] = [];

  readonly #standing: Standing[] = [];
  readonly #reasons = new Map<number, Reason>();
  readonly #left = new Set<number>();
  /** Events that are sent again, although the service may already have recorded them. */
  readonly #doubted = new Set<number>();
  /** Events that were sent, but neither succeeded nor failed. Each further request for one is a repetition. */
  readonly #tried = new Set<number>();
  readonly #verdicts = new VerdictKinds();
  readonly #counts: { -readonly [Field in keyof Counts]: Counts[Field] } = { ...NO_COUNTS };

  apply(entry: EventEntry): void {
    this.updatedAt = entry.at;
    switch (entry.t) {
      case "begin":
        for (let index = 0; index < entry.items; index += 1) {
          this.objects.push({ index });
          this.#standing.push("pending");
        }
        this.#countSkipped(entry.skipped);
        this.#verdicts.begin(entry.items);
        this.#counts.pending += entry.items;
        this.requests.planned += entry.items;
        return;
      case "events":
        for (const object of entry.objects) this.objects[object.index] = object;
        this.described += entry.objects.length;
        return;
      case "leave":
        for (const object of entry.objects) this.#left.add(object);
        return;
      case "predicted":
        this.#verdicts.keep(entry.object, entry.verdict);
        return;
      case "settled":
        this.#countRequests(entry.object, entry.attempts, entry.outcome);
        // For a row that is not an event, or a file that cannot be read, there is no predicted verdict.
        if (entry.afterCrash !== true && entry.reason?.code !== "INVALID_ROW" && !isUnreadable(entry.reason)) {
          this.#verdicts.keep(entry.object, entry.verdict);
        }
        this.#doubted.delete(entry.object);
        this.#move(entry.object, entry.outcome, entry.reason);
        if (entry.outcome === "succeeded" && entry.verdict?.predicted === "uncertain") this.uncertain += 1;
        if (entry.maybeTwice === true) this.maybeTwice.push(entry.object);
        return;
      case "accepted":
        for (const object of entry.objects) {
          this.#verdicts.keep(object, undefined);
          this.#countRequests(object, 1, "succeeded");
          this.#move(object, "succeeded", undefined);
        }
        return;
      case "stop":
        this.#stop(entry.cause, entry.reason);
        this.requests.waitedMs += entry.waitedMs;
        return;
      case "resume":
        this.stopped = undefined;
        this.isResent ||= entry.resend;
        this.resumed = { counts: this.counts() };
        for (const object of this.#standing.keys()) this.#reopen(object, entry.resend);
        return;
    }
  }

  counts(): Counts {
    return { ...this.#counts };
  }

  standing(object: number): Standing {
    return this.#standing[object] ?? "pending";
  }

  reason(object: number): Reason | undefined {
    return this.#reasons.get(object);
  }

  /** Whether the run ended because its file could not be read. That counts as one failed event, which has no row. */
  get isUnread(): boolean {
    return isUnreadable(this.reason(0));
  }

  idOf(): undefined {
    return undefined;
  }

  verdicts(): readonly VerdictGroup[] {
    return this.#verdicts.groups();
  }

  predictionOf(object: number): Prediction | undefined {
    return this.#verdicts.predictionOf(object);
  }

  lost(): readonly number[] {
    return [...this.#left].filter((object) => this.#standing[object] === "pending");
  }

  isDoubted(object: number): boolean {
    return this.#doubted.has(object);
  }

  #move(object: number, to: Standing, reason: Reason | undefined): void {
    const from = this.#standing[object];
    if (from === undefined) return;
    this.#counts[from] = (this.#counts[from] ?? 0) - 1;
    this.#counts[to] = (this.#counts[to] ?? 0) + 1;
    this.#standing[object] = to;
    this.#left.delete(object);
    if (reason === undefined) this.#reasons.delete(object);
    else this.#reasons.set(object, reason);
  }

  /** Sets the outcome of each event that has none: unknown if it may have been recorded, otherwise not applied. */
  #stop(cause: StopCause, reason: Reason | undefined): void {
    this.stopped = { cause };
    for (const [object, standing] of this.#standing.entries()) {
      if (standing !== "pending") continue;
      if (this.#doubted.has(object)) this.#move(object, "unknown", ANSWER_LOST);
      else this.#move(object, "notApplied", reason ?? ownReason(STOP_CODES[cause]));
    }
  }

  #reopen(object: number, resend: boolean): void {
    const standing = this.#standing[object];
    if (standing !== "notApplied" && !(resend && standing === "unknown")) return;
    if (standing === "unknown") this.#doubted.add(object);
    this.#move(object, "pending", undefined);
  }

  #countSkipped(more = 0): void {
    const skipped = (this.facts.rows?.skipped ?? 0) + more;
    if (skipped > 0) this.facts = { rows: { read: this.objects.length, merged: 0, skipped } };
  }

  /**
   * Counts the requests for an event. All but the first are repetitions. If the event was tried before the run was
   * resumed, the first one is a repetition, too.
   */
  #countRequests(object: number, attempts: number, outcome: Outcome): void {
    if (attempts === 0) return;
    this.requests.sent += attempts;
    this.requests.resent += this.#tried.has(object) ? attempts : attempts - 1;
    if (outcome === "succeeded" || outcome === "failed") this.#tried.delete(object);
    else this.#tried.add(object);
  }
}

function isUnreadable(reason: Reason | undefined): boolean {
  return reason?.code === "FILE_UNREADABLE";
}

/** Returns whether misspelt names are corrected before events are sent. The stored field still has its former name. */
export function autocorrects({ input }: EventCall): boolean {
  return input.events.mend === true;
}

/** Returns whether a resumed run sends events with an unknown result again. */
export function resendsUnknown({ input }: EventCall, state: EventRunState): boolean {
  return input.onUnknown === "resend" || state.isResent;
}

/** For how many ms after an unknown result no identical event is sent, unless `onUnknown` is `resend`. */
export const SAME_EVENT_MS = 600_000;

export function leftOf(call: EventCall, state: EventRunState): number {
  const { pending, notApplied, unknown } = state.counts();
  return pending + notApplied + (resendsUnknown(call, state) ? unknown : 0);
}

export function settledEntry(object: number, settlement: EventSettlement, at: number): EventEntry {
  const { outcome, attempts, predicted, observed, maybeTwice } = settlement;
  const reason = eventReason(settlement);
  const verdict = verdictOf(predicted, observed);
  return {
    t: "settled",
    object,
    outcome,
    attempts,
    at,
    ...(reason && { reason }),
    ...(verdict && { verdict }),
    ...(maybeTwice && { maybeTwice }),
  };
}
