import { setTimeout as delay } from "node:timers/promises";
import * as z from "zod";
import { LIMITS } from "../spec/limits.ts";
import { isOperation, type Operation, ROUTES } from "../spec/routes.ts";
import { businessAnswer, businessError, type Reply, statusAnswer } from "./rules/outcome.ts";

const operation = z.custom<Operation>((value) => typeof value === "string" && isOperation(value), {
  error: "must be the name of an operation",
});

/** Which requests a fault matches (`on`), and which of them it hits (the other fields; docs/reference/sandbox.md). */
const when = {
  on: z.union([z.enum(["write", "read", "any"]), operation, z.array(operation)]).default("write"),
  nth: z.int().min(1).optional(),
  times: z.int().min(1).optional(),
  probability: z.number().min(0).max(1).optional(),
  seed: z.int().default(1),
};

const applied = z.boolean().default(false);
const milliseconds = z.int().min(0).max(600_000);
/** How long the fault delays a request, in milliseconds. If absent, the delay ends when a test deletes the fault. */
const delayMs = milliseconds.optional();
const retryAfterMs = z.int().min(0).max(LIMITS.retryAfterMs.value).default(100);

/** A fault as a test sends it to the control plane: which requests it hits, and what happens to them. */
export const faultSchema = z.discriminatedUnion("kind", [
  z.strictObject({ ...when, kind: z.literal("status"), status: z.int().min(300).max(599), applied }),
  z.strictObject({ ...when, kind: z.literal("reset"), applied }),
  z.strictObject({ ...when, kind: z.literal("timeout"), applied }),
  z.strictObject({ ...when, kind: z.literal("late"), delayMs, holdsLock: z.boolean().default(true) }),
  z.strictObject({ ...when, kind: z.literal("slow"), delayMs: milliseconds }),
  z.strictObject({ ...when, kind: z.literal("hold") }),
  z.strictObject({ ...when, kind: z.literal("busy"), retryAfterMs }),
  z.strictObject({ ...when, kind: z.literal("takeover"), from: z.int().min(0).default(0), retryAfterMs }),
  z.strictObject({
    ...when,
    kind: z.literal("uncatched"),
    items: z.array(z.int().min(0)).optional(),
    addApplied: z.boolean().default(false),
  }),
]);
export type Fault = z.output<typeof faultSchema>;

export type Faults = ReturnType<typeof faults>;

export function faults(changed: () => void) {
  let entries: { id: number; fault: Fault; met: number; struck: number; random: () => number }[] = [];
  let added = 0;
  let waiting: { fault: Fault; resolve: () => void }[] = [];

  function keep(left: typeof entries): void {
    entries = left;
    const isOver = ({ fault }: { fault: Fault }) => !left.some((entry) => entry.fault === fault);
    const over = waiting.filter(isOver);
    waiting = waiting.filter((one) => !isOver(one));
    for (const { resolve } of over) resolve();
    changed();
  }

  return {
    add(more: readonly Fault[]): void {
      for (const fault of more) {
        added += 1;
        entries.push({ id: added, fault, met: 0, struck: 0, random: randomFrom(fault.seed) });
      }
      changed();
    },
    remove(id: number): boolean {
      const left = entries.filter((entry) => entry.id !== id);
      const isThere = left.length < entries.length;
      if (isThere) keep(left);
      return isThere;
    },
    clear(): void {
      keep([]);
    },
    /** Returns the faults. `met`: how many requests matched the fault. `struck`: how many of them it hit. */
    list() {
      return entries.map(({ id, fault, met, struck }) => ({ id, fault, met, struck }));
    },
    /** Counts a request for every fault that it matches. Returns the fault that hits it; undefined if none does. */
    next(operation: Operation): Fault | undefined {
      let striking: Fault | undefined;
      for (const entry of entries) {
        if (!meets(entry.fault, operation)) continue;
        entry.met += 1;
        const due = isDue(entry.fault, entry.met, entry.struck, entry.random);
        if (!due || striking !== undefined) continue;
        entry.struck += 1;
        striking = entry.fault;
      }
      if (entries.length > 0) changed();
      return striking;
    },
    removed(fault: Fault): Promise<void> {
      if (!entries.some((entry) => entry.fault === fault)) return Promise.resolve();
      return new Promise((resolve) => waiting.push({ fault, resolve }));
    },
  };
}

function meets({ on }: Fault, operation: Operation): boolean {
  if (on === "any") return true;
  if (on === "write") return operation !== "trackEvent" && ROUTES[operation].method !== "GET";
  if (on === "read") return ROUTES[operation].method === "GET";
  return typeof on === "string" ? on === operation : on.includes(operation);
}

function isDue(fault: Fault, met: number, struck: number, random: () => number): boolean {
  const chance = fault.probability === undefined || random() < fault.probability;
  if (fault.nth !== undefined) return met >= fault.nth && met < fault.nth + (fault.times ?? 1) && chance;
  return chance && struck < (fault.times ?? (fault.probability === undefined ? 1 : Number.POSITIVE_INFINITY));
}

/** Returns a generator of pseudo-random numbers from 0 to below 1 (mulberry32), the same for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Returns the failure of a request that a fault keeps from being applied. `now`: milliseconds since 1970. */
export function replyBefore(fault: Fault | undefined, now: number): Reply | undefined {
  if (fault?.kind === "busy") return busyAnswer(fault.retryAfterMs, now);
  return fault !== undefined && "applied" in fault && !fault.applied ? struck(fault) : undefined;
}

/** Delays a request before it is applied: `slow` for a fixed time, `hold` until the fault is removed. */
export async function waitBefore(fault: Fault | undefined, faults: Faults): Promise<void> {
  if (fault?.kind === "slow") await delay(fault.delayMs, undefined, { ref: false });
  if (fault?.kind === "hold") await faults.removed(fault);
}

/** Returns the answer to a request, or the failure that a fault turns it into. */
export function replyAfter(fault: Fault | undefined, answer: Reply): Reply {
  return fault !== undefined && "applied" in fault && fault.applied ? struck(fault) : answer;
}

/** Returns the refusal of a write while another write is running (management-api 4.2 rule 2). */
export function busyAnswer(retryAfterMs: number, now: number): Reply {
  return businessAnswer(businessError("CONTEXT_TARGETING_WRITE_IN_PROGRESS", { retryAfterMs }), now);
}

function struck(fault: Extract<Fault, { applied: boolean }>): Reply {
  if (fault.kind === "reset") return "reset";
  return fault.kind === "timeout" ? "silence" : statusAnswer(fault.status);
}
