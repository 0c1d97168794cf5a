import { BYTE_ORDER_MARK } from "../../../files/csv-text.ts";
import { type Spot, UnreadableFile } from "../desired.ts";

/** A cell with its place; `start` and `end` are where its text stands in the file, quotes included. */
export interface Cell extends Spot {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

const QUOTES =
  'A cell with a comma, a quote or a line break stands in quotes, and a quote inside it is doubled: "a ""b"", c".';

/**
 * The records of a CSV text in order, cell by cell with their places, which the reader of rows for other tools does not
 * give. Empty lines are passed over. Throws an UnreadableFile where quotes do not match.
 */
export function* csvCells(text: string): Generator<readonly Cell[]> {
  const reader = new CellReader(text, text.startsWith(BYTE_ORDER_MARK) ? 1 : 0);
  while (!reader.isAtEnd) {
    const cells = reader.record();
    const [only] = cells;
    if (cells.length > 1 || (only !== undefined && only.end > only.start)) yield cells;
  }
}

class CellReader {
  readonly #text: string;
  #at: number;
  #line = 1;
  #lineStart: number;

  constructor(text: string, from: number) {
    this.#text = text;
    this.#at = from;
    this.#lineStart = from;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  record(): readonly Cell[] {
    const cells = [this.#cell()];
    while (this.#text.charAt(this.#at) === ",") {
      this.#at += 1;
      cells.push(this.#cell());
    }
    if (this.#text.startsWith("\r\n", this.#at)) this.#at += 1;
    this.#at += 1;
    this.#nextLine();
    return cells;
  }

  #nextLine(): void {
    this.#line += 1;
    this.#lineStart = this.#at;
  }

  #cell(): Cell {
    const start = this.#at;
    const spot = { line: this.#line, column: start - this.#lineStart + 1 };
    const text = this.#text.charAt(start) === '"' ? this.#quoted(spot) : this.#bare(spot);
    return { ...spot, text, start, end: this.#at };
  }

  #bare(spot: Spot): string {
    const rest = /[,\n]/g;
    rest.lastIndex = this.#at;
    const end = rest.exec(this.#text)?.index ?? this.#text.length;
    const isReturn = this.#text.charAt(end - 1) === "\r" && end > this.#at && this.#text.charAt(end) !== ",";
    const text = this.#text.slice(this.#at, isReturn ? end - 1 : end);
    if (text.includes('"')) throw misquoted(spot, "a quote stands inside of a cell that does not begin with one");
    this.#at += text.length;
    return text;
  }

  #quoted(spot: Spot): string {
    const parts: string[] = [];
    for (let from = this.#at + 1; ; ) {
      const end = this.#text.indexOf('"', from);
      if (end < 0) throw misquoted(spot, "the quotes of the cell that begins here do not end");
      parts.push(this.#text.slice(from, end));
      if (this.#text.charAt(end + 1) !== '"') {
        this.#at = end + 1;
        break;
      }
      parts.push('"');
      from = end + 2;
    }
    const text = parts.join("");
    const newlines = text.split("\n").length - 1;
    if (newlines > 0) {
      this.#line += newlines;
      this.#lineStart = this.#text.lastIndexOf("\n", this.#at - 1) + 1;
    }
    const next = this.#text.charAt(this.#at);
    const isEnd = next === "" || next === "," || next === "\n" || this.#text.startsWith("\r\n", this.#at);
    if (!isEnd) throw misquoted(spot, "something stands between the quotes of this cell and the next comma");
    return text;
  }
}

function misquoted(spot: Spot, message: string): UnreadableFile {
  return new UnreadableFile(spot, message, QUOTES);
}
