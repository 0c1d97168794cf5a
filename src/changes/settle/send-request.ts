import { retryAfterIn } from "../../api/answers.ts";
import { type ApiError, BusyError, isApiError, orError, RATE_LIMITED } from "../../api/errors.ts";
import type { BulkAnswer } from "../../api/management.ts";
import { defined } from "../../platform/by-key.ts";
import { ownReason, type Reason } from "../../runs/outcome.ts";
import { HeldBackError, type Intent, LeaseLostError, requestFence, type Turn } from "../../runs/turn.ts";
import { isUlid, ulidTime } from "../../spec/names-and-contexts.ts";
import { type BulkResult, type ItemError, itemError } from "../../spec/records.ts";
import { APPLIED_AS, type BulkOperation } from "../../spec/routes.ts";
import { ADDRESS_REJECTIONS, itemReason, requestReason } from "../api-reasons.ts";
import { isCreate, type MadeRows, type Sent, type Step, type StepChange } from "../rows/entries.ts";
import { type ChangeDriver, waited } from "./evidence.ts";
import { type Answered, isInDoubtNameConflict, settleAnswers } from "./settle-items.ts";

type Attempt =
  | { readonly kind: "answer"; readonly answer: BulkAnswer }
  | { readonly kind: "error"; readonly error: ApiError }
  /** Nothing was sent, because the run was asked to stop. */
  | { readonly kind: "withheld" }
  /** Nothing was sent, because another process has the write lock. */
  | { readonly kind: "turnLost" };

/**
 * How the sending of a request ended. `turnLost`: a part was not sent, because this process lost the write lock, or
 * because objects must first be compared with their previous values, or looked up after a lost answer. This part is
 * sent later, with the lock.
 */
export type BatchEnd =
  | { readonly ended: false; readonly turnLost?: true }
  | { readonly ended: true; readonly reason: Reason };

const GOES_ON: BatchEnd = { ended: false };
const TURN_LOST: BatchEnd = { ended: false, turnLost: true };

interface Sending {
  batches: readonly Batch[];
  again: boolean;
  /** The time left for retries, in ms. The halves of a request share it. Waiting for the write lock does not use it. */
  budgetMs: number;
}

export function sendingOf(driver: ChangeDriver, steps: readonly number[]): Sending {
  return { batches: [fresh(steps)], again: false, budgetMs: driver.retryBudgetMs };
}

function fresh(ids: readonly number[]): Batch {
  return { ids, failures: 0, uncatched: 0, refused: 0 };
}

/**
 * Sends a request until every item has an outcome: waits, sends it again, or splits it into halves (management-api 4.2,
 * 4.3). Each attempt needs the write lock and is recorded before it is sent. The run ends if the retry budget is used
 * up, or if the service would reject every further request. If the signal is aborted or the write lock is lost, the
 * remaining items stay pending. Throws a LeaseLostError if another process executes the run.
 */
export async function sendBatch(driver: ChangeDriver, sending: Sending, turn: Turn): Promise<BatchEnd> {
  const batches = [...sending.batches];
  for (let batch = batches.shift(); batch !== undefined; batch = batches.shift()) {
    if (!driver.mayAnnounce()) return GOES_ON;
    if (driver.clock.monotonic() >= driver.compareAt || driver.lostCreates !== undefined) {
      sending.batches = [batch, ...batches];
      return TURN_LOST;
    }
    const startedAt = driver.clock.now();
    const attempt = await attemptOnce(driver, batch.ids, sending.again, turn);
    if (attempt.kind === "withheld") return GOES_ON;
    if (attempt.kind === "turnLost") {
      sending.batches = [batch, ...batches];
      return TURN_LOST;
    }
    const isHeldBack = attempt.kind === "error" && attempt.error instanceof BusyError && attempt.error.isHeldBack;
    if (isHeldBack) driver.record({ t: "withheld", at: driver.clock.now() });
    else sending.again = true;
    const next =
      attempt.kind === "answer"
        ? await settleAnswer(driver, batch, attempt.answer)
        : await handleError(driver, batch, attempt.error);
    if (next.kind === "end") return { ended: true, reason: next.reason };
    if (next.kind === "halve") batches.unshift(...halves(next.ids).map(fresh));
    if (next.kind === "resend") {
      // The answer is written to disk before the pause, so that a crash during the pause does not lose it.
      if (attempt.kind === "answer") await driver.flush();
      // Two kinds of attempts do not use the retry budget. One is a request whose last byte was not sent because of a
      // HeldBackError (`isFree`). The other is a refused item that an earlier attempt may have applied; it has its own
      // limit (`refused`).
      const isFailing = !next.isFree && next.batch.refused === batch.refused;
      if (isFailing) sending.budgetMs -= driver.clock.now() - startedAt + next.waitMs;
      if (sending.budgetMs < 0) return { ended: true, reason: giveUp(driver, next.batch.ids, next.reason) };
      if (!(await pause(driver, next.waitMs, isHeldBack ? {} : next.reason))) return GOES_ON;
      batches.unshift(next.batch);
    }
  }
  return GOES_ON;
}

