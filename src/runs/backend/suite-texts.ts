/**
 * Where suites of event tests are kept as text, each for the caller who made it, and what came of each yes of a person.
 * Everything throws a RunStoreError where the place cannot be used.
 */
export interface SuiteTexts {
  /** Keeps a text under an ID of letters and digits, in place of the one before. Of each caller the newest hundred stay. */
  put(caller: string, id: string, text: string): Promise<void>;
  get(caller: string, id: string): Promise<string | undefined>;
  /** The caller's texts, those kept last first. */
  list(caller: string): Promise<readonly string[]>;
  /** Takes a yes: true for the one who may act on it, whichever process is asked, and false ever after. */
  claim(yes: string): Promise<boolean>;
  /** Keeps what came of a yes. */
  settle(yes: string, text: string): Promise<void>;
  /** What came of a yes: an empty text as long as nothing did; undefined where it was not taken. */
  settled(yes: string): Promise<string | undefined>;
}
