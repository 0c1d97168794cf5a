import type { Readable, Writable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  isJSONRPCRequest,
  type JSONRPCMessage,
  type McpServer,
  type McpServerFactory,
  type Transport,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { Log } from "../observe/log.ts";
import { isJsonObject, parseJson } from "../platform/json.ts";
import { showsViews } from "./elicitation.ts";
import type { Listening, RunWatcher } from "./run-updates.ts";
import type { CallsUnderWay } from "./server-parts.ts";

/** How many milliseconds calls may continue after the input has ended. So `printf … | targeting-mcp` gets answers. */
const LAST_ANSWERS_MS = 10_000;

const INVALID_REQUEST = -32_600;
const MALFORMED =
  "the request is malformed: id and progressToken must be a text or a whole number, method a text, params an object, " +
  "and there must be no other field";

type Era = Parameters<McpServerFactory>[0]["era"];

interface StdioOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly maxLineBytes: number;
  readonly createServer: (showsViews: boolean, era: Era) => McpServer | Promise<McpServer>;
  /** Checks a request to listen to notifications. The client stops listening when `signal` is aborted. */
  readonly listened: (message: JSONRPCMessage, signal: AbortSignal) => Promise<Listening>;
  readonly watcher: () => Promise<RunWatcher>;
  readonly calls: CallsUnderWay;
  readonly log: Log;
  /** Called when the input has ended. No new work may start after that. */
  readonly onInputEnd: () => void;
}

/**
 * Serves one client over newline-delimited JSON-RPC, in every protocol version. The SDK's own transport would end the
 * connection at a long line, and drop running calls when the input ends. Messages go to one of two MCP servers: one for
 * clients that show views (MCP Apps), and one for all others.
 */
export class StdioConnection {
  /** Resolves after the last answers, at most LAST_ANSWERS_MS after the input ends, or when the output has failed. */
  readonly ended: Promise<void>;
  #over = (): void => undefined;
  readonly #options: StdioOptions;
  readonly #lines: Lines;
  readonly #faces = new Map<boolean, Transport>();
  readonly #closing: (() => Promise<void>)[] = [];
  readonly #listening = new Map<unknown, AbortController>();
  /** For each request to listen, by its ID: starts the notifications when the SDK acknowledges the request. */
  readonly #beginning = new Map<unknown, (message: object) => object | undefined>();
  /** Whether the client shows views, according to the last message that declared capabilities. */
  #last: boolean | undefined;
  #inputEnded = false;
  #closed = false;

  constructor(options: StdioOptions) {
    const { input, output, maxLineBytes } = options;
    this.#options = options;
    this.#lines = new Lines({
      mostBytes: maxLineBytes,
      onLine: (line) => this.#read(line),
      onLongLine: (line) => refuseLine(line, options),
    });
    this.ended = new Promise((resolve) => {
      this.#over = resolve;
    });
    input.on("data", (chunk: Buffer) => this.#lines.add(chunk));
    // A stream that was destroyed emits only "close". Any of the three events ends the input.
    for (const event of ["end", "error", "close"]) input.once(event, () => this.#endOfInput());
    if (input.readableEnded || input.destroyed) this.#endOfInput();
    output.on("error", (error) => {
      this.#over();
      if (!this.#closed) for (const face of this.#faces.values()) face.onerror?.(error);
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#closing.map((close) => close()));
    this.#endMessages();
  }

  #endMessages(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.input.removeAllListeners("data").pause();
    for (const ending of this.#listening.values()) ending.abort();
    for (const face of this.#faces.values()) face.onclose?.();
  }

  /**
   * Passes a message to the MCP server for this client, according to the last message that declared capabilities. A
   * notification goes to both servers, because it may belong to a request of either. It may also end listening. If it
   * comes first, it is ignored, because the SDK would conclude that the client has an old protocol version.
   */
  #deliver(message: JSONRPCMessage): void {
    const said = showsViews(message);
    if (said === undefined && !("id" in message)) {
      this.#endListening(message);
      for (const face of this.#faces.values()) face.onmessage?.(message);
      return;
    }
    this.#last = said ?? this.#last ?? false;
    this.#faceFor(this.#last).onmessage?.(message);
  }

  #faceFor(isWithViews: boolean): Transport {
    const known = this.#faces.get(isWithViews);
    if (known !== undefined) return known;
    const { output, createServer, log } = this.#options;
    const send = (message: object) => written(output, this.#begun(message));
    const transport: Transport = { start: async () => {}, send, close: async () => this.#endMessages() };
    this.#faces.set(isWithViews, transport);
    const onerror = (error: Error): void => log.warn("a message could not be handled", { error });
    const create = async ({ era }: Parameters<McpServerFactory>[0]) => createServer(isWithViews, era);
    this.#closing.push(serveStdio(create, { transport, onerror }).close);
    return transport;
  }

  #read(line: string): void {
    // A line may be a list: protocol version 2025-03-26 allows several messages in one line.
    for (const message of [parseJson(line)].flat()) {
      if (isMessage(message)) this.#take(message);
      else if (line.trim() !== "") this.#options.log.warn("a line is not a message", { bytes: line.length });
    }
  }

  #take(message: JSONRPCMessage): void {
    const id = "method" in message && "id" in message ? message.id : undefined;
    // The SDK would drop a malformed request, and the client would wait forever. So it is answered here.
    if (id !== undefined && !isJSONRPCRequest(message)) {
      this.#options.log.warn("a request is malformed");
      refuse(id, MALFORMED, this.#options);
    } else if ("method" in message && message.method === "subscriptions/listen") this.#listen(message);
    else this.#deliver(message);
  }

  #listen(message: JSONRPCMessage): void {
    const { listened, watcher, output, log } = this.#options;
    const id = "id" in message ? message.id : undefined;
    this.#listening.get(id)?.abort();
    const ending = new AbortController();
    this.#listening.set(id, ending);
    Promise.all([listened(message, ending.signal), watcher()])
      .then(async ([found, its]) => {
        if (ending.signal.aborted) return;
        if ("refused" in found) return written(output, found.refused);
        const send = async (notification: object): Promise<boolean> => {
          if (ending.signal.aborted || output.writableNeedDrain) return false;
          await written(output, notification);
          return true;
        };
        this.#beginning.set(id, (said) => {
          const acknowledgement = found.acknowledging(said);
          if (acknowledgement !== undefined) found.begin(its, send);
          return acknowledgement;
        });
        if (isMessage(found.message)) this.#deliver(found.message);
      })
      .catch((error: unknown) => log.error("a request to listen failed", { error }));
  }

  /** Returns the message to send. Completes an acknowledgement of a request to listen, and starts notifications. */
  #begun(message: object): object {
    for (const [id, begin] of this.#beginning) {
      const acknowledgement = begin(message);
      const isRefused = "id" in message && message.id === id;
      if (acknowledgement !== undefined || isRefused) this.#beginning.delete(id);
      if (acknowledgement !== undefined) return acknowledgement;
    }
    return message;
  }

  #endListening(message: JSONRPCMessage): void {
    if (!("method" in message) || message.method !== "notifications/cancelled") return;
    const id = message.params?.requestId;
    this.#listening.get(id)?.abort();
    this.#listening.delete(id);
    this.#beginning.delete(id);
  }

  #endOfInput(): void {
    if (this.#inputEnded) return;
    this.#inputEnded = true;
    this.#lines.end();
    this.#options.onInputEnd();
    this.#answerLast()
      .catch((error: unknown) => this.#options.log.error("the connection could not be closed", { error }))
      .finally(this.#over);
  }

  async #answerLast(): Promise<void> {
    // The last messages need one turn of the event loop to become calls, and results another one to become answers.
    await nextTurn();
    await this.#options.calls.idle(LAST_ANSWERS_MS);
    await nextTurn();
    this.#endMessages();
  }
}

