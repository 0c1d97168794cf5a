const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

/** Returns whether a text has the format of every `_id` (management-api 2.1). Lower case is not accepted. */
export function isUlid(text: string): boolean {
  return ULID.test(text);
}

/** Returns milliseconds since 1970. */
export function ulidTime(ulid: string): number {
  let time = 0;
  for (const letter of ulid.slice(0, 10)) time = time * 32 + ALPHABET.indexOf(letter);
  return time;
}

/**
 * How far the clocks of the service's machines may differ (assumed). Of two IDs that are closer in time, either may be
 * older.
 */
export const CLOCKS_APART_MS = 2000;

/** Returns the highest ULID of a time in milliseconds since 1970. All IDs created until then sort before it. */
export function ulidAt(time: number): string {
  return encodeTime(Math.max(0, time)) + "Z".repeat(16);
}

/**
 * Returns a source of ULIDs. Each new ULID sorts after the previous one, even within one millisecond. `now` returns
 * milliseconds since 1970, `random` a number from 0 up to but not including 1.
 */
export function ulidSource(now: () => number, random: () => number): () => string {
  let lastTime = -1;
  const tail = new Uint8Array(16);
  // Reusing one buffer saves memory: many IDs are created at once.
  const letters = Buffer.alloc(26);
  return () => {
    const time = Math.max(now(), lastTime);
    if (time !== lastTime || !increment(tail)) {
      // The random part has reached its maximum, so the ID takes the next millisecond.
      lastTime = time === lastTime ? time + 1 : time;
      letters.write(encodeTime(lastTime), "latin1");
      for (let place = 0; place < tail.length; place += 1) tail[place] = Math.floor(random() * 32);
    }
    for (const [place, digit] of tail.entries()) letters[10 + place] = ALPHABET.charCodeAt(digit);
    return letters.toString("latin1");
  };
}

function encodeTime(time: number): string {
  let rest = time;
  let text = "";
  for (let place = 0; place < 10; place += 1) {
    text = ALPHABET.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

/** Adds 1 to a number in base 32, in place. Returns false if it overflows. */
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
  let rest = BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  let text = "";
  for (let place = 0; place < 26; place += 1) {
    text = ALPHABET.charAt(Number(rest % 32n)) + text;
    rest /= 32n;
  }
  return text;
}