async function attemptOnce(
  driver: ChangeDriver,
  steps: readonly number[],
  again: boolean,
  turn: Turn,
): Promise<Attempt> {
  const [first] = steps;
  const operation = first === undefined ? undefined : driver.state.steps.partAt(first)?.operation;
  if (operation === undefined) throw new RangeError("a request must contain at least one item");
  // Connected before the journal records that a request is about to be sent, because little time may pass between the
  // record and the request.
  const unconnected = await orError(isApiError, driver.connect(operation));
  const sentAt = driver.clock.now();
  driver.record({ t: "send", steps, again, ...sentBy(driver, sentAt) });
  const intent = await announceOrWithhold(driver, turn);
  if (intent === undefined) return { kind: "turnLost" };
  if (!(await driver.mayLeave(intent))) {
    driver.record({ t: "withheld", at: driver.clock.now() });
    return { kind: "withheld" };
  }
  if (unconnected instanceof Error) return { kind: "error", error: unconnected };
  const fence = requestFence([turn, driver.lease], intent, {
    renew: () => driver.intend(turn),
    onLate: () => driver.record({ t: "late", steps, at: driver.clock.now() }),
  });
  // Read right before sending, because each delay makes the comparison with the service's clock less precise.
  const leftAt = driver.clock.now();
  const answer = await orError(isApiError, driver.send(operation, steps, fence));
  if (answer instanceof Error) return { kind: "error", error: answer };
  const receivedAt = driver.clock.now();
  const { serverTime } = answer;
  if (serverTime !== undefined) {
    driver.serverClock.observe({ from: serverTime, to: serverTime + 999, sentAt: leftAt, receivedAt });
  }
  driver.serverClock.observeMade(madeTimes(operation, answer), leftAt, receivedAt);
  return { kind: "answer", answer };
}

function sentBy({ clock, serverClock }: ChangeDriver, at: number): Sent {
  return { at, ...defined({ machine: clock.machine, ahead: serverClock.ahead(at) }) };
}

/**
 * Writes the entry about the next request to disk, and renews the leases. If the write lock is lost, records that
 * nothing was sent, and returns undefined.
 */
async function announceOrWithhold(driver: ChangeDriver, turn: Turn): Promise<Intent | undefined> {
  try {
    return await driver.intend(turn);
  } catch (thrown) {
    if (!(thrown instanceof LeaseLostError) || driver.lease.lost.aborted) throw thrown;
    driver.record({ t: "withheld", at: driver.clock.now() });
    return undefined;
  }
}

/** Returns the times in the IDs of the first and the last object that a request created. The others lie between. */
function madeTimes(operation: BulkOperation, { results }: BulkAnswer): readonly number[] {
  if (!isCreate({ operation })) return [];
  let first: string | undefined;
  let last: string | undefined;
  for (const { success, data } of results) {
    const id = data?._id;
    if (!success || typeof id !== "string") continue;
    if (first === undefined || id < first) first = id;
    if (last === undefined || id > last) last = id;
  }
  return [first, last].flatMap((id) => (id !== undefined && isUlid(id) ? ulidTime(id) : []));
}

