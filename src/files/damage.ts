const DAMAGE: readonly (readonly [word: Damage["damage"], form: RegExp])[] = [
  // A spreadsheet took a name that begins with =, + or - for a formula.
  ["formulaError", /^#(?:NAME\?|REF!|VALUE!|N\/A|DIV\/0!|NUM!|NULL!|SPILL!|CALC!|ERROR!|GETTING_DATA)$/],
  // A failed formula in German, French, Spanish and Italian programs.
  [
    "formulaError",
    /^#(?:NV|WERT!|BEZUG!|ZAHL!|ÜBERLAUF!|KALK!|NOM\?|VALEUR!|NOMBRE!|¡VALOR!|¿NOMBRE\?|¡REF!|¡NUM!|¡DIV\/0!|VALORE!|RIF!|NOME\?)$/,
  ],
  // A long number, or digits around an E. Spreadsheets always write the sign of the exponent.
  ["scientific", /^[+-]?\d(?:[.,]\d+)?E[+-]\d{1,3}$/i],
  ["truth", /^(?:TRUE|FALSE|WAHR|FALSCH|VRAI|FAUX)$/],
  // A date into which a spreadsheet has changed a text such as 3-4 or MAR4.
  [
    "date",
    /^(?:\d{1,2}-(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)-\d{2})$/,
  ],
  // A date into which a German or Korean program has changed a text.
  [
    "date",
    /^(?:\d{1,2}\. ?(?:Jan|Feb|Mrz|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)|(?:Jan|Feb|Mrz|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez) \d{2}|\d{1,2}월 \d{1,2}일)$/,
  ],
  ["placeholder", /^(?:null|NULL|n\/a|N\/A|NaN|undefined|[-–—])$/],
  // A spreadsheet keeps all digits of a number with this apostrophe.
  ["apostrophe", /^'\d+$/],
  // UTF-8 that was read as Windows-1252 and saved again.
  ["misread", /Ã[¡-¿„–œŸ‰]|â€[™œž“¦]/],
  ["undecoded", /\uFFFD/],
  // The cell of a column that was too narrow when it was saved.
  ["narrow", /^#{3,}$/],
  // The text of a formula that people write to keep leading zeros.
  ["formulaText", /^="(?:[^"]|"")*"$/],
];

const ANY_DAMAGE = new RegExp(DAMAGE.map(([, form]) => form.source).join("|"), "i");

/** Non-breaking spaces and zero-width characters, except joiners inside an emoji. */
const INVISIBLE =
  /[\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202f\u2060-\u2064\u2066-\u206f\u00a0\ufeff]|(?<!\p{Extended_Pictographic}\ufe0f?|\p{Emoji_Modifier})\u200d/gu;

/** A character that could be invisible: neither ASCII nor a Hangul syllable. */
const UNUSUAL = /[^ -~가-힣]/;

export interface Damage {
  readonly damage: keyof typeof DAMAGE_WORDS;
  readonly characters?: readonly string[];
}

/** Replaces the text of an `.xlsx` cell whose formula has no stored value. Occurs in no real text. */
export const NO_VALUE = "\uFFFF";

export function damageIn(text: string): Damage | undefined {
  const trimmed = text.trim();
  if (trimmed === NO_VALUE) return { damage: "noValue" };
  const found = ANY_DAMAGE.test(trimmed) ? DAMAGE.find(([, form]) => form.test(trimmed)) : undefined;
  if (found !== undefined) return { damage: found[0] };
  const characters = invisibleIn(trimmed);
  return characters.length === 0 ? undefined : { damage: "invisible", characters };
}

/** Returns the invisible characters in a trimmed text, for example `U+200B`. */
export function invisibleIn(trimmed: string): readonly string[] {
  return UNUSUAL.test(trimmed) ? [...new Set(trimmed.match(INVISIBLE) ?? [])].map(codePoint) : [];
}

function codePoint(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Composes Hangul, which macOS and some tools decompose. */
export function composedHangul(text: string): string {
  return /[\u1100-\u11FF]/.test(text)
    ? text.replaceAll(/[\u1100-\u11FF\uAC00-\uD7A3]+/g, (letters) => letters.normalize("NFC"))
    : text;
}

const READ_AGAIN = "Open the original file as UTF-8 (in Excel: Data, From Text/CSV), or type the text again.";

const DAMAGE_WORDS = {
  formulaError: [
    "is a formula error",
    "Write the original text again, formatted as text. A spreadsheet treats a text that begins with =, + or - as a formula.",
  ],
  scientific: [
    "was turned into scientific notation by a spreadsheet, and its last digits are lost",
    "Copy it from its source again. Format the column as text before you paste.",
  ],
  truth: ["was changed by a spreadsheet into a truth value", "Write the original text again, formatted as text."],
  date: ["was changed by a spreadsheet into a date", "Write the original text again, formatted as text."],
  narrow: ["was saved from a column that was too narrow to show it", "Widen the column, and save the file again."],
  formulaText: [
    "is a formula that was saved as a text",
    'Write only the text itself, formatted as text, without =" and ".',
  ],
  placeholder: ["is a text that programs write for an empty cell", "Empty the cell, or write the right text."],
  apostrophe: [
    "begins with the apostrophe (') that keeps a number as text in a spreadsheet",
    "Write the number without the apostrophe.",
  ],
  misread: ["was read in a wrong encoding before it was saved", READ_AGAIN],
  undecoded: ["contains U+FFFD, which replaces a character that was lost in a wrong encoding", READ_AGAIN],
  invisible: ["contains invisible characters", "Type the text again without them."],
  noValue: [
    "is a formula without a stored value",
    "Open the file in a spreadsheet program and save it, or replace the formula by its value.",
  ],
} satisfies Readonly<Record<string, readonly [message: string, remedy: string]>>;

export function isDamage(text: unknown): text is Damage["damage"] {
  return typeof text === "string" && Object.hasOwn(DAMAGE_WORDS, text);
}

/** Describes a damaged text. `message` is the end of a sentence. */
export function damageWords({ damage, characters = [] }: Damage): {
  readonly message: string;
  readonly remedy: string;
} {
  const [message, remedy] = DAMAGE_WORDS[damage];
  return { message: characters.length === 0 ? message : `${message} (${characters.join(", ")})`, remedy };
}
