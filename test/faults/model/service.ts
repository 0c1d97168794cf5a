import type { VirtualTime } from "../virtual-time.ts";
import { applyBulk, type Disturbance } from "./apply.ts";
import { treeItems } from "./deletes.ts";
import { READS, type StoredLimits } from "./facts.ts";
import { Failure } from "./failure.ts";
import type { Effect, Fault } from "./faults.ts";
import type { Actor, Project } from "./project.ts";
import { listed, optionRecord, targetingRecord } from "./records.ts";
import { type BulkOperation, type BulkRequest, ImproperRequest, readRequest, touchedBy } from "./requests.ts";
import {
  type ItemError,
  type ItemOutcome,
  NO_OPTION,
  NO_TARGETING,
  NOT_SUPPORTED,
  optionIn,
  targetingIn,
} from "./rules.ts";

/** The writes of all clients to a project. Only one of them runs at a time (management-api 4.2). */
export interface Traffic {
  /** The time until which a write whose answer was lost still runs. */
  busyUntil: number;
  isWriting: boolean;
}

/** A clock is set once: `afterMs` after the service started, by `byMs`. */
export interface Jump {
  readonly afterMs: number;
  readonly byMs: number;
}

/** How a clock differs from another one: how far it is ahead at first, and how that changes. */
export interface DateClock {
  readonly aheadMs: number;
  /** By how many more milliseconds the clock is ahead after each second. */
  readonly driftMs?: number | undefined;
  readonly jump?: Jump | undefined;
}

/** How a model service behaves for one of its clients. */
export interface ServiceOptions {
  readonly project: Project;
  /** The client that sends the requests. */
  readonly actor: Actor;
  readonly traffic: Traffic;
  readonly time: VirtualTime;
  readonly limits: StoredLimits;
  /** How the clock of the header `Date` differs from the clock of IDs; absent: it is the same clock. */
  readonly dateClock?: DateClock | undefined;
  /** How long a request takes, in milliseconds. */
  readonly latencyMs: number;
  /** The service refuses larger bodies with 413. */
  readonly bodyBytes: number;
  /** The service refuses a request that contains this text with 400, without an error code. */
  readonly poison: string | undefined;
  /** Whether List Options returns `total`, and whether answers have a `Date`. */
  readonly tellsTotal: boolean;
  readonly tellsDate: boolean;
  /** The fault of each write request, by its number; the first is 0. */
  readonly faults: ReadonlyMap<number, Fault>;
  /** The numbers of the reads that fail; the first is 0. */
  readonly failingReads: ReadonlySet<number>;
  /**
   * Lets other users write before, during or after the write request with this number, or at the read with this number.
   */
  others(request: number, moment: "before" | "answering" | "after" | "read"): void;
}

const LOCK_WAIT_MS = 50;
const REQUEST_TIMEOUT_MS = 60_000;
/** A small call that needs more requests than this is in an endless loop. */
const MAX_WRITES = 2000;

/**
 * The service of management-api for one client, with faults, in memory and in virtual time. Fails by throwing a
 * `Failure`.
 */
export class ModelService {
  /** What the engine did although it must never do so. */
  readonly improper: string[] = [];
  /** The names and IDs in requests whose answers were lost. */
  readonly inDoubt = new Set<string>();
  /** The service's time at which each name and ID was first sent in a request. */
  readonly leftAt = new Map<string, number>();
  /** The service's time at which the options of a targeting or group were listed, for each list in order. */
  readonly #lists: { readonly place: string; readonly at: number }[] = [];
  /** The names and IDs in each request whose answer was lost. */
  readonly #lost: (readonly string[])[] = [];
  /** What a later request created although an answer about it had been lost before. */
  readonly #madeLater = new Set<string>();
  writes = 0;
  reads = 0;
  /**
   * The time before which nothing may be sent, because of the last answer or because it was lost (management-api 4.2,
   * 4.3).
   */
  notBefore = 0;
  /** Whether faults and other writers still happen. */
  disturbed = true;
  readonly #options: ServiceOptions;
  readonly #beganAt: number;

  constructor(options: ServiceOptions) {
    this.#options = options;
    this.#beganAt = options.time.now();
  }

