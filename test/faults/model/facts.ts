// The limits of management-api 8.1 and 8.3, written by hand, because these tests also check the engine's own table.

/** The limits of one request (management-api 8.1). */
export const REQUEST = {
  targetingItems: 100,
  targetingCreateOptions: 100,
  optionItems: 5000,
  optionAddOptions: 5000,
  groupItems: 150,
  contextIds: 10_000,
  /** From wire-assumptions: "Our own requests stay below 8,000,000 bytes". */
  bodyBytes: 8_000_000,
} as const;

/** The limits of stored data (management-api 8.1). Schedules that must reach a limit use smaller numbers. */
export interface StoredLimits {
  readonly optionContextIds: number;
  readonly optionContextBytes: number;
  readonly projectContextIds: number;
  readonly targetingOptions: number;
  /** The maximum number of groups and sub-options in one delete request. */
  readonly treeItems: number;
}

export const DOCUMENTED_LIMITS: StoredLimits = {
  optionContextIds: 50_000,
  optionContextBytes: 8 * 1_048_576,
  projectContextIds: 200_000,
  targetingOptions: 100_000,
  treeItems: 150,
};

/** The limits of pages and of the lists in answers (management-api 8.1). */
export const READS = { listLimit: 1000, getLimit: 10_000, getOffset: 50_000, childrenShown: 50, conflictsShown: 20 };

const NAME = /^[A-Za-z0-9~%&+\-\uAC00-\uD7A3\u3131-\u318E ]{2,36}$/u;

/** Returns whether a targeting or an option may have this name (management-api 8.3). */
export function isName(text: string): boolean {
  return NAME.test(text) && text === text.trim();
}

/** Returns whether the service accepts a text as a Context ID: 1 to 256 bytes without surrounding white space. */
export function isContextId(text: string): boolean {
  const bytes = Buffer.byteLength(text.trim(), "utf8");
  return bytes >= 1 && bytes <= 256;
}

const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** Returns a ULID made of a time and a count. Within a millisecond, a higher count sorts later. */
export function ulidOf(time: number, count: number): string {
  const digits = (value: number, places: number): string => {
    let text = "";
    for (let rest = value; text.length < places; rest = Math.floor(rest / 32)) text = DIGITS.charAt(rest % 32) + text;
    return text;
  };
  return `${digits(time, 10)}${digits(count, 16)}`;
}
