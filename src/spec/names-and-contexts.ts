import { LIMITS } from "./limits.ts";

/**
 * Matches a text that has only characters which names may have. management-api 8.3 does not say which Korean letters
 * these are. Assumed: composed syllables and compatibility letters.
 */
const ALLOWED = /^[A-Za-z0-9 ~%&+\-\uAC00-\uD7A3\u3131-\u318E]*$/u;
const DISALLOWED = /[^A-Za-z0-9 ~%&+\-\uAC00-\uD7A3\u3131-\u318E]/gu;

/** The rules of management-api 8.3. `decomposed`: it has Hangul letters that could be composed to syllables. */
export const NAME_RULES = ["characters", "decomposed", "tooShort", "tooLong", "outerSpace"] as const;

export interface NameProblem {
  readonly rules: readonly (typeof NAME_RULES)[number][];
  readonly length: number;
  readonly characters?: readonly string[] | undefined;
}

/** Checks an untrimmed name (management-api 8.3). Undefined if it is valid. `length` is that after composing Hangul. */
export function nameProblem(name: string): NameProblem | undefined {
  const { nameMinLength, nameMaxLength } = LIMITS;
  const composed = ALLOWED.test(name) ? name : composeHangul(name);
  const characters = ALLOWED.test(composed) ? [] : [...new Set(composed.match(DISALLOWED) ?? [])];
  const length = codePoints(composed);
  const isBroken = {
    characters: characters.length > 0,
    decomposed: composed !== name,
    tooShort: length < nameMinLength.value,
    tooLong: length > nameMaxLength.value,
    outerSpace: composed.startsWith(" ") || composed.endsWith(" "),
  };
  const rules = NAME_RULES.filter((rule) => isBroken[rule]);
  if (rules.length === 0) return undefined;
  return { rules, length, ...(characters.length > 0 && { characters }) };
}

/** Composes Hangul letters to syllables, and changes nothing else. macOS decomposes them in file names. */
function composeHangul(name: string): string {
  return name.replaceAll(/[\u1100-\u11FF\uAC00-\uD7A3]+/g, (letters) => letters.normalize("NFC"));
}

export function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Why a Context ID is invalid (management-api 8.1). `bytes`: its length in UTF-8; 0 if it has no valid UTF-8 form. */
interface ContextIdProblem {
  readonly rule: "empty" | "tooLong" | "halfCharacter";
  readonly bytes: number;
  /** The separators in a Context ID that is too long. If it has any, it is probably a list of several IDs. */
  readonly separators?: string;
}

const SEPARATORS = [",", ";", "|", "、", "\t", "\n"];
const ANY_SEPARATOR = /[,;|、\t\n]/;

/** Returns the characters of a Context ID that may separate several IDs, for example `,;`. */
export function separatorsIn(contextId: string): string {
  return ANY_SEPARATOR.test(contextId) ? SEPARATORS.filter((one) => contextId.includes(one)).join("") : "";
}

/** Removes white space at both ends, as the service does before it stores a Context ID (management-api 8.1). */
export function trimContextId(contextId: string): string {
  return contextId.trim();
}

export function contextIdProblem(trimmed: string): ContextIdProblem | undefined {
  if (trimmed.length === 0) return { rule: "empty", bytes: 0 };
  if (!trimmed.isWellFormed()) return { rule: "halfCharacter", bytes: 0 };
  // A UTF-16 unit needs at most three bytes in UTF-8, so the bytes of a short ID need not be counted.
  if (trimmed.length * 3 <= LIMITS.contextIdBytes.value) return undefined;
  const bytes = Buffer.byteLength(trimmed, "utf8");
  if (bytes <= LIMITS.contextIdBytes.value) return undefined;
  const separators = separatorsIn(trimmed);
  return { rule: "tooLong", bytes, ...(separators !== "" && { separators }) };
}

/** Pairs Context IDs that are probably mistyped with held ones that differ only in case, width or composition. */
export function nearContextIds(given: readonly string[], held: readonly string[]) {
  const exact = new Set(held);
  const fresh = given.filter((id) => !exact.has(id));
  if (fresh.length === 0) return [];
  const plain = (id: string): string => id.normalize("NFKC").toLowerCase();
  const byPlain = new Map(held.map((id) => [plain(id), id]));
  return fresh.flatMap((id) => {
    const other = byPlain.get(plain(id));
    return other === undefined ? [] : [{ given: id, held: other }];
  });
}

export function bytesOf(ids: Iterable<string>): number {
  let bytes = 0;
  for (const id of ids) bytes += Buffer.byteLength(id, "utf8");
  return bytes;
}

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

/** Returns whether a text has the format of an `_id` (management-api 2.1), which is always in upper case. */
export function isUlid(text: string): boolean {
  return ULID.test(text);
}

export function ulidTime(ulid: string): number {
  let time = 0;
  for (const letter of ulid.slice(0, 10)) time = time * 32 + ALPHABET.indexOf(letter);
  return time;
}

/** By how much the service's clocks may differ (assumed). If the times of two IDs differ less, either may be older. */
export const CLOCKS_APART_MS = 2000;

/** Returns the highest ULID of a time (ms since 1970). All IDs that were created until then sort before it. */
export function ulidAt(time: number): string {
  return encodeTime(Math.max(0, time)) + "Z".repeat(16);
}

/**
 * Returns a function that creates ULIDs. Each one sorts after the one before, even in the same millisecond. `now`
 * returns milliseconds since 1970, and `random` a number from 0 up to, but not including, 1.
 */
export function ulidSource(now: () => number, random: () => number): () => string {
  let lastTime = -1;
  const tail = new Uint8Array(16);
  // Many IDs are created at once. To save memory, they share one buffer.
  const letters = Buffer.alloc(26);
  return () => {
    const time = Math.max(now(), lastTime);
    if (time !== lastTime || !increment(tail)) {
      // If the time has not changed, the random part cannot be increased any more. The ID then gets the next
      // millisecond.
      lastTime = time === lastTime ? time + 1 : time;
      letters.write(encodeTime(lastTime), "latin1");
      for (let place = 0; place < tail.length; place += 1) tail[place] = Math.floor(random() * 32);
    }
    for (const [place, digit] of tail.entries()) letters[10 + place] = ALPHABET.charCodeAt(digit);
    return letters.toString("latin1");
  };
}

function encodeTime(time: number): string {
  return encoded(BigInt(Math.floor(time)), 10);
}

function encoded(value: bigint, letters: number): string {
  let rest = value;
  let text = "";
  for (let place = 0; place < letters; place += 1) {
    text = ALPHABET.charAt(Number(rest % 32n)) + text;
    rest /= 32n;
  }
  return text;
}

function increment(digits: Uint8Array): boolean {
  for (let place = digits.length - 1; place >= 0; place -= 1) {
    const digit = digits[place] ?? 0;
    digits[place] = (digit + 1) % 32;
    if (digit < 31) return true;
  }
  return false;
}

const ULID_BYTES = 16;

export function ulidBytes(ulid: string): Uint8Array {
  let rest = 0n;
  for (const letter of ulid) rest = rest * 32n + BigInt(ALPHABET.indexOf(letter));
  return Buffer.from(rest.toString(16).padStart(ULID_BYTES * 2, "0"), "hex");
}

export function ulidOfBytes(bytes: Uint8Array): string {
  return encoded(BigInt(`0x${Buffer.from(bytes).toString("hex")}`), 26);
}
