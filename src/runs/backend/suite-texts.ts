/**
 * Where suites of event tests are kept as text, each for the caller who made it, and the result of each confirmation by
 * a person. Everything throws a RunStoreError where the place cannot be used.
 */
export interface SuiteTexts {
  /**
   * Keeps a text under an ID of letters and digits, in place of the one before. Of each caller the newest hundred stay.
   */
  put(caller: string, id: string, text: string): Promise<void>;
  get(caller: string, id: string): Promise<string | undefined>;
  /** The caller's texts, those kept last first. */
  list(caller: string): Promise<readonly string[]>;
  /** How many bytes the caller's texts take. */
  storedBytes(caller: string): Promise<number>;
  /** Takes a confirmation: true for the first call in any process, which may act on it, and false for all others. */
  claim(yes: string): Promise<boolean>;
  /** Keeps the result of a confirmation. */
  settle(yes: string, text: string): Promise<void>;
  /** The result of a confirmation: an empty text while there is none yet; undefined where it was not taken. */
  settled(yes: string): Promise<string | undefined>;
}
