/**
 * Decides, for one request, whether it may still leave: the right to send it ends, and a process that stood still does
 * not notice by itself. Nothing that a service does comes before the last byte of a request, so that this is what counts.
 */
export interface Fence {
  /** Called right before the bytes that complete the request; throws a HeldBackError where they may not leave any more. */
  mayLeave(): void;
  /** Called right after these bytes were handed to the system, to see whether that was too late after all. */
  hasLeft(): void;
  /** Makes sure of the right once more, before the last slice of a large body. Rejects where it is lost. */
  renew(): Promise<void>;
}

/** A request was kept from leaving, since its process stood still for too long: nothing of it was applied. */
export class HeldBackError extends Error {}
