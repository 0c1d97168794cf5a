import type { ByteSource } from "../platform/held-folder.ts";
import type { Encoding } from "./input-file.ts";

const [NEWLINE, RETURN] = [0x0a, 0x0d];

/**
 * Returns the encoding of a file that is neither valid UTF-8 nor UTF-16: the one in which its bytes are plausible
 * letters. Undefined if there is none, or several. A file with intact characters of UTF-8 counts as UTF-8.
 */
export async function likelyEncoding(bytes: ByteSource): Promise<Encoding | undefined> {
  const [korean, unicode, mac] = [new KoreanLikeness(), new UnicodeLikeness(), new MacLikeness()];
  const [japanese, western] = [new JapaneseLikeness(), new WesternLikeness()];
  for await (const chunk of bytes()) {
    for (const likeness of [korean, unicode, mac, japanese, western]) likeness.take(chunk);
  }
  if (korean.isKorean()) return "euc-kr";
  if (unicode.isUnicode()) return "utf-8";
  if (japanese.isJapanese()) return "shift_jis";
  return mac.isMac() ? "macintosh" : western.encoding();
}

/**
 * Decides whether bytes are Korean text. In CP949, common syllables have two bytes: the first from B0 to C8, the second
 * above A0. A single accented letter of Western text never looks like this. Two of them, such as "öß", mostly look like
 * a Chinese character.
 */
class KoreanLikeness {
  #lead = 0;
  #common = 0;
  #chinese = 0;
  #signs = 0;
  #rare = 0;
  #invalid = 0;
  /** How many pairs of bytes are kana in EUC-JP. */
  #kana = 0;
  /** Whether both bytes of each pair are half-width kana in Shift_JIS. */
  #isHalfKana = true;

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
      if (this.#lead === 0xa4 || this.#lead === 0xa5) this.#kana += 1;
      if (this.#lead < 0xa1 || Math.max(this.#lead, byte) > 0xdf) this.#isHalfKana = false;
      this.#lead = 0;
    }
  }

