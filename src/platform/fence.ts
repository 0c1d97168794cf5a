/**
 * Decides right before the last bytes of a request whether it may still be sent: its lease can expire while the process
 * is stopped, and a service cannot apply a request before its last byte.
 */
export interface Fence {
  /** Called right before the bytes that complete the request. Throws a HeldBackError if they may no longer leave. */
  mayLeave(): void;
  /** Called right after these bytes were passed to the system, to detect that they left too late. */
  hasLeft(): void;
  /** Renews the lease before the last slice of a large body that took long to send. Rejects if the lease is lost. */
  renew(): Promise<void>;
}

/** A request was held back because its process had been stopped for too long. Nothing of it was applied. */
export class HeldBackError extends Error {}
