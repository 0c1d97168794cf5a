/**
 * Decides right before the last bytes of a request whether the request may still be sent. The lease that permits the
 * write can expire while this process is suspended, and the service applies nothing before the last byte.
 */
export interface Fence {
  /**
   * Called right before the last bytes of the request are sent. Throws a HeldBackError if they may no longer be sent.
   */
  mayLeave(): void;
  /** Called right after the last bytes were passed to the system. Detects that they were sent too late. */
  hasLeft(): void;
  /**
   * Renews the lease. Called before the last bytes of a large body that took long to send. Rejects if the lease is
   * lost.
   */
  renew(): Promise<void>;
}

/**
 * A request was not completed because this process had been suspended for too long. The service applied nothing of it.
 */
export class HeldBackError extends Error {}