  /** Answers a bulk request: `list` is the JSON array of its items. */
  async bulk(operation: BulkOperation, list: string) {
    const { traffic } = this.#options;
    if (traffic.isWriting) throw this.complain("two writes at once: a 409 that could be avoided");
    traffic.isWriting = true;
    try {
      // A request takes time, in which others can do something.
      await Promise.resolve();
      return this.#write(operation, list);
    } finally {
      traffic.isWriting = false;
    }
  }

  #write(operation: BulkOperation, list: string) {
    const request = this.#understood(operation, list);
    const number = this.writes;
    this.writes += 1;
    if (number > MAX_WRITES) throw this.complain(`more than ${MAX_WRITES} write requests`);
    const now = this.#options.project.now();
    for (const key of touchedBy(request).flat()) if (!this.leftAt.has(key)) this.leftAt.set(key, now);
    if (this.#options.time.now() < this.notBefore) this.complain(`${operation} was sent again without a wait`);
    const fault = this.disturbed ? this.#options.faults.get(number) : undefined;
    if (this.disturbed) this.#options.others(number, "before");
    try {
      const answer = this.#answer(request, list, fault);
      this.#holdOff(Math.max(0, ...answer.results.map(busyFor)));
      return answer;
    } catch (thrown) {
      if (thrown instanceof Failure) this.#holdOff(waitAfter(thrown));
      throw thrown;
    } finally {
      if (this.disturbed) this.#options.others(number, "after");
    }
  }

  /**
   * Returns whether a write whose answer was lost still runs. Other clients have to wait for it, too (management-api
   * 4.2).
   */
  isBusy(): boolean {
    return this.#options.time.now() < this.#options.traffic.busyUntil;
  }

  /**
   * Returns whether it is proven that no lost request created this name: a later request created something else from
   * each of them, and a request is applied completely or not at all (management-api 4.1).
   */
  madeBesides(name: string): boolean {
    const lost = this.#lost.filter((keys) => keys.includes(name));
    return lost.length > 0 && lost.every((keys) => keys.some((key) => key !== name && this.#madeLater.has(key)));
  }

  /** Returns when the options of a targeting or group were last listed before this time of the service. */
  lastListed(place: string, before: number): number | undefined {
    return this.#lists.findLast((list) => list.place === place && list.at <= before)?.at;
  }

  async getTargeting(targetingId: string) {
    this.#read();
    const targeting = targetingIn(this.#options.project, targetingId);
    if (targeting === undefined) throw rejected(NO_TARGETING);
    return targetingRecord(targeting);
  }

  async listOptions(
    targetingId: string,
    query: { readonly limit?: number; readonly offset?: number; readonly parent?: string | undefined } = {},
  ) {
    const date = this.#read();
    const { project, tellsTotal } = this.#options;
    const { limit = READS.listLimit, offset = 0, parent } = query;
    if (limit < 1 || limit > READS.listLimit || offset < 0) throw this.complain(`listOptions ${limit} ${offset}`);
    if (targetingIn(project, targetingId) === undefined) throw rejected(NO_TARGETING);
    if (parent !== undefined) {
      const group = optionIn(project, parent);
      if (group?.targeting !== targetingId) throw rejected(NO_OPTION);
      if (!group.isGroup) throw rejected(NOT_SUPPORTED);
    }
    this.#lists.push({ place: parent ?? targetingId, at: project.now() });
    const all = listed(project, targetingId, parent);
    const items = all.slice(offset, offset + limit).map(optionRecord);
    return { items, ...(tellsTotal ? { total: all.length } : {}), ...date };
  }

  async getOption(optionId: string, query: { readonly limit?: number; readonly offset?: number } = {}) {
    this.#read();
    const { limit = READS.getLimit, offset = 0 } = query;
    const inRange = limit >= 1 && limit <= READS.getLimit && offset >= 0 && offset <= READS.getOffset;
    if (!inRange) throw this.complain(`getOption ${limit} ${offset}`);
    const option = optionIn(this.#options.project, optionId);
    if (option === undefined) throw rejected(NO_OPTION);
    return { option: optionRecord(option), contexts: [...option.contexts].slice(offset, offset + limit) };
  }

  #answer(request: BulkRequest, list: string, fault: Fault | undefined) {
    const { time, latencyMs, poison, bodyBytes } = this.#options;
    if (fault?.kind === "notSent") throw new Failure({ kind: "notSent" });
    time.advance(latencyMs / 2);
    const body = `{"items":${list}}`;
    if (Buffer.byteLength(body, "utf8") > bodyBytes)
      throw new Failure({ kind: "refused", as: "tooLarge", statusCode: 413 });
    if (fault?.kind === "refused") throw refusedWhole(fault.as);
    if (poison !== undefined && body.includes(poison))
      throw new Failure({ kind: "refused", as: "validation", statusCode: 400 });
    if (fault?.kind === "slow" && fault.moment === "before") time.advance(fault.ms);
    this.#waitForOtherWrites(fault);
    const effect = effectOf(fault);
    if (effect !== undefined) throw this.#loseAnswer(request, effect, fault);
    this.#refuseWhole(request);
    const outcomes = this.#apply(request, disturbanceOf(request, fault));
    const made = touchedBy(request).filter((_, index) => isMade(outcomes[index]));
    for (const key of made.flat()) if (this.inDoubt.has(key)) this.#madeLater.add(key);
    const date = this.#date();
    this.#answerLate(fault);
    return { results: outcomes.map(resultOf), ...date };
  }

  /** Lets others write while a slow answer is on its way. */
  #answerLate(fault: Fault | undefined): void {
    const { time, latencyMs } = this.#options;
    if (fault?.kind !== "slow" || fault.moment !== "after") {
      time.advance(latencyMs / 2);
      return;
    }
    time.advance(0.75 * fault.ms);
    if (this.disturbed) this.#options.others(this.writes - 1, "answering");
    time.advance(0.25 * fault.ms);
  }

  #holdOff(ms: number): void {
    this.notBefore = this.#options.time.now() + ms;
  }

  /** Waits briefly for a running write. If that still runs, fails with 409 (management-api 4.2). */
  #waitForOtherWrites(fault: Fault | undefined): void {
    const { time, traffic } = this.#options;
    const runs = time.now() < traffic.busyUntil;
    if (runs) time.advance(LOCK_WAIT_MS);
    const retryAfterMs = fault?.kind === "busy" ? fault.retryAfterMs : (traffic.busyUntil - time.now()) % 2000;
    if (fault?.kind === "busy" || time.now() < traffic.busyUntil) {
      throw new Failure({ kind: "busy", retryAfterMs: Math.max(0, retryAfterMs) });
    }
  }

