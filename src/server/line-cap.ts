import { Transform, type TransformCallback } from "node:stream";

/** A line that was too long to be passed on: its size in bytes, and what it began and ended with. */
export interface LongLine {
  readonly bytes: number;
  readonly head: string;
  readonly tail: string;
}

const SHOWN_BYTES = 512;
const NEWLINE = 0x0a;

/** How a cap is set up. */
export interface LineCapOptions {
  readonly mostBytes: number;
  /** Told about each line that was left out. */
  readonly onLongLine: (line: LongLine) => void;
  /** Waited for between the last line and the end of the stream. */
  readonly beforeEnd: () => Promise<void>;
}

/** Passes whole lines on, one at a time, and leaves out those that are too long, without keeping them in memory. */
export class LineCap extends Transform {
  readonly #options: LineCapOptions;
  #parts: Buffer[] = [];
  #bytes = 0;
  #head = Buffer.alloc(0);
  #tail = Buffer.alloc(0);

  constructor(options: LineCapOptions) {
    super();
    this.#options = options;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      this.#take(chunk.subarray(from, at + 1));
      this.#endLine();
      from = at + 1;
    }
    if (from < chunk.length) this.#take(chunk.subarray(from));
    done();
  }

  override _flush(done: TransformCallback): void {
    if (this.#bytes > 0) this.#endLine();
    this.#options.beforeEnd().then(() => done(), done);
  }

  #take(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes <= this.#options.mostBytes) {
      this.#parts.push(part);
      return;
    }
    if (this.#head.length === 0) this.#head = Buffer.concat(this.#parts).subarray(0, SHOWN_BYTES);
    if (this.#head.length < SHOWN_BYTES) this.#head = Buffer.concat([this.#head, part]).subarray(0, SHOWN_BYTES);
    this.#parts = [];
    this.#tail = Buffer.concat([this.#tail, part.subarray(-SHOWN_BYTES)]).subarray(-SHOWN_BYTES);
  }

  #endLine(): void {
    if (this.#bytes <= this.#options.mostBytes) {
      this.push(Buffer.concat(this.#parts));
    } else {
      const [head, tail] = [this.#head.toString("utf8"), this.#tail.toString("utf8")];
      this.#options.onLongLine({ bytes: this.#bytes, head, tail });
    }
    this.#parts = [];
    this.#bytes = 0;
    this.#head = Buffer.alloc(0);
    this.#tail = Buffer.alloc(0);
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
