/** A row of an answer: as data, and as a line of text. */
export interface Row {
  readonly data: Readonly<Record<string, unknown>>;
  readonly line: string;
}
