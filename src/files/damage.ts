/** The source of a regular expression for currencies beside a number. */
export const CURRENCY = "(?:US|CA|AU|R)?\\p{Sc}|원|円|元|TL|EUR|USD|GBP|CHF|KRW|JPY|BRL|TRY";

const DAMAGE: readonly (readonly [word: Damage["damage"], form: RegExp])[] = [
  // A formula failed, or a spreadsheet interpreted a name that starts with =, + or - as a formula.
  ["formulaError", /^#(?:NAME\?|REF!|VALUE!|N\/A|DIV\/0!|NUM!|NULL!|SPILL!|CALC!|ERROR!|GETTING_DATA)$/],
  // Google Sheets exports this text if it has not yet calculated a formula.
  ["formulaError", /^Loading\.\.\.$/],
  // A failed formula in German, French, Spanish, Italian, Portuguese, Dutch, Polish and Turkish programs.
  [
    "formulaError",
    /^#(?:NV|N\/[BD]|WERT!|BEZUG!|ZAHL!|ÜBERLAUF!|KALK!|NOM\?|VALEUR!|NOMBRE!|¡VALOR!|¿NOMBRE\?|¡(?:REF|NUM|DIV\/0)!|VALORE?!|RIF!|NOME\?|NÚM!|WAARDE!|VERW!|NAAM\?|ARG!|ADR!|NAZWA\?|YOK|AD\?|DEĞER!|BAŞV!|SAYI(?:\/0)?!)$/,
  ],
  // A program has changed a long number, or a text such as 12E5. Spreadsheets always write a sign before the exponent
  // (4E+12). Java and databases write no sign, but always decimals (4.01E12).
  ["scientific", /^[+-]?\d(?:[.,]\d+E[+-]?|E[+-])\d{1,3}$/i],
  // A program has changed a column of IDs to decimal numbers, because one of its cells was empty.
  ["decimal", /^\d{5,}[.,]0{1,2}$/],
  ["truth", /^(?:TRUE|FALSE|WAHR|FALSCH|VRAI|FAUX)$/],
  // A spreadsheet has changed a text such as 3-4 or MAR4 into a date.
  ["date", /^(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)-\d{2}$/],
  // The same in German, French, Spanish, Portuguese and Italian programs. Names such as Set and Avr also begin IDs.
  ["date", /^(?:Jän|Mär|Mrz|Mai|Okt|Dez|janv|févr|juin|juil|août|déc|ene|abr|ago|dic|fev|mai|dez|giu|ott)\.?-\d{2}$/],
  // The same as 4-Mar, and in the programs of other languages.
  [
    "date",
    /^\d{1,2}[-/](?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|janv|févr|mars|avr|mai|juin|juil|août|sept|déc|ene|abr|ago|dic|fev|dez|jän|mär|mrz|okt|giu|ott)\.?$/i,
  ],
  [
    "date",
    /^(?:\d{1,2}\. ?(?:Jan|Feb|Mrz|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)|(?:Jan|Feb|Mrz|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez) \d{2}|\d{1,2}[월月] ?\d{1,2}[일日])$/,
  ],
  ["placeholder", /^(?:null|NULL|n\/a|N\/A|NaN|undefined|[-–—]|\\N|\(null\)|<null>|<NA>)$/],
  // People write this apostrophe to make a spreadsheet keep all digits of a number.
  ["apostrophe", /^'\d+$/],
  // Word processors and chat programs write these quotation marks around a text.
  ["quoted", /^(?:[“”„].*[“”]|[‘’‚].*[‘’])$/],
  // A list in a cell has these signs before its entries.
  ["bullet", /^(?:[•▪◦‣∙]\s*|[-–—] +)\S/],
  // Full-width digits: they were typed while an input method for Korean or Japanese was on.
  ["wide", /^[０-９]+$/],
  // The text was UTF-8, but a program read it as Windows-1252 and saved it again.
  ["misread", /Ã[¡-¿„–œŸ‰]|â€[™œž“¦]/],
  ["undecoded", /\uFFFD/],
  // The column of the cell was too narrow when the file was saved.
  ["narrow", /^#{3,}$/],
  // People write this formula to keep leading zeros.
  ["formulaText", /^="(?:[^"]|"")*"$/],
];

/** The longest text that is compared with these forms. With several megabytes, matching could exceed the stack. */
const LONGEST = 1_000_000;
const ANY_DAMAGE = new RegExp(DAMAGE.map(([, form]) => form.source).join("|"), "i");

/**
 * Control characters (but not tabs and line breaks), non-breaking spaces, and zero-width characters (but not joiners
 * inside an emoji).
 */
const INVISIBLE =
  /[^\P{Cc}\t\n\r]|[\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202f\u2060-\u2064\u2066-\u206f\u00a0\ufeff]|(?<!\p{Extended_Pictographic}\ufe0f?|\p{Emoji_Modifier})\u200d/gu;

/**
 * Matches any character that is neither printable ASCII nor a Hangul syllable, so that it may be invisible. Most texts
 * have no such character. For these, the slower search is skipped.
 */
const UNUSUAL = /[^ -~가-힣]/;

export interface Damage {
  readonly damage: keyof typeof DAMAGE_WORDS;
  readonly characters?: readonly string[];
}

/**
 * Replaces the missing value of an `.xlsx` cell whose formula has no stored result. No real text contains this
 * character.
 */
export const NO_VALUE = "\uFFFF";

/**
 * The indexes of cells in a row that are formatted as text and look like a date or a truth value. A spreadsheet has not
 * changed these.
 */
export type TextCells = ReadonlySet<number> | undefined;

/**
 * The kinds of damage that a cell formatted as text cannot have, because a spreadsheet does not convert its text.
 */
const CONVERTED: readonly string[] = ["date", "truth"];

/** Returns whether a text, or a part of it, looks as if a spreadsheet has changed it to a date or a truth value. */
export function mayBeConverted(text: string): boolean {
  return text.split(/[|;,\n]/).some((part) => CONVERTED.includes(damageIn(part)?.damage ?? ""));
}

/**
 * Returns how a spreadsheet or another program has probably damaged a text; undefined if it looks undamaged. `isText`:
 * the cell is formatted as text, so it was not converted to a date or a truth value.
 */
export function damageIn(text: string, isText = false): Damage | undefined {
  const trimmed = text.trim();
  if (trimmed === NO_VALUE) return { damage: "noValue" };
  const found =
    trimmed.length <= LONGEST && ANY_DAMAGE.test(trimmed) ? DAMAGE.find(([, form]) => form.test(trimmed)) : undefined;
  if (found !== undefined && !(isText && CONVERTED.includes(found[0]))) return { damage: found[0] };
  const characters = invisibleIn(trimmed);
  return characters.length === 0 ? undefined : { damage: "invisible", characters };
}

/** Returns the invisible characters in a trimmed text, for example `U+200B`. */
export function invisibleIn(trimmed: string): readonly string[] {
  return UNUSUAL.test(trimmed) ? [...new Set(trimmed.match(INVISIBLE))].map(codePoint) : [];
}

function codePoint(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/**
 * Composes Hangul letters to syllables. macOS and some tools store them decomposed, so that equal names would differ.
 */
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
    "was turned into scientific notation by a program, so its last digits may be lost",
    "Copy it from its source again. Format the column as text before you paste.",
  ],
  decimal: ["was turned into a decimal number by a program", "Write it without decimals, formatted as text."],
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
  quoted: ["is in quotation marks", "Write it without the quotation marks."],
  bullet: ["begins with a list marker, such as • or -", "Write it without this marker."],
  wide: ["has full-width digits", "Write it with the digits 0 to 9."],
  misread: ["was read in a wrong encoding before it was saved", READ_AGAIN],
  undecoded: ["contains U+FFFD, which replaces a character that was lost in a wrong encoding", READ_AGAIN],
  invisible: ["contains invisible characters", "Type the text again without them."],
  number: [
    "is not a number in a clear form",
    "Write digits, and a point only before decimals: 1250 or 1.25, -5, or 0.12 for 12 %.",
  ],
  noValue: [
    "is a formula without a stored value",
    "Open the file in a spreadsheet program and save it, or replace the formula by its value.",
  ],
} satisfies Readonly<Record<string, readonly [message: string, remedy: string]>>;

export function isDamage(text: unknown): text is Damage["damage"] {
  return typeof text === "string" && Object.hasOwn(DAMAGE_WORDS, text);
}

export function damageWords({ damage, characters = [] }: Damage): {
  readonly message: string;
  readonly remedy: string;
} {
  const [message, remedy] = DAMAGE_WORDS[damage];
  return { message: characters.length === 0 ? message : `${message} (${characters.join(", ")})`, remedy };
}