  isKorean(): boolean {
    if (this.#lead !== 0 || this.#invalid > 0 || this.#kana > this.#common) return false;
    if (this.#isHalfKana && this.#chinese > 0) return false;
    if (this.#common === 0) return this.#rare === 0 && this.#chinese === 0;
    return this.#common + this.#signs >= Math.max(this.#rare, this.#chinese);
  }
}

/**
 * Recognizes damaged UTF-8 by its intact characters. In Western encodings, the three bytes of such a character never
 * make up a plausible text, and two bytes rarely do ("Ã¤").
 */
class UnicodeLikeness {
  /** How many bytes of the current character are still missing (`#left`), and how many it has in all (`#length`). */
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

/** Recognizes Shift_JIS by its kana. Their first byte is a rare sign in Windows-1252. */
class JapaneseLikeness {
  readonly #decoder = new TextDecoder("shift_jis");
  #hasKana = false;
  #isInvalid = false;

  take(chunk: Uint8Array): void {
    this.#judge(this.#decoder.decode(chunk, { stream: true }));
  }

  #judge(text: string): void {
    this.#hasKana ||= /[\u3041-\u30fa]/.test(text);
    this.#isInvalid ||= text.includes("\uFFFD");
  }

  isJapanese(): boolean {
    this.#judge(this.#decoder.decode());
    return this.#hasKana && !this.#isInvalid;
  }
}

/**
 * Matches bytes and combinations of bytes that Western text in Windows-1252 does not contain. In the searched text,
 * each character is one byte.
 */
const NOT_WESTERN = new RegExp(
  [
    // Bytes that Windows-1252 does not define, and too many accented letters in a row.
    /[\x81\x8d\x8f\x90\x9d]|[\xc0-\xff]{5}/,
    // Signs such as ¢ and ³ before a small letter, or beside an accented one.
    /[\xa2-\xa6\xa8\xac\xaf\xb1-\xb3\xb6\xb8\xb9][a-z\xc0-\xff]|[\xc0-\xff][\xa2-\xa6\xa8\xac\xaf\xb1-\xb3\xb6\xb8\xb9]/,
    // Other signs between letters, such as ½, whose byte is œ in ISO 8859-15.
    /[\xc0-\xff][\xa1-\xaa\xac-\xba\xbc-\xbf][\xc0-\xff]|[a-z][\xbc-\xbe][a-z]/,
    // Letters that are õ, ì, ù, è, ã, û and ø in Windows-1252, but ő, ě, ů, č, ă, ű and ř in Windows-1250.
    /[\xd5\xf5][^Ee]|[\xcc\xec\xd9\xf9][A-Za-z]|[^A-Za-z\xc0-\xff]\xe8[aeiltou]/,
    /[\xc3\xe3][A-DF-HJ-NP-RT-Za-df-hj-np-rt-z]|[\xdb\xfb][Zz]|\xf8[\xe1\xed]/,
  ]
    .map(({ source }) => source)
    .join("|"),
);
/** How many characters of the previous chunk are searched again: one less than the longest match of `NOT_WESTERN`. */
const NEIGHBOURS = 4;
/**
 * `CARON`: š and ž, the same in Windows-1250 and Windows-1252. `AMBIGUOUS`: bytes that are different letters in these
 * two encodings, such as č and è. A text with both kinds may have either encoding.
 */
const [CARON, AMBIGUOUS] = [/[\x9a\x9e]/, /[\xe6\xe8\xec\xef\xf2\xf8\xf9]/];
/** The six letters in which Windows-1254 (Turkish) differs from Windows-1252 (Icelandic): Ğ, İ, Ş, ğ, ı, ş. */
const TURKISH: ReadonlySet<number> = new Set([0xd0, 0xdd, 0xde, 0xf0, 0xfd, 0xfe]);
/** Letters of Icelandic and Czech that Turkish does not have: Á, É, Í, Ó, Ú, Æ, á, é, í, ó, ú, æ. */
const NOT_TURKISH: ReadonlySet<number> = new Set([
  ...[0xc1, 0xc6, 0xc9, 0xcd, 0xd3, 0xda],
  ...[0xe1, 0xe6, 0xe9, 0xed, 0xf3, 0xfa],
]);
/** Decides whether bytes are Western text in Windows-1252 or Windows-1254 (Turkish). */
class WesternLikeness {
  readonly #turkish = new Set<number>();
  #isOther = false;
  #isNotTurkish = false;
  #hasCaron = false;
  #hasAmbiguous = false;
  #before = "\n";

  take(chunk: Uint8Array): void {
    for (const byte of chunk) {
      if (TURKISH.has(byte)) this.#turkish.add(byte);
      else if (NOT_TURKISH.has(byte)) this.#isNotTurkish = true;
    }
    this.#judge(Buffer.from(chunk).toString("latin1"));
  }

  #judge(text: string): void {
    const all = this.#before + text;
    this.#isOther ||= NOT_WESTERN.test(all);
    this.#hasCaron ||= CARON.test(text);
    this.#hasAmbiguous ||= AMBIGUOUS.test(text);
    this.#before = all.slice(-NEIGHBOURS);
  }

  encoding(): Encoding | undefined {
    this.#judge("\n");
    if (this.#isOther || (this.#hasCaron && this.#hasAmbiguous)) return undefined;
    if (this.#isNotTurkish || this.#turkish.size === 0) return "windows-1252";
    return this.#turkish.size > 1 ? "windows-1254" : undefined;
  }
}

/** Bytes that are letters in Mac Roman. In Windows-1252, they are signs or letters that are rarely after a letter. */
const MAC_LETTERS: ReadonlySet<number> = new Set([
  ...[0x81, 0x83, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8d, 0x8e, 0x8f],
  ...[0x90, 0x98, 0x9a, 0x9d, 0x9e, 0x9f],
]);

/** Recognizes Mac Roman, in which Excel on a Mac saves CSV files. Their lines may end with a carriage return only. */
class MacLikeness {
  readonly #letters = new Set<number>();
  #hasWestern = false;
  /** Whether the first line ends with a carriage return only. Undefined until it has ended. */
  #hasMacLines: boolean | undefined;
  #before = 0;

  take(chunk: Uint8Array): void {
    for (const byte of chunk) {
      if (byte === NEWLINE) this.#hasMacLines ??= false;
      else if (this.#before === RETURN) this.#hasMacLines ??= true;
      if (byte >= 0x80 && isAsciiLetter(this.#before)) {
        if (MAC_LETTERS.has(byte)) this.#letters.add(byte);
        else if (byte >= 0xc0) this.#hasWestern = true;
      }
      this.#before = byte;
    }
  }

  isMac(): boolean {
    // 9A and 9E alone prove nothing, because they are the letters š and ž in Windows-1250 and Windows-1252.
    const isClear = [...this.#letters].some((byte) => byte !== 0x9a && byte !== 0x9e);
    return this.#hasMacLines === true || (this.#letters.size > 1 && isClear && !this.#hasWestern);
  }
}

function isAsciiLetter(byte: number): boolean {
  return (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a);
}

function isLetter(byte: number): boolean {
  return isAsciiLetter(byte) || byte >= 0x81;
}
