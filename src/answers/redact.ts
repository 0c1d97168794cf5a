/** Takes secrets out of texts and of data. */
export interface Redactor {
  text(given: string): string;
  /** UTF-8 with every secret in it redacted; as it was, where there is none. */
  bytes(given: Buffer): Buffer;
  /** A copy of a JSON object with every text in it redacted, property names too. */
  record(given: Readonly<Record<string, unknown>>): Record<string, unknown>;
  /** Whether a secret stands in any text of some data; one that may be an ordinary word is not looked for. */
  holds(given: unknown): boolean;
}

const REPLACEMENT = "[redacted]";

/** Shorter texts are no secrets, and replacing them would garble everything else. */
const SHORTEST = 4;
/** Shorter ones are likely to be a part of something else, so that they count only where they stand alone. */
const SHORTEST_INSIDE = 8;
/** Letters alone may be a word that people write, up to the length of long words. */
const WORD = /^[a-z]{1,15}$/i;
/** How often a text may have been put into JSON that was put into JSON. */
const NESTED_JSON = 3;

/** One way in which a secret may be written, and how it is found. */
interface WrittenSecret {
  readonly form: string;
  /** Finds it only where no letter, digit, hyphen or underscore goes on; absent: anywhere. */
  readonly alone?: RegExp;
  readonly isWord: boolean;
}

/** Knows every configured key, as it is and as it stands inside JSON and addresses. */
export function redactorFor(secrets: readonly string[]): Redactor {
  const known = new Set(secrets.filter((secret) => secret.length >= SHORTEST));
  // The longest first: one key may begin with another.
  const written = [...known].flatMap(writtenForms).sort((one, other) => other.form.length - one.form.length);
  const text = (given: string) =>
    written.reduce((clean, { form, alone }) => clean.replaceAll(alone ?? form, REPLACEMENT), given);
  const data = (given: unknown): unknown => {
    if (typeof given === "string") return text(given);
    if (Array.isArray(given)) return given.map(data);
    return typeof given === "object" && given !== null ? record({ ...given }) : given;
  };
  const record = (given: Readonly<Record<string, unknown>>): Record<string, unknown> =>
    Object.fromEntries(Object.entries(given).map(([name, value]) => [text(name), data(value)]));
  const bytes = (given: Buffer): Buffer =>
    written.some(({ form }) => given.includes(form)) ? Buffer.from(text(given.toString("utf8"))) : given;
  const telling = written.filter(({ isWord }) => !isWord);
  const holds = (given: unknown): boolean => {
    if (typeof given === "string")
      return telling.some(({ form, alone }) => (alone === undefined ? given.includes(form) : given.search(alone) >= 0));
    if (typeof given !== "object" || given === null) return false;
    return Object.entries(given).some(([name, value]) => holds(name) || holds(value));
  };
  if (written.length > 0) return { text, bytes, record, holds };
  return { text: (given) => given, bytes: (given) => given, record: (given) => ({ ...given }), holds: () => false };
}

function writtenForms(secret: string): readonly WrittenSecret[] {
  const forms = new Set([secret, encodeURIComponent(secret), encodeURIComponent(secret).replace(/%../g, lowerCase)]);
  for (let form = secret, depth = 0; depth < NESTED_JSON; depth += 1) {
    form = JSON.stringify(form).slice(1, -1);
    forms.add(form);
  }
  const isWord = WORD.test(secret);
  const standsAlone = isWord || secret.length < SHORTEST_INSIDE;
  return [...forms].map((form) => (standsAlone ? { form, alone: aloneIn(form), isWord } : { form, isWord }));
}

function aloneIn(form: string): RegExp {
  const letters = form.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
  return new RegExp(`(?<![\\w-])${letters}(?![\\w-])`, "g");
}

function lowerCase(text: string): string {
  return text.toLowerCase();
}
