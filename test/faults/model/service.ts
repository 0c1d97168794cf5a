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

/** The writes of a project by all clients. Only one of them runs at a time (management-api 4.2). */
export interface Traffic {
  /** Until when a write whose answer was lost is still running. */
  busyUntil: number;
  isWriting: boolean;
}

/** A clock is set once, so many milliseconds after the service began. */
export interface Jump {
  readonly afterMs: number;
  readonly byMs: number;
}

/** A clock that differs from another one: by how much it is ahead at first, and how that changes. */
export interface DateClock {
  readonly aheadMs: number;
  /** How much further ahead it is after each second, in milliseconds. */
  readonly driftMs?: number | undefined;
  readonly jump?: Jump | undefined;
}

/** How a model service behaves towards one of its clients. */
export interface ServiceOptions {
  readonly project: Project;
  /** The client that sends the requests. */
  readonly actor: Actor;
  readonly traffic: Traffic;
  readonly time: VirtualTime;
  readonly limits: StoredLimits;
  /** How the clock behind the header `Date` differs from the one behind IDs, where these are two. */
  readonly dateClock?: DateClock | undefined;
  /** How long a request takes, in milliseconds. */
  readonly latencyMs: number;
  /** A larger body, in bytes, is refused with 413. */
  readonly bodyBytes: number;
  /** A request that contains this text is refused with 400, without a code. */
  readonly poison: string | undefined;
  /** List Options says `total`, and answers carry a `Date`. */
  readonly tellsTotal: boolean;
  readonly tellsDate: boolean;
  /** Faults by the number of the write request, counted from 0. */
  readonly faults: ReadonlyMap<number, Fault>;
  /** Reads that fail, counted from 0. */
  readonly failingReads: ReadonlySet<number>;
  /** What others do around the write request of a number, or at the read of a number. */
  others(request: number, moment: "before" | "answering" | "after" | "read"): void;
}

const LOCK_WAIT_MS = 50;
const REQUEST_TIMEOUT_MS = 60_000;
/** An engine that sends more requests than this for a small call is in an endless loop. */
const MAX_WRITES = 2000;

/** The service of management-api towards one client, in memory and in virtual time, with faults. Throws Failures. */
export class ModelService {
  /** Everything that the engine did although no engine may do it. */
  readonly improper: string[] = [];
  /** The names and IDs in requests whose answers were lost. */
  readonly inDoubt = new Set<string>();
  /** The service's time at which each name and ID was first sent in a request. */
  readonly leftAt = new Map<string, number>();
  /** Requests whose answers were lost: the names and IDs in each. */
  readonly #lost: (readonly string[])[] = [];
  /** What a later request made, though an answer about it had been lost. */
  readonly #madeLater = new Set<string>();
  writes = 0;
  reads = 0;
  /** Before when nothing may be sent, since the last answer said so or was lost (management-api 4.2, 4.3). */
  notBefore = 0;
  /** Whether faults and other writers are still about. */
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
      // Others get a turn meanwhile: a request takes time.
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

  /** Whether a write whose answer was lost still runs: others have to wait for it too (management-api 4.2). */
  isBusy(): boolean {
    return this.#options.time.now() < this.#options.traffic.busyUntil;
  }

  /**
   * Whether every lost request that held a name was shown not to have been applied: a later one made something else out
   * of it (management-api 4.1, "applied as one unit").
   */
  madeBesides(name: string): boolean {
    const lost = this.#lost.filter((keys) => keys.includes(name));
    return lost.length > 0 && lost.every((keys) => keys.some((key) => key !== name && this.#madeLater.has(key)));
  }

  async getTargeting(targetingId: string) {
    this.#read();
    const targeting = targetingIn(this.#options.project, targetingId);
    if (targeting === undefined) throw rejected(NO_TARGETING);
    return targetingRecord(targeting);
  }

  async listOptions(
    targetingId: string,
    query: { readonly limit?: number; readonly offset?: number; readonly parent?: string } = {},
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

  /** While an answer takes its time, others write. */
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

  /** management-api 4.2: a write waits briefly for the write that runs, then fails with 409. */
  #waitForOtherWrites(fault: Fault | undefined): void {
    const { time, traffic } = this.#options;
    const runs = time.now() < traffic.busyUntil;
    if (runs) time.advance(LOCK_WAIT_MS);
    const retryAfterMs = fault?.kind === "busy" ? fault.retryAfterMs : (traffic.busyUntil - time.now()) % 2000;
    if (fault?.kind === "busy" || time.now() < traffic.busyUntil) {
      throw new Failure({ kind: "busy", retryAfterMs: Math.max(0, retryAfterMs) });
    }
  }

  /** The answer is lost; whether and when the request is applied is the fault's choice. */
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

  /** management-api 7.2, TARGETING_CATEGORY_TREE_ITEMS_LIMIT_EXCEEDED. */
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

  /** The header `Date`: whole seconds. */
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

/** By how much a clock is ahead after so many milliseconds. */
function aheadAfter({ aheadMs, driftMs = 0, jump }: DateClock, ms: number): number {
  const jumped = jump !== undefined && ms >= jump.afterMs ? jump.byMs : 0;
  return Math.round(aheadMs + (driftMs * ms) / 1000) + jumped;
}

/** The least that a client waits after a lost answer; the documents say "wait", and not how long. */
const LOST_WAIT_MS = 100;

/** How long a client has to wait before it sends anything more. */
function waitAfter({ failure }: Failure): number {
  if (failure.kind === "busy") return failure.retryAfterMs;
  return failure.kind === "lost" ? LOST_WAIT_MS : 0;
}

function busyFor({ error }: { readonly error?: ItemError }): number {
  const wait = error?.errorCode === "CONTEXT_TARGETING_WRITE_IN_PROGRESS" ? error.detail?.retryAfterMs : 0;
  // The documents say 0 to 2,000: a client need not take more at its word.
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
