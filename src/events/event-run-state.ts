import type { Counts } from "../bulk/outcomes.ts";
import { ownReason } from "../bulk/reasons.ts";
import type { ReportedState } from "../bulk/report.ts";
import type { Outcome, Reason, ReportedObject, Standing, StopCause } from "../bulk/work.ts";
import { eventReason, ruleAt } from "./event-reason.ts";
import type { KeptEvents } from "./event-source.ts";
import type { Finding, RuleBasis, Validation, Verdict } from "./rules.ts";
import type { Settlement } from "./settlement.ts";

/** What was predicted of an event, and observed. */
export interface EventVerdict {
  readonly predicted: Verdict;
  readonly basis: RuleBasis;
  readonly observed?: Verdict;
  readonly findings: readonly Finding[];
}

/** A call that sends events; the events themselves are kept beside it. */
export interface EventCall {
  readonly tool: "track_events";
  readonly input: { readonly events: KeptEvents; readonly onUnknown: "report" | "resend" };
}

/** One line of the journal of a run of events. Applying all lines in order gives the run's state. */
export type EventEntry =
  | { readonly t: "begin"; readonly items: number; readonly at: number }
  /** What reports say of events, which are read in order. */
  | { readonly t: "events"; readonly objects: readonly ReportedObject[]; readonly at: number }
  /** These are about to be sent: without a later line about one of them, nobody knows what became of it. */
  | { readonly t: "leave"; readonly objects: readonly number[]; readonly at: number }
  /** What would become of an event that is not sent. */
  | {
      readonly t: "predicted";
      readonly object: number;
      readonly verdict?: EventVerdict;
      readonly at: number;
    }
  | {
      readonly t: "settled";
      readonly object: number;
      readonly outcome: Outcome;
      readonly reason?: Reason;
      readonly attempts: number;
      /** Absent where there is nothing to say: predicted recorded, and no finding. */
      readonly verdict?: EventVerdict;
      /** An earlier attempt may have been recorded as well. */
      readonly maybeTwice?: true;
      readonly at: number;
    }
  /** These were accepted at the first attempt, and there is nothing else to say of them. */
  | { readonly t: "accepted"; readonly objects: readonly number[]; readonly at: number }
  | {
      readonly t: "stop";
      readonly cause: StopCause;
      readonly reason?: Reason;
      readonly waitedMs: number;
      readonly at: number;
    }
  /** Goes on with what was not attempted, and with `resend` also with what is unknown. */
  | { readonly t: "resume"; readonly resend: boolean; readonly at: number };

/** How many verdicts are kept for reports, and how many findings of each. */
const VERDICTS_KEPT = 10;
const FINDINGS_KEPT = 5;

const NOTHING_TO_SAY: EventVerdict = { predicted: "recorded", basis: "documented", findings: [] };
const NOTHING_KIND = kindOf(NOTHING_TO_SAY);

/** Why an event is unknown that left, and of which nothing was heard. */
export const ANSWER_LOST: Reason = { code: "EVENT_ANSWER_LOST" };

const STOP_CODES = {
  finished: "INTERRUPTED",
  interrupted: "INTERRUPTED",
  cancelled: "CANCELLED",
  ended: "RUN_ENDED",
} as const;

/** Everything that is known about a run of events, as the sum of its journal. */
export class EventRunState implements ReportedState {
  readonly objects: ReportedObject[] = [];
  readonly requests = { planned: 0, sent: 0, resent: 0, waitedMs: 0 };
  stopped: { readonly cause: StopCause } | undefined;
  updatedAt = 0;
  /** How many events, from the first on, were read: of the others only the place is known. */
  described = 0;
  /** Events that were sent although it cannot be told whether the service keeps them. */
  uncertain = 0;
  /** Events that may have been recorded twice. */
  maybeTwice = 0;

  readonly #standing: Standing[] = [];
  readonly #reasons = new Map<number, Reason>();
  readonly #left = new Set<number>();
  /** Events that are sent again although an earlier attempt may have been recorded. */
  readonly #doubted = new Set<number>();
  readonly #verdicts = new Map<string, EventVerdict & { readonly object: number }>();
  readonly #counts = { pending: 0, succeeded: 0, alreadyDone: 0, failed: 0, unattempted: 0, unknown: 0 };

  /** Puts one journal entry into effect. */
  apply(entry: EventEntry): void {
    this.updatedAt = entry.at;
    switch (entry.t) {
      case "begin":
        for (let index = 0; index < entry.items; index += 1) {
          this.objects.push({ index });
          this.#standing.push("pending");
        }
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
        this.#keepVerdict(entry.object, entry.verdict ?? NOTHING_TO_SAY);
        return;
      case "settled":
        this.requests.sent += entry.attempts;
        this.requests.resent += Math.max(0, entry.attempts - 1);
        this.#keepVerdict(entry.object, entry.verdict ?? NOTHING_TO_SAY);
        this.#doubted.delete(entry.object);
        this.#move(entry.object, entry.outcome, entry.reason);
        if (entry.outcome === "succeeded" && entry.verdict?.predicted === "uncertain") this.uncertain += 1;
        if (entry.maybeTwice === true) this.maybeTwice += 1;
        return;
      case "accepted":
        for (const object of entry.objects) {
          this.#keepVerdict(object, NOTHING_TO_SAY);
          this.#move(object, "succeeded", undefined);
        }
        this.requests.sent += entry.objects.length;
        return;
      case "stop":
        this.#stop(entry.cause, entry.reason);
        this.requests.waitedMs += entry.waitedMs;
        return;
      case "resume":
        this.stopped = undefined;
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

  /** Of each kind of verdict the first event, at most ten. */
  verdicts(): readonly (EventVerdict & { readonly object: number })[] {
    return [...this.#verdicts.values()];
  }

  /** Events that left and of which nothing is known: after a crash their answers are lost. */
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
    this.#counts[from] -= 1;
    this.#counts[to] += 1;
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
      else this.#move(object, "unattempted", reason ?? ownReason(STOP_CODES[cause]));
    }
  }

  #reopen(object: number, resend: boolean): void {
    const standing = this.#standing[object];
    if (standing !== "unattempted" && !(resend && standing === "unknown")) return;
    if (standing === "unknown") this.#doubted.add(object);
    this.#move(object, "pending", undefined);
  }

  #keepVerdict(object: number, verdict: EventVerdict): void {
    if (verdict === NOTHING_TO_SAY && this.#verdicts.has(NOTHING_KIND)) return;
    const kind = kindOf(verdict);
    if (this.#verdicts.size < VERDICTS_KEPT && !this.#verdicts.has(kind))
      this.#verdicts.set(kind, { object, ...verdict });
  }
}

function kindOf({ predicted, observed, findings }: EventVerdict): string {
  return [predicted, observed, ...findings.map(ruleAt)].join(" ");
}

/** The verdict on an event as a run keeps it; undefined where there is nothing to say. */
export function verdictOf(predicted: Validation, observed: Settlement["observed"]): EventVerdict | undefined {
  const { verdict, basis, findings } = predicted;
  if (verdict === "recorded" && basis === "documented" && findings.length === 0 && observed === undefined)
    return undefined;
  return {
    predicted: verdict,
    basis,
    ...(observed !== undefined && { observed }),
    findings: findings.slice(0, FINDINGS_KEPT),
  };
}

/** What became of an event, as a line of the journal. */
export function settledEntry(object: number, settlement: Settlement, at: number): EventEntry {
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
