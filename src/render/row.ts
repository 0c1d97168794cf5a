/** A row of an answer: as data, and as a line of text. */
export interface Row {
  readonly data: Readonly<Record<string, unknown>>;
  readonly line: string;
}

/** Data of an answer, without the fields of which nothing is known. */
export function known(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