/** Writes a message. Does not reject if writing fails: the listener of the stream's `error` event handles that. */
function written(output: Writable, message: object): Promise<void> {
  return new Promise((resolve) => void output.write(`${JSON.stringify(message)}\n`, () => resolve()));
}

function isMessage(value: unknown): value is JSONRPCMessage {
  return isJsonObject(value) && value.jsonrpc === "2.0";
}

function refuseLine(line: LongLine, options: StdioOptions): void {
  const { maxLineBytes, log } = options;
  const id = requestIdOf(line);
  log.warn("a message was too long to be read", { bytes: line.bytes, limit: maxLineBytes, id });
  const message =
    `the message has ${line.bytes} bytes, but at most ${maxLineBytes} are allowed: ` +
    "send the items in several calls, or save them in a file and pass its path as the argument file";
  refuse(id, message, options);
}

function refuse(id: unknown, message: string, { output }: StdioOptions): void {
  if (typeof id !== "string" && typeof id !== "number") return;
  output.write(`${JSON.stringify({ jsonrpc: "2.0", id, error: { code: INVALID_REQUEST, message } })}\n`);
}

/** A line that was too long to be read: its size, its beginning and its end. */
export interface LongLine {
  readonly bytes: number;
  readonly head: string;
  readonly tail: string;
}

const KEPT_BYTES = 512;
const NEWLINE = 0x0a;
const NOTHING = Buffer.alloc(0);

interface LineUse {
  readonly mostBytes: number;
  readonly onLine: (line: string) => void;
  readonly onLongLine: (line: LongLine) => void;
}

/** Joins chunks to lines of UTF-8. Of too long lines, keeps only beginning and end, so that they need little memory. */
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

  add(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      if (this.#bytes === 0 && at - from <= this.#use.mostBytes) this.#pass(chunk.toString("utf8", from, at));
      else {
        this.#take(chunk.subarray(from, at));
        this.#endLine();
      }
      from = at + 1;
    }
    if (from < chunk.length) this.#take(chunk.subarray(from));
  }

  end(): void {
    if (this.#bytes > 0) this.#endLine();
  }

  /** Passes a line on. Removes the byte order mark with which the first line may start. */
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
    if (this.#head.length === 0) this.#head = Buffer.concat(this.#parts).subarray(0, KEPT_BYTES);
    if (this.#head.length < KEPT_BYTES) this.#head = Buffer.concat([this.#head, part]).subarray(0, KEPT_BYTES);
    this.#parts = [];
    this.#tail = Buffer.concat([this.#tail, part.subarray(-KEPT_BYTES)]).subarray(-KEPT_BYTES);
  }
}

/** Returns the ID of a JSON-RPC request that was too long to be read. Finds it only before `params` or at the end. */
export function requestIdOf({ head, tail }: LongLine): string | number | undefined {
  const id = String.raw`"id"\s*:\s*(\d{1,15}|"[^"\\]{1,200}")`;
  const member = String.raw`"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"`;
  const first = new RegExp(String.raw`^\s*\{\s*(?:${member}\s*,\s*)*${id}`).exec(head);
  const last = new RegExp(String.raw`,\s*${id}\s*(?:,\s*${member}\s*)*\}\s*$`).exec(tail);
  const found = first?.[1] ?? last?.[1];
  if (found === undefined) return undefined;
  return found.startsWith('"') ? found.slice(1, -1) : Number(found);
}