/** Ends steps that are not sent again: as `unknown` if the step may have been applied, otherwise as `notApplied`. */
function giveUp(driver: ChangeDriver, ids: readonly number[], reason: Reason): Reason {
  driver.change(
    stepsOf(driver, ids).map((step) => unknownIfSuspect(driver, step, { step: step.id, to: "notApplied", reason })),
  );
  return reason;
}

async function pause(driver: ChangeDriver, ms: number, { statusCode }: Pick<Reason, "statusCode">): Promise<boolean> {
  const began = driver.clock.monotonic();
  driver.progress(ms);
  const isOver = await waited(driver, ms);
  const passed = Math.round(driver.clock.monotonic() - began);
  if (isOver) driver.record({ t: "waited", ms: passed, ...defined({ statusCode }) });
  return isOver;
}

function halves(ids: readonly number[]): readonly (readonly number[])[] {
  const middle = Math.ceil(ids.length / 2);
  return [ids.slice(0, middle), ids.slice(middle)];
}

/** How often a request is sent again because of items with the error `UNCATCHED` before it is split or given up. */
const UNCATCHED_TRIES = 3;

/** Applies an answer, item by item. Returns what must be sent again (management-api 4.2, 4.3). */
export async function settleAnswer(driver: ChangeDriver, batch: Batch, answer: BulkAnswer): Promise<Next> {
  const made = madeRows(driver, batch.ids, answer);
  if (made !== undefined) {
    driver.change([], { made });
    return { kind: "settled" };
  }
  const request = stepsOf(driver, batch.ids);
  const answered: Answered[] = [];
  // Creates whose names are taken, perhaps by an earlier attempt. If other items of the request are sent again, so are
  // these: the answers may show whether an earlier attempt created the objects with these names.
  const met: Answered[] = [];
  const busy: Step[] = [];
  const uncatched: Step[] = [];
  let retryAfterMs = 0;
  for (const result of answer.results) {
    const step = request[result.index];
    if (step === undefined) continue;
    const code = result.error?.errorCode;
    if (!result.success && code === "CONTEXT_TARGETING_WRITE_IN_PROGRESS") {
      busy.push(step);
      retryAfterMs = Math.max(retryAfterMs, retryAfterIn(result.error?.detail));
    } else if (!result.success && (code === "UNCATCHED" || (code === undefined && isServerFault(result.error)))) {
      uncatched.push(step);
    } else {
      (isInDoubtNameConflict(driver, step, result) ? met : answered).push({ step, result });
    }
  }
  const isWhole = busy.length + uncatched.length === 0;
  await settleAnswers(driver, request, isWhole ? [...answered, ...met] : answered);
  return isWhole ? { kind: "settled" } : afterAnswer(driver, batch, { request, busy, uncatched, met, retryAfterMs });
}

/** Returns the created options if a request had only consecutive rows, all created as sent. This makes imports fast. */
function madeRows({ state }: ChangeDriver, ids: readonly number[], { results }: BulkAnswer): MadeRows | undefined {
  const [from = 0] = ids;
  if (!state.steps.areRows(ids)) return undefined;
  const made: (string | null)[] = [];
  for (const [position, { success, data }] of results.entries()) {
    const count = data?.contextCount;
    const isExpected = typeof count !== "number" || count === state.steps.weightOf(from + position).contextIds;
    if (!success || !isExpected) return undefined;
    made.push(typeof data?._id === "string" ? data._id : null);
  }
  return { from, ids: made };
}

