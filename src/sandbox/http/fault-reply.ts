import { setTimeout as delay } from "node:timers/promises";
import { businessError } from "../management/outcome.ts";
import type { Fault, Faults } from "./faults.ts";
import { businessAnswer, type Reply, statusAnswer } from "./reply.ts";

/** What a fault answers in place of carrying a request out, or undefined. `now` in milliseconds since 1970. */
export function replyBefore(fault: Fault | undefined, now: number): Reply | undefined {
  if (fault?.kind === "busy") return busyAnswer(fault.retryAfterMs, now);
  return fault !== undefined && "applied" in fault && !fault.applied ? struck(fault) : undefined;
}

/** Waits before a request is carried out: for a time with `slow`, until the fault is removed with `hold`. */
export async function waitBefore(fault: Fault | undefined, faults: Faults): Promise<void> {
  if (fault?.kind === "slow") await delay(fault.delayMs, undefined, { ref: false });
  if (fault?.kind === "hold") await faults.removed(fault);
}

/** The part of the true answer that a fault lets through to the client. */
export function replyAfter(fault: Fault | undefined, answer: Reply): Reply {
  return fault !== undefined && "applied" in fault && fault.applied ? struck(fault) : answer;
}

/** The 409 of a write that has to wait (management-api 4.2 rule 2). */
export function busyAnswer(retryAfterMs: number, now: number): Reply {
  return businessAnswer(businessError("CONTEXT_TARGETING_WRITE_IN_PROGRESS", { retryAfterMs }), now);
}

function struck(fault: Extract<Fault, { applied: boolean }>): Reply {
  if (fault.kind === "reset") return "reset";
  return fault.kind === "timeout" ? "silence" : statusAnswer(fault.status);
}
