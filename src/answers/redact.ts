export interface Redactor {
  text(given: string): string;
  /** Returns the same object if there are no secrets. */
  bytes(given: Buffer): Buffer;
  /** Returns a copy without secrets in texts and property names. */
  record(given: Readonly<Record<string, unknown>>): Record<string, unknown>;
  /** Returns whether a value contains a secret. Ignores secrets that could be ordinary words. */
  holds(given: unknown): boolean;
}

const REPLACEMENT = "[redacted]";

/** Shorter secrets would occur in many other texts. */
const SHORTEST = 4;
/** Inside longer words, shorter secrets would occur by chance. */
const SHORTEST_INSIDE = 8;
/** A short secret of letters only may be an ordinary word. */
const WORD = /^[a-z]{1,15}$/i;
/** How many levels of JSON inside JSON texts are searched. */
const NESTED_JSON = 3;

interface WrittenSecret {
  readonly form: string;
  /** Matches the secret only as a whole word. Absent: it is found anywhere. */
  readonly alone?: RegExp;
  readonly isWord: boolean;
}

/** Creates a redactor. It also finds keys as they are written in JSON and in addresses. */
export function redactorFor(secrets: readonly string[]): Redactor {
  const known = new Set(secrets.filter((secret) => secret.length >= SHORTEST));
  // One secret may begin with another, so longer ones are replaced first.
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
