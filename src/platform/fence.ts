/** Decides whether a request may still be sent. The service applies nothing before the last byte. */
export interface Fence {
  /** Called right before the last bytes are sent. Throws a HeldBackError. */
  mayLeave(): void;
  /** Called right after the last bytes were passed to the system. Detects that they were sent too late. */
  hasLeft(): void;
  /** Renews the lease before the last bytes of a large body. Rejects if the lease is lost. */
  renew(): Promise<void>;
}

/** A request was not completed, because this process was suspended for too long. Nothing of it was applied. */
export class HeldBackError extends Error {}
