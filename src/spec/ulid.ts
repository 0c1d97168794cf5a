const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

/** Returns whether a text is a ULID, the form of every `_id` (management-api 2.1). Lower case is not accepted. */
export function isUlid(text: string): boolean {
  return ULID.test(text);
}

/** Returns the time in a ULID, in milliseconds since 1970. Takes a valid ULID. */
export function ulidTime(ulid: string): number {
  let time = 0;
  for (const letter of ulid.slice(0, 10)) time = time * 32 + ALPHABET.indexOf(letter);
  return time;
}

/**
 * How far the clocks of the service's machines, which create IDs, may be apart, in milliseconds (assumed). An ID that is
 * older by less than this may have been created later.
 */
export const CLOCKS_APART_MS = 2000;

/** Returns the last ULID of a moment, in milliseconds since 1970. All IDs made until then sort before it. */
export function ulidAt(time: number): string {
  return encodeTime(Math.max(0, time)) + "Z".repeat(16);
}

/**
 * Creates a source of ULIDs. Each ID sorts after the previous ones, even within one millisecond. `now` returns
 * milliseconds since 1970, `random` numbers in [0, 1).
 */
export function ulidSource(now: () => number, random: () => number): () => string {
  let lastTime = -1;
  const tail = new Uint8Array(16);
  // Many IDs are made at once, so each costs no memory but its own.
  const letters = Buffer.alloc(26);
  return () => {
    const time = Math.max(now(), lastTime);
    if (time !== lastTime || !increment(tail)) {
      // A tail that consists of the last digit only has no successor, so the next millisecond is used.
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

/** Adds 1 to a number, given by its digits. Returns false if it has no successor. */
function increment(digits: Uint8Array): boolean {
  for (let place = digits.length - 1; place >= 0; place -= 1) {
    const digit = digits[place] ?? 0;
    digits[place] = (digit + 1) % 32;
    if (digit < 31) return true;
  }
  return false;
}

const ULID_BYTES = 16;

/** Returns the 16 bytes of a ULID. Takes a valid ULID. */
export function ulidBytes(ulid: string): Uint8Array {
  let rest = 0n;
  for (const letter of ulid) rest = rest * 32n + BigInt(ALPHABET.indexOf(letter));
  return Buffer.from(rest.toString(16).padStart(ULID_BYTES * 2, "0"), "hex");
}

/** Returns the ULID with these 16 bytes. */
export function ulidOfBytes(bytes: Uint8Array): string {
  let rest = BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  let text = "";
  for (let place = 0; place < 26; place += 1) {
    text = ALPHABET.charAt(Number(rest % 32n)) + text;
    rest /= 32n;
  }
  return text;
}