async function afterAnswer(
  driver: ChangeDriver,
  batch: Batch,
  left: {
    readonly request: readonly Step[];
    readonly busy: readonly Step[];
    readonly uncatched: readonly Step[];
    readonly met: readonly Answered[];
    readonly retryAfterMs: number;
  },
): Promise<Next> {
  const { request, busy, uncatched } = left;
  const met = left.met.map(({ step }) => step);
  const operation = (busy[0] ?? uncatched[0])?.operation;
  if (operation === undefined) return { kind: "settled" };
  const tries = uncatched.length > 0 ? batch.uncatched + 1 : 0;
  if (tries > UNCATCHED_TRIES) {
    if (APPLIED_AS[operation] === "unit" && uncatched.length > 1) {
      return { kind: "halve", ids: idsOf(inOrder([...uncatched, ...met])) };
    }
    await giveUpOnUncatched(driver, request, uncatched);
    if (busy.length === 0) {
      // The service checks names before it answers UNCATCHED, so the names of those items were free. It creates all
      // items of a request or none. So no earlier attempt was applied.
      await settleAnswers(driver, request, left.met, true);
      return { kind: "settled" };
    }
  }
  const resent = inOrder([...busy, ...met, ...(tries > UNCATCHED_TRIES ? [] : uncatched)]);
  // The service may have applied the `add` of an update that got UNCATCHED, without its `remove`. The journal must say
  // so before the run can stop.
  const halfDone = resent.filter((step) => uncatched.includes(step) && addsAndRemoves(step));
  if (halfDone.length > 0) driver.change(halfDone.map((step) => ({ step: step.id, to: "suspect" })));
  const failures = batch.failures + (uncatched.length > 0 ? 1 : 0);
  const waitMs = Math.max(
    busy.length > 0 ? Math.max(left.retryAfterMs, SHORTEST_BUSY_WAIT_MS) : 0,
    uncatched.length > 0 ? backoff(driver, failures) : 0,
  );
  return {
    kind: "resend",
    batch: { ...batch, ids: idsOf(resent), failures, uncatched: tries },
    waitMs,
    reason: itemReason(operation, {
      statusCode: busy.length > 0 ? 409 : 500,
      errorCode: busy.length > 0 ? "CONTEXT_TARGETING_WRITE_IN_PROGRESS" : "UNCATCHED",
    }),
  };
}

function inOrder(steps: readonly Step[]): readonly Step[] {
  return steps.toSorted((one, other) => one.id - other.id);
}

/**
 * Decides about items that got UNCATCHED too often. They count as refused, except two kinds that may have been applied
 * and become `unknown`: updates that add and remove, whose `add` is applied first (management-api 4.1), and items of
 * which an earlier attempt got no answer.
 */
async function giveUpOnUncatched(
  driver: ChangeDriver,
  request: readonly Step[],
  uncatched: readonly Step[],
): Promise<void> {
  const error = { statusCode: 500, errorCode: "UNCATCHED" };
  const isOpen = (step: Step): boolean => driver.state.isSuspect(step.id) || addsAndRemoves(step);
  const open = uncatched.filter(isOpen);
  const because = ownReason("PARTLY_APPLIED", { because: error.errorCode });
  const asUnknown = (step: Step) => ({ step: step.id, to: "unknown", reason: because }) as const;
  driver.change(
    open.map((step) => (addsAndRemoves(step) ? asUnknown(step) : unknownIfSuspect(driver, step, asUnknown(step)))),
  );
  const failed = uncatched.filter((step) => !open.includes(step));
  const answered = failed.map((step, index) => ({ step, result: { index, success: false, error } }));
  await settleAnswers(driver, request, answered);
}

function addsAndRemoves({ operation, item }: Step): boolean {
  return operation === "updateOptions" && item.contexts?.add !== undefined && item.contexts.remove !== undefined;
}

function isServerFault(error: ItemError | null | undefined): boolean {
  return (error?.statusCode ?? 500) >= 500;
}

const REFUSED_TRIES = 3;