  /** Loses the answer. The fault decides whether and when the request is applied. */
  #loseAnswer(request: BulkRequest, effect: Effect, fault: Fault | undefined): Failure {
    const { time, latencyMs, traffic } = this.#options;
    const keys = touchedBy(request).flat();
    this.#lost.push(keys);
    for (const key of keys) this.inDoubt.add(key);
    const lost = lostBy(fault);
    if (effect === "whole" || effect === "part") {
      this.#applyUnlessRefused(request, effect === "part" ? { takenOver: (index) => index % 2 === 1 } : {});
    } else if (effect !== "none") {
      const at = time.now() + (fault?.kind === "timeout" ? REQUEST_TIMEOUT_MS : 0) + effect.lateMs;
      traffic.busyUntil = at;
      time.at(at, () => this.#applyUnlessRefused(request, {}));
    }
    time.advance(fault?.kind === "timeout" ? REQUEST_TIMEOUT_MS : latencyMs / 2);
    return lost;
  }

  #applyUnlessRefused(request: BulkRequest, disturbance: Disturbance): void {
    try {
      this.#refuseWhole(request);
    } catch {
      return;
    }
    const isUnit = request.operation !== "renameTargetings" && request.operation !== "updateOptions";
    this.#apply(request, isUnit ? {} : disturbance);
  }

  /**
   * Refuses a deletion of too many groups and sub-options (management-api 7.2,
   * TARGETING_CATEGORY_TREE_ITEMS_LIMIT_EXCEEDED).
   */
  #refuseWhole(request: BulkRequest): void {
    if (request.operation !== "deleteOptions") return;
    const { project, limits } = this.#options;
    const count = treeItems(project, request.items);
    if (count <= limits.treeItems) return;
    const errorCode = "TARGETING_CATEGORY_TREE_ITEMS_LIMIT_EXCEEDED";
    const error = { statusCode: 400, errorCode, detail: { limit: limits.treeItems, count } };
    throw rejected({ error });
  }

  #apply(request: BulkRequest, disturbance: Disturbance): readonly ItemOutcome[] {
    const { project, limits, actor } = this.#options;
    return applyBulk(project, limits, actor, request, disturbance);
  }

  #understood(operation: BulkOperation, list: string): BulkRequest {
    try {
      return readRequest(operation, list);
    } catch (thrown) {
      if (thrown instanceof ImproperRequest) this.improper.push(thrown.message);
      throw thrown;
    }
  }

  #read(): { readonly serverTime?: number } {
    const { time, latencyMs, failingReads } = this.#options;
    const number = this.reads;
    this.reads += 1;
    if (this.disturbed) this.#options.others(number, "read");
    time.advance(latencyMs / 2);
    const date = this.#date();
    time.advance(latencyMs / 2);
    if (this.disturbed && failingReads.has(number)) throw new Failure({ kind: "lost", reason: "reset" });
    return date;
  }

  /** Returns the header `Date`, which has whole seconds. */
  #date(): { readonly serverTime?: number } {
    const { time, project, dateClock, tellsDate } = this.#options;
    const ahead = dateClock === undefined ? 0 : aheadAfter(dateClock, time.now() - this.#beganAt);
    return tellsDate ? { serverTime: Math.floor((project.now() + ahead) / 1000) * 1000 } : {};
  }

  /** Records something that no client may do. */
  complain(what: string): ImproperRequest {
    this.improper.push(what);
    return new ImproperRequest(what);
  }
}

