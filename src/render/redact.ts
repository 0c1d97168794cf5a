/** Takes secrets out of texts and of data. */
export interface Redactor {
  text(given: string): string;
  /** A copy of a JSON object with every text in it redacted, property names too. */
  record(given: Readonly<Record<string, unknown>>): Record<string, unknown>;
  /** Whether a secret stands in any text of some data. */
  holds(given: unknown): boolean;
}

const REPLACEMENT = "[redacted]";

/** Shorter texts are no secrets, and replacing them would garble everything else. */
const SHORTEST = 4;

/** Knows every configured key, as it is and as it stands inside JSON and addresses. */
export function redactorFor(secrets: readonly string[]): Redactor {
  const forms = new Set(
    secrets
      .filter((secret) => secret.length >= SHORTEST)
      .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]),
  );
  // The longest first: one key may begin with another.
  const ordered = [...forms].sort((one, other) => other.length - one.length);
  const text = (given: string) => ordered.reduce((clean, form) => clean.replaceAll(form, REPLACEMENT), given);
  const data = (given: unknown): unknown => {
    if (typeof given === "string") return text(given);
    if (Array.isArray(given)) return given.map(data);
    return typeof given === "object" && given !== null ? record({ ...given }) : given;
  };
  const record = (given: Readonly<Record<string, unknown>>): Record<string, unknown> =>
    Object.fromEntries(Object.entries(given).map(([name, value]) => [text(name), data(value)]));
  const holds = (given: unknown): boolean => {
    if (typeof given === "string") return ordered.some((form) => given.includes(form));
    if (typeof given !== "object" || given === null) return false;
    return Object.entries(given).some(([name, value]) => holds(name) || holds(value));
  };
  if (ordered.length > 0) return { text, record, holds };
  return { text: (given) => given, record: (given) => ({ ...given }), holds: () => false };
}
