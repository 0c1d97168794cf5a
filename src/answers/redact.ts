/** Removes secrets from texts and data. */
export interface Redactor {
  text(given: string): string;
  /** Redacts every secret in UTF-8 bytes. Returns the same bytes if there is none. */
  bytes(given: Buffer): Buffer;
  /** Returns a copy of a JSON object with all texts redacted, including property names. */
  record(given: Readonly<Record<string, unknown>>): Record<string, unknown>;
  /** Returns whether any text of some data contains a secret. Secrets that may be ordinary words are ignored. */
  holds(given: unknown): boolean;
}

const REPLACEMENT = "[redacted]";

/** The minimum length of a secret. Replacing shorter texts would garble everything else. */
const SHORTEST = 4;
/** The minimum length of a secret that is also found inside longer words. A shorter match is probably accidental. */
const SHORTEST_INSIDE = 8;
/** A secret of only letters, up to the length of long words, may be an ordinary word. */
const WORD = /^[a-z]{1,15}$/i;
/** How many levels of JSON within JSON are searched. */
const NESTED_JSON = 3;

interface WrittenSecret {
  readonly form: string;
  /** Finds the form only between other characters than letters, digits, hyphens and underscores; absent: anywhere. */
  readonly alone?: RegExp;
  readonly isWord: boolean;
}

/** Returns a redactor for all configured keys, in plain form and as written in JSON and addresses. */
export function redactorFor(secrets: readonly string[]): Redactor {
  const known = new Set(secrets.filter((secret) => secret.length >= SHORTEST));
  // The longest first, because one key may start with another.
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
  const forms = new Set([
    secret,
    encodeURIComponent(secret),
    encodeURIComponent(secret).replace(/%../g, (text) => text.toLowerCase()),
  ]);
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
