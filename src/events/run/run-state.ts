import * as z from "zod";
import { inputFile } from "../../files/input-file.ts";
import type { Fixed } from "../../platform/json.ts";
import type { RunView } from "../../runs/kind.ts";
import {
  type Counts,
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
import { RULES, type RuleName } from "../catalogue.ts";
import { type EventSettlement, eventReason, type VerdictGroup, VerdictKinds, verdictOf } from "./verdicts.ts";

/** A call that sends events, or one event; the events themselves are kept beside it. */
export const eventCall = z.object({
  tool: z.enum(["track_events", "track_event"]),
  input: z.object({
    events: z.object({
      /** SHA-256 of the content: the same for the same events. */
      digest: z.string(),
      /** A file as it was given; absent: one event a line. */
      file: inputFile.exactOptional(),
      /** Whether misspelt names are corrected as the events are read. */
      mend: z.literal(true).exactOptional(),
    }),
    onUnknown: z.enum(["report", "resend"]),
  }),
});
export type EventCall = Fixed<z.output<typeof eventCall>>;

const at = z.number();
const object = z.number();
const verdict = z.enum(["recorded", "ignored", "rejected", "uncertain"]);
const basis = z.enum(["documented", "assumed", "notShown"]);

/** What was predicted of an event, and observed. */
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
});

/** One line of the journal of a run of events. Applying all lines in order gives the run's state. */
export const eventEntry = z.discriminatedUnion("t", [
  z.object({ t: z.literal("begin"), items: z.number(), skipped: z.number().exactOptional(), at }),
  /** Events as reports show them, in the order in which they are read. */
  z.object({ t: z.literal("events"), objects: z.array(reportedObject), at }),
  /** These are about to be sent: an event without a later line is unknown. */
  z.object({ t: z.literal("leave"), objects: z.array(object), at }),
  /** The verdict on an event: what would become of one that is not sent, or what a sandbox made of one that was. */
  z.object({ t: z.literal("predicted"), object, verdict: eventVerdict.exactOptional(), at }),
  z.object({
    t: z.literal("settled"),
    object,
    outcome: z.enum(["succeeded", "alreadyDone", "failed", "notApplied", "unknown"]),
    reason: reason.exactOptional(),
    attempts: z.number(),
    /** Absent where the event is predicted to be recorded, without a finding. */
    verdict: eventVerdict.exactOptional(),
    /** An earlier attempt may have been recorded as well. */
    maybeTwice: z.literal(true).exactOptional(),
    /** It left before a crash: what was predicted of it is not known any more. */
    afterCrash: z.literal(true).exactOptional(),
    at,
  }),
  /** These were accepted at the first attempt, and there is nothing else to say of them. */
  z.object({ t: z.literal("accepted"), objects: z.array(object), at }),
  stopEntry.extend({ waitedMs: z.number() }),
  /** The run is resumed: notApplied events are sent, and with `resend` unknown ones, too. */
  z.object({ t: z.literal("resume"), resend: z.boolean(), at }),
]);
export type EventEntry = Fixed<z.output<typeof eventEntry>>;

/** The reason of an event that left, and whose answer was lost. */
export const ANSWER_LOST: Reason = { code: "EVENT_ANSWER_LOST" };

const STOP_CODES = {
  finished: "INTERRUPTED",
  interrupted: "INTERRUPTED",
  cancelled: "CANCELLED",
  ended: "RUN_ENDED",
} as const;

/** Everything that is known about a run of events, as the sum of its journal. */
export class EventRunState implements RunView<EventEntry> {
  readonly objects: ReportedObject[] = [];
  readonly requests = { planned: 0, sent: 0, resent: 0, waitedMs: 0 };
  stopped: { readonly cause: StopCause } | undefined;
  updatedAt = 0;
  /** Whether a later call asked for what is unknown to be sent again. */
  isResent = false;
  /** The counts when the run was last resumed. */
  resumed: { readonly counts: Counts } | undefined;
  /** How many events, from the first on, were read: of the others only the place is known. */
  described = 0;
  /** Events that were sent although it is uncertain whether the service records them. */
  uncertain = 0;
  /** Where the file has empty rows: what its rows came to. */
  facts: { readonly rows?: RowCounts } = {};
  /** Events that may have been recorded twice. */
  maybeTwice = 0;

  readonly #standing: Standing[] = [];
  readonly #reasons = new Map<number, Reason>();
  readonly #left = new Set<number>();
  /** Events that are sent again although an earlier attempt may have been recorded. */
  readonly #doubted = new Set<number>();
  /** Events of which a request was begun, and which were not accepted: another request repeats it. */
  readonly #tried = new Set<number>();
  readonly #verdicts = new VerdictKinds();
  readonly #counts: { -readonly [Field in keyof Counts]: Counts[Field] } = {
    pending: 0,
    succeeded: 0,
    alreadyDone: 0,
    failed: 0,
    notApplied: 0,
    unknown: 0,
  };

  /** Applies one journal entry. */
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
        if (entry.afterCrash !== true) this.#verdicts.keep(entry.object, entry.verdict);
        this.#doubted.delete(entry.object);
        this.#move(entry.object, entry.outcome, entry.reason);
        if (entry.outcome === "succeeded" && entry.verdict?.predicted === "uncertain") this.uncertain += 1;
        if (entry.maybeTwice === true) this.maybeTwice += 1;
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

  /** Events have no ID. */
  idOf(): undefined {
    return undefined;
  }

  /** The kinds of verdicts with their events, those that say most first. */
  verdicts(): readonly VerdictGroup[] {
    return this.#verdicts.groups();
  }

  /** The verdict on an event, where that is not `recorded`. */
  predictionOf(object: number): Prediction | undefined {
    return this.#verdicts.predictionOf(object);
  }

  /** Events that left and have no outcome: after a crash their answers are lost. */
  lost(): readonly number[] {
    return [...this.#left].filter((object) => this.#standing[object] === "pending");
  }

  /** Whether an event is to be sent although an earlier attempt may have been recorded. */
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

  /**
   * A run stops when the requests under way are answered: what has no outcome then was not sent since the run was last
   * taken up, and before that only what is doubted was.
   */
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

  /** Whatever is sent again was sent before in this call or, by what the journal says, in an earlier one. */
  #countSkipped(more = 0): void {
    const skipped = (this.facts.rows?.skipped ?? 0) + more;
    if (skipped > 0) this.facts = { rows: { read: this.objects.length, merged: 0, skipped } };
  }

  #countRequests(object: number, attempts: number, outcome: Outcome): void {
    if (attempts === 0) return;
    this.requests.sent += attempts;
    this.requests.resent += this.#tried.has(object) ? attempts : attempts - 1;
    if (outcome === "succeeded" || outcome === "failed") this.#tried.delete(object);
    else this.#tried.add(object);
  }
}

/** Whether unknown events of a run are sent again when it is resumed. */
export function resends({ input }: EventCall, state: EventRunState): boolean {
  return input.onUnknown === "resend" || state.isResent;
}

/** The outcome of an event, as a line of the journal. */
export function settledEntry(object: number, settlement: EventSettlement, at: number): EventEntry {
  const { outcome, attempts, predicted, observed, maybeTwice } = settlement;
  const reason = eventReason(settlement);
  const verdict = verdictOf(predicted, observed);
  return {
    ...{ t: "settled", object, outcome, attempts, at },
    ...(reason && { reason }),
    ...(verdict && { verdict }),
    ...(maybeTwice && { maybeTwice }),
  };
}
