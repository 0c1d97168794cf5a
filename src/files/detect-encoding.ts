import type { Encoding } from "./input-file.ts";
import { markedEncoding } from "./text.ts";

/**
 * Detects the encoding of a content, piece by piece: by its byte order mark; otherwise UTF-16 if it has zero bytes,
 * UTF-8 if all of it is valid, and else CP949 or Windows-1252, whichever decodes to letters. A content in mixed
 * encodings with whole UTF-8 characters counts as UTF-8: reading it then reports the line that is not UTF-8.
 */
export class EncodingDetector {
  #marked: Encoding | undefined;
  #isFirst = true;
  /** The number of zero bytes at even and at odd positions. */
  readonly #zeros: [even: number, odd: number] = [0, 0];
  #position = 0;
  readonly #utf8 = new TextDecoder("utf-8", { fatal: true });
  #isUtf8 = true;
  readonly #korean = new KoreanLikeness();
  readonly #unicode = new UnicodeLikeness();

  take(chunk: Uint8Array): void {
    if (this.#isFirst) this.#marked = markedEncoding(chunk);
    this.#isFirst = false;
    if (this.#marked !== undefined) return;
    for (let at = chunk.indexOf(0); at >= 0; at = chunk.indexOf(0, at + 1)) {
      this.#zeros[(this.#position + at) % 2 === 0 ? 0 : 1] += 1;
    }
    this.#position += chunk.length;
    if (this.#isUtf8) this.#isUtf8 = isValid(() => this.#utf8.decode(chunk, { stream: true }));
    this.#korean.take(chunk);
    this.#unicode.take(chunk);
  }

  found(): Encoding {
    if (this.#marked !== undefined) return this.#marked;
    const [even, odd] = this.#zeros;
    if (even + odd > 0) return odd >= even ? "utf-16le" : "utf-16be";
    if (this.#isUtf8 && isValid(() => this.#utf8.decode())) return "utf-8";
    if (this.#korean.isKorean()) return "euc-kr";
    return this.#unicode.isUnicode() ? "utf-8" : "windows-1252";
  }
}

function isValid(decode: () => string): boolean {
  try {
    decode();
    return true;
  } catch {
    return false;
  }
}

/**
 * Whether bytes look like CP949. Its common syllables have two bytes, from B0 to C8 and above A0. A single Western
 * letter stands between ASCII bytes, where CP949 has either no character or one of the rare syllables that end in an
 * ASCII letter; two adjacent Western letters, as in "öß", are usually one of its Chinese characters.
 */
class KoreanLikeness {
  #lead = 0;
  #common = 0;
  #chinese = 0;
  /** The number of quotation marks and similar signs. */
  #signs = 0;
  #rare = 0;
  #invalid = 0;

  take(chunk: Uint8Array): void {
    for (const byte of chunk) {
      if (this.#lead === 0) {
        if (byte >= 0x80) this.#lead = byte;
        continue;
      }
      if (this.#lead >= 0xb0 && this.#lead <= 0xc8 && byte >= 0xa1) this.#common += 1;
      else if (this.#lead >= 0xca && byte >= 0xa1) this.#chinese += 1;
      else if (this.#lead >= 0xa1 && byte >= 0xa1) this.#signs += 1;
      else if (this.#lead > 0x80 && this.#lead <= 0xc6 && isLetter(byte)) this.#rare += 1;
      else this.#invalid += 1;
      this.#lead = 0;
    }
  }

  isKorean(): boolean {
    if (this.#lead !== 0 || this.#invalid > 0) return false;
    if (this.#common === 0) return this.#rare === 0 && this.#chinese === 0;
    return this.#common + this.#signs >= Math.max(this.#rare, this.#chinese);
  }
}

/**
 * Whether bytes look like damaged UTF-8. Three bytes of one character are never Western text; in two bytes, a Western
 * letter is followed by a sign, as in "Ã¤", which is rare.
 */
class UnicodeLikeness {
  /** The number of bytes that the current character still needs, and has in total. */
  #left = 0;
  #length = 0;
  #three = 0;
  #two = 0;
  #other = 0;

  take(chunk: Uint8Array): void {
    for (const byte of chunk) {
      if (this.#left > 0) {
        this.#left -= 1;
        if (byte < 0x80 || byte > 0xbf) {
          this.#left = 0;
          this.#other += 1;
        } else if (this.#left === 0 && this.#length === 2) this.#two += 1;
        else if (this.#left === 0) this.#three += 1;
      } else if (byte >= 0xc2 && byte <= 0xf4) {
        this.#length = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
        this.#left = this.#length - 1;
      } else if (byte >= 0x80) this.#other += 1;
    }
  }

  isUnicode(): boolean {
    return this.#three > 0 || (this.#two > 2 && this.#two > 4 * this.#other);
  }
}

function isLetter(byte: number): boolean {
  return (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a) || byte >= 0x81;
}
