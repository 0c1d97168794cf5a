/** A line that was too long to be read: its size in bytes, and what it began and ended with. */
export interface LongLine {
  readonly bytes: number;
  readonly head: string;
  readonly tail: string;
}

const SHOWN_BYTES = 512;
const NEWLINE = 0x0a;
const NOTHING = Buffer.alloc(0);

/** How lines are handled. */
interface LineUse {
  /** The longest line that is read, in bytes. */
  readonly mostBytes: number;
  readonly onLine: (line: string) => void;
  /** Called for each line that is left out. */
  readonly onLongLine: (line: LongLine) => void;
}

/** Joins chunks of bytes into lines of UTF-8. Lines that are too long are left out, and not kept in memory. */
export class Lines {
  readonly #use: LineUse;
  #isFirst = true;
  #parts: Buffer[] = [];
  #bytes = 0;
  #head = NOTHING;
  #tail = NOTHING;

  constructor(use: LineUse) {
    this.#use = use;
  }

  /** Takes the next bytes, and passes on the lines that end in them, without their line ends. */
  add(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      // What most messages are: a whole line in one chunk.
      if (this.#bytes === 0 && at - from <= this.#use.mostBytes) this.#pass(chunk.toString("utf8", from, at));
      else {
        this.#take(chunk.subarray(from, at));
        this.#endLine();
      }
      from = at + 1;
    }
    if (from < chunk.length) this.#take(chunk.subarray(from));
  }

  /** Passes on the bytes after the last line end as a line. */
  end(): void {
    if (this.#bytes > 0) this.#endLine();
  }

  /** Some hosts begin with a byte order mark. */
  #pass(line: string): void {
    this.#use.onLine(this.#isFirst ? line.replace(/^\uFEFF/, "") : line);
    this.#isFirst = false;
  }

  #endLine(): void {
    if (this.#bytes <= this.#use.mostBytes) this.#pass(Buffer.concat(this.#parts).toString("utf8"));
    else {
      const [head, tail] = [this.#head.toString("utf8"), this.#tail.toString("utf8")];
      this.#use.onLongLine({ bytes: this.#bytes, head, tail });
      this.#isFirst = false;
    }
    this.#parts = [];
    this.#bytes = 0;
    this.#head = NOTHING;
    this.#tail = NOTHING;
  }

  #take(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes <= this.#use.mostBytes) {
      this.#parts.push(part);
      return;
    }
    if (this.#head.length === 0) this.#head = Buffer.concat(this.#parts).subarray(0, SHOWN_BYTES);
    if (this.#head.length < SHOWN_BYTES) this.#head = Buffer.concat([this.#head, part]).subarray(0, SHOWN_BYTES);
    this.#parts = [];
    this.#tail = Buffer.concat([this.#tail, part.subarray(-SHOWN_BYTES)]).subarray(-SHOWN_BYTES);
  }
}

/**
 * The ID of a JSON-RPC request of which only the ends are known: among the members before `params`, or as the last
 * member. Undefined where it stands elsewhere.
 */
export function requestIdOf({ head, tail }: LongLine): string | number | undefined {
  const id = String.raw`"id"\s*:\s*(\d{1,15}|"[^"\\]{1,200}")`;
  const member = String.raw`"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"`;
  const first = new RegExp(String.raw`^\s*\{\s*(?:${member}\s*,\s*)*${id}`).exec(head);
  const last = new RegExp(String.raw`,\s*${id}\s*(?:,\s*${member}\s*)*\}\s*$`).exec(tail);
  const found = first?.[1] ?? last?.[1];
  if (found === undefined) return undefined;
  return found.startsWith('"') ? found.slice(1, -1) : Number(found);
}