/** Applies an error that concerns the whole request. */
export async function handleError(driver: ChangeDriver, batch: Batch, error: ApiError): Promise<Next> {
  const steps = stepsOf(driver, batch.ids);
  const [first] = steps;
  if (first === undefined) return { kind: "settled" };
  const reason = requestReason(first.operation, error);
  const failures = batch.failures + 1;
  const resend = (waitMs: number, more: Partial<Batch> = {}): Next => ({
    kind: "resend",
    batch: { ...batch, ...more },
    waitMs,
    reason,
  });
  switch (error.effect) {
    case "busy":
      driver.change([]);
      // Only for rate limits, each wait is longer than the last. The service holds its own lock only briefly.
      return error.statusCode === RATE_LIMITED
        ? resend(Math.max(error.retryAfterMs, backoff(driver, failures)), { failures })
        : resend(Math.max(error.retryAfterMs, SHORTEST_BUSY_WAIT_MS));
    case "notSent":
      driver.change([]);
      // A request with a HeldBackError has no effect on the service, so it does not use the retry budget.
      if (error.cause instanceof HeldBackError) return { kind: "resend", batch, waitMs: 0, reason, isFree: true };
      return resend(backoff(driver, failures), { failures });
    case "ambiguous":
      driver.change(steps.map((step) => ({ step: step.id, to: "suspect" })));
      if (first.operation === "addOptions") driver.lostCreates = "now";
      return resend(backoff(driver, failures), { failures });
    case "rejected":
      if (endsTheRun(error)) {
        driver.change(steps.map((step) => unknownIfSuspect(driver, step, { step: step.id, to: "refused", reason })));
        return { kind: "end", reason };
      }
      if (steps.length > 1) {
        driver.change([]);
        return { kind: "halve", ids: batch.ids };
      }
      if (staysInDoubt(driver, first)) {
        const refused = batch.refused + 1;
        driver.change([]);
        if (refused < REFUSED_TRIES) return resend(backoff(driver, refused), { refused });
        const because = { ...reason, detail: { ...reason.detail, refused: true } };
        driver.change([unknownIfSuspect(driver, first, { step: first.id, to: "failed", reason: because })]);
      } else await settleAnswers(driver, [first], [{ step: first, result: asResult(error) }]);
      return { kind: "settled" };
  }
}

/**
 * Returns whether an earlier attempt may have applied an item that is now refused. If it was already refused before the
 * run was resumed, this second refusal ends the doubt.
 */
function staysInDoubt({ state }: ChangeDriver, { id }: Step): boolean {
  return state.isSuspect(id) && !state.wasRefusedInDoubt(id);
}

function endsTheRun(error: Extract<ApiError, { readonly effect: "rejected" }>): boolean {
  const { kind, errorCode } = error;
  const isDenied = kind === "unauthorized" || kind === "forbidden" || errorCode === "PROJECT_NOT_FOUND";
  return isDenied || ADDRESS_REJECTIONS.has(kind);
}

function asResult(error: Extract<ApiError, { readonly effect: "rejected" }>): BulkResult {
  const { statusCode, errorCode, messages } = error;
  const detail = { ...error.detail, ...(messages.length > 0 && { messages: messages.slice(0, 3) }) };
  return { index: 0, success: false, error: itemError.parse({ statusCode, errorCode, detail }) };
}

/** The minimum wait after status 409, in milliseconds, because the service may ask for a wait of 0. */
const SHORTEST_BUSY_WAIT_MS = 50;
const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 10_000;

export interface Batch {
  readonly ids: readonly number[];
  readonly failures: number;
  readonly uncatched: number;
  readonly refused: number;
}

export type Next =
  | { readonly kind: "settled" }
  | { readonly kind: "halve"; readonly ids: readonly number[] }
  | { readonly kind: "end"; readonly reason: Reason }
  | {
      readonly kind: "resend";
      readonly batch: Batch;
      readonly waitMs: number;
      readonly reason: Reason;
      readonly isFree?: true;
    };

function stepsOf({ state }: ChangeDriver, ids: readonly number[]): readonly Step[] {
  return ids.flatMap((id) => state.steps.at(id) ?? []);
}

function idsOf(steps: readonly Step[]): readonly number[] {
  return steps.map(({ id }) => id);
}

/** Returns `change`, or `unknown` if an earlier attempt of the step may have been applied. */
function unknownIfSuspect(
  driver: ChangeDriver,
  step: Step,
  change: Extract<
    StepChange,
    { readonly reason: Reason; readonly to: "failed" | "refused" | "notApplied" | "unknown" }
  >,
): StepChange {
  if (!driver.state.isSuspect(step.id)) return change;
  const { code, detail } = change.reason;
  return { step: step.id, to: "unknown", reason: ownReason("NO_ANSWER", { because: code, ...detail }) };
}

/** Returns an exponential wait in milliseconds, shortened at random so that two servers do not collide again. */
function backoff(driver: ChangeDriver, failures: number): number {
  const full = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1));
  return Math.round(full * (1 - driver.random() / 5));
}
