// Replaces the table of CP949 in iconv-lite, which is a twentieth of the package. Node's own decoder knows the
// characters of KS X 1001. CP949 adds the other modern syllables in the order of Unicode, and two signs.
const ADDED_SIGNS = new Map([
  [0xa2e6, "€"],
  [0xa2e7, "®"],
]);
const FIRST_SYLLABLE = 0xac00;
const LAST_SYLLABLE = 0xd7a3;

/** Returns the table in the form of iconv-lite: rows with a first code in hex, and the characters from that code on. */
export function koreanTable() {
  const standard = charactersOfStandard();
  const taken = new Set(standard.values());
  const characters = new Map([...standard, ...ADDED_SIGNS, ...addedSyllables(taken)]);
  return [["0", "\0", 127], ...[...characters].map(([code, character]) => [code.toString(16), character])];
}

/** Returns the characters of KS X 1001 by their codes, without private-use codes, which CP949 does not have. */
function charactersOfStandard() {
  const decoder = new TextDecoder("euc-kr");
  const characters = new Map();
  for (const lead of range(0xa1, 0xfe)) {
    for (const trail of range(0xa1, 0xfe)) {
      const text = decoder.decode(Uint8Array.of(lead, trail));
      if (/^[^\ufffd\ue000-\uf8ff]$/.test(text)) characters.set(lead * 256 + trail, text);
    }
  }
  return characters;
}

function* addedSyllables(taken) {
  const codes = addedCodes();
  for (const point of range(FIRST_SYLLABLE, LAST_SYLLABLE)) {
    const syllable = String.fromCharCode(point);
    if (!taken.has(syllable)) yield [codes.next().value, syllable];
  }
}

/**
 * Yields the codes that KS X 1001 does not use, in order. After a lead byte of KS X 1001, only trail bytes below those
 * of the standard are free.
 */
function* addedCodes() {
  for (const lead of range(0x81, 0xc6)) {
    const ends = lead <= 0xa0 ? 0xfe : 0xa0;
    for (const trail of [...range(0x41, 0x5a), ...range(0x61, 0x7a), ...range(0x81, ends)]) yield lead * 256 + trail;
  }
}

function* range(first, last) {
  for (let value = first; value <= last; value += 1) yield value;
}
