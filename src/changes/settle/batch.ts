import type { Reason } from "../../runs/outcome.ts";
import { ownReason } from "../../runs/reasons.ts";
import type { Step, StepChange } from "../rows/entries.ts";
import type { ChangeDriver } from "./change-driver.ts";

/** The shortest wait after a 409, in milliseconds: the service may say 0. */
export const SHORTEST_BUSY_WAIT_MS = 50;
const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 10_000;

/** The steps of one request, and the attempts so far. */
export interface Batch {
  /** The steps, by their IDs. */
  readonly ids: readonly number[];
  /** Failed attempts so far, for the backoff. */
  readonly failures: number;
  readonly uncatched: number;
  readonly refused: number;
}

/** What follows once an attempt has ended. */
export type Next =
  | { readonly kind: "settled" }
  | { readonly kind: "halve"; readonly ids: readonly number[] }
  | { readonly kind: "end"; readonly reason: Reason }
  | {
      readonly kind: "resend";
      readonly batch: Batch;
      readonly waitMs: number;
      readonly reason: Reason;
      /** The request was held back: that is no failed attempt, and uses nothing of the retry budget. */
      readonly isFree?: true;
    };

/** The steps of a batch. */
export function stepsOf({ state }: ChangeDriver, ids: readonly number[]): readonly Step[] {
  return ids.flatMap((id) => state.steps.at(id) ?? []);
}

/** The IDs of steps, in their order. */
export function idsOf(steps: readonly Step[]): readonly number[] {
  return steps.map(({ id }) => id);
}

/** The changes for steps that were not applied this time: `unknown` where an earlier attempt may have been. */
export function unlessSuspect(
  driver: ChangeDriver,
  step: Step,
  change: Extract<
    StepChange,
    { readonly reason: Reason; readonly to: "failed" | "refused" | "notApplied" | "unknown" }
  >,
): StepChange {
  if (driver.state.suspectSince(step.id) === undefined) return change;
  const { code, detail } = change.reason;
  return { step: step.id, to: "unknown", reason: ownReason("NO_ANSWER", { because: code, ...detail }) };
}

/** Exponential, with up to a fifth taken off at random, so that two servers do not resend in step. */
export function backoff(driver: ChangeDriver, failures: number): number {
  const full = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1));
  return Math.round(full * (1 - driver.random() / 5));
}
