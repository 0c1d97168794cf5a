/**
 * Decides right before the last bytes of a request whether it may still be sent: the lease that allows it can expire
 * while the process stands still. A service cannot apply a request before its last byte, so the check comes right
 * there.
 */
export interface Fence {
  /**
   * Called right before the bytes that complete the request; throws a HeldBackError where they may not leave any more.
   */
  mayLeave(): void;
  /** Called right after these bytes were passed to the system, to detect that they left too late after all. */
  hasLeft(): void;
  /** Renews the lease before the last slice of a large body that was long on its way. Rejects where it is lost. */
  renew(): Promise<void>;
}

/** A request was kept from leaving, since its process stood still for too long: nothing of it was applied. */
export class HeldBackError extends Error {}