/** Returns by how much a clock is ahead after this many milliseconds. */
function aheadAfter({ aheadMs, driftMs = 0, jump }: DateClock, ms: number): number {
  const jumped = jump !== undefined && ms >= jump.afterMs ? jump.byMs : 0;
  return Math.round(aheadMs + (driftMs * ms) / 1000) + jumped;
}

/** How long a client waits at least after a lost answer. The documents say "wait", but not how long. */
const LOST_WAIT_MS = 100;

/** Returns how long a client has to wait before it sends the next request. */
function waitAfter({ failure }: Failure): number {
  if (failure.kind === "busy") return failure.retryAfterMs;
  return failure.kind === "lost" ? LOST_WAIT_MS : 0;
}

function busyFor({ error }: { readonly error?: ItemError }): number {
  const wait = error?.errorCode === "CONTEXT_TARGETING_WRITE_IN_PROGRESS" ? error.detail?.retryAfterMs : 0;
  // The documents say 0 to 2,000, so a client may ignore larger values.
  return typeof wait === "number" ? Math.min(wait, 2000) : 0;
}

function isMade(outcome: ItemOutcome | undefined): boolean {
  return outcome !== undefined && "data" in outcome;
}

function effectOf(fault: Fault | undefined): Effect | undefined {
  return fault?.kind === "status" || fault?.kind === "reset" || fault?.kind === "timeout" ? fault.effect : undefined;
}

function disturbanceOf(request: BulkRequest, fault: Fault | undefined): Disturbance {
  const from = fault?.kind === "takeover" || fault?.kind === "uncatched" ? fault.from * request.items.length : 0;
  if (fault?.kind === "takeover") return { takenOver: (index) => index >= from, retryAfterMs: fault.retryAfterMs };
  if (fault?.kind === "uncatched") return { uncatched: (index) => index >= from, addFirst: fault.addFirst };
  return {};
}

function lostBy(fault: Fault | undefined): Failure {
  if (fault?.kind === "status") return new Failure({ kind: "lost", reason: "5xx", statusCode: fault.statusCode });
  return new Failure({ kind: "lost", reason: fault?.kind === "timeout" ? "no answer in time" : "reset" });
}

const REFUSED_WITH = { unauthorized: 401, forbidden: 403, validation: 400, tooLarge: 413 } as const;

function refusedWhole(as: keyof typeof REFUSED_WITH): Failure {
  return new Failure({ kind: "refused", as, statusCode: REFUSED_WITH[as] });
}

function rejected({ error }: { readonly error: ItemError }): Failure {
  return new Failure({ kind: "refused", as: "business", ...error });
}

function resultOf(outcome: ItemOutcome, index: number) {
  if ("data" in outcome) return { index, success: true, data: outcome.data };
  const { detail, ...error } = outcome.error;
  return { index, success: false, error: { ...error, ...(detail === undefined ? {} : { detail: { ...detail } }) } };
}
