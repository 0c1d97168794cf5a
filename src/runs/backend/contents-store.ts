/** An option, and what its record said when its Context IDs were read. */
export interface SeenOption {
  readonly targetingId: string;
  readonly optionId: string;
  readonly updatedAt: string;
  readonly contextCount: number;
}

/**
 * Context IDs that were read before, so that they need not be read again while the option's record says that nothing
 * changed. Only for what an answer shows or a file holds: whatever takes something away reads afresh.
 */
export interface ContentsStore {
  /** Takes note of what was kept meanwhile, by this process and others: before many are looked for. */
  refresh(): Promise<void>;
  /** The Context IDs that were kept of an option with exactly this record; undefined where there are none. */
  get(option: SeenOption): Promise<readonly string[] | undefined>;
  /** Keeps the Context IDs of an option. What cannot be kept is not: that costs another read, and no more. */
  put(option: SeenOption, contexts: readonly string[]): Promise<void>;
}
