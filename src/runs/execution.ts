import type { RunHeader } from "./store.ts";

/** Why a run may not be executed: a code for programs, what is wrong, and what can be done about it. */
export interface Refusal {
  readonly code: "PROJECT" | "READ_ONLY" | "TOOLSET" | "CALLER" | "FOLDERS" | "TARGETINGS" | "LIMITS" | "NOT_CHECKED";
  readonly message: string;
  readonly remedy: string;
}

/** A run as far as it decides who may execute it. */
export interface ExecutableRun {
  /** The name of its kind. */
  readonly kind: string;
  readonly header: RunHeader<{ readonly tool: string }>;
}

/**
 * The guard through which every run gets its executor, however it starts: gives the reason why this process may not
 * execute a run now, by its settings and by the rights that the caller has now; undefined where it may.
 */
export type MayExecute = (run: ExecutableRun) => Promise<Refusal | undefined>;

/** A run that this process may not execute now. No lease was taken, and nothing was sent. */
export class ExecutionRefusedError extends Error {
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(`${refusal.message}; nothing was sent`);
    this.refusal = refusal;
  }

  get remedy(): string {
    return this.refusal.remedy;
  }
}
