import type { Readable, Writable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { JSONRPCMessage, McpServer, Transport } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { CallsUnderWay } from "../calls-under-way.ts";
import type { Log } from "../log.ts";
import { Lines, type LongLine, requestIdOf } from "./lines.ts";

/** The longest message that is read, in bytes: twice what one request to the API may hold. */
const LONGEST_LINE = 16 * 1_048_576;

/** How long running calls may go on after the input has ended, so that `printf … | targeting-mcp` is answered. */
const LAST_ANSWERS_MS = 2000;

const INVALID_REQUEST = -32_600;

/** What a connection over standard input and output is made of. */
export interface StdioOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly createServer: () => McpServer;
  readonly calls: CallsUnderWay;
  readonly log: Log;
  /** Called as soon as the input has ended: nothing new may start. */
  readonly onInputEnd: () => void;
}

/** A connection that is being served. */
export interface StdioConnection {
  /** Resolves when the connection is over: the input ended and the last answers are out, or the output broke. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

/**
 * Serves one client over newline-delimited JSON-RPC, of either protocol era. A line that is too long costs only itself.
 */
export function serveOverStdio(options: StdioOptions): StdioConnection {
  const { output, createServer, log } = options;
  const transport = new LineTransport(options);
  const ended = new Promise<void>((resolve) => {
    transport.whenOver = resolve;
    output.once("error", () => resolve());
  });
  const handle = serveStdio(createServer, {
    transport,
    onerror: (error) => log.warn("a message could not be handled", { error }),
  });
  return { ended, close: () => handle.close() };
}

/**
 * One message per line, in both directions. The SDK's own transport would end the connection at a line that is too
 * long, and drop running calls when the input ends.
 */
class LineTransport implements Transport {
  onmessage: Transport["onmessage"];
  onerror: Transport["onerror"];
  onclose: Transport["onclose"];
  whenOver: (() => void) | undefined;
  readonly #options: StdioOptions;
  readonly #lines: Lines;
  #inputEnded = false;
  #closed = false;

  constructor(options: StdioOptions) {
    const { output, log } = options;
    this.#options = options;
    this.#lines = new Lines({
      mostBytes: LONGEST_LINE,
      onLine: (line) => this.#read(line),
      onLongLine: (line) => refuseLine(line, output, log),
    });
  }

  async start(): Promise<void> {
    const { input, output } = this.#options;
    input.on("data", (chunk: Buffer) => this.#lines.add(chunk));
    // One that was destroyed only closes.
    for (const event of ["end", "error", "close"]) input.once(event, () => this.#endOfInput());
    if (input.readableEnded || input.destroyed) this.#endOfInput();
    output.on("error", (error) => {
      if (!this.#closed) this.onerror?.(error);
    });
  }

  send(message: JSONRPCMessage): Promise<void> {
    const line = `${JSON.stringify(message)}\n`;
    // An error of the stream is an error of the output, too.
    return new Promise((resolve) => void this.#options.output.write(line, () => resolve()));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.input.removeAllListeners("data").pause();
    this.onclose?.();
  }

  #read(line: string): void {
    const message = parsed(line);
    if (message !== undefined) this.onmessage?.(message);
    else if (line.trim() !== "") this.#options.log.warn("a line is no message", { bytes: line.length });
  }

  #endOfInput(): void {
    if (this.#inputEnded) return;
    this.#inputEnded = true;
    this.#lines.end();
    this.#options.onInputEnd();
    this.#answerLast()
      .catch((error: unknown) => this.#options.log.error("the connection could not be closed", { error }))
      .finally(() => this.whenOver?.());
  }

  async #answerLast(): Promise<void> {
    // The last messages become calls, and the last results answers, before the next turn of the event loop.
    await nextTurn();
    await this.#options.calls.idle(LAST_ANSWERS_MS);
    await nextTurn();
    await this.close();
  }
}

/** Parses a line; undefined where it is no JSON-RPC message. The SDK checks the kind of message. */
function parsed(line: string): JSONRPCMessage | undefined {
  try {
    const message: unknown = JSON.parse(line);
    return isMessage(message) ? message : undefined;
  } catch {
    return undefined;
  }
}

function isMessage(value: unknown): value is JSONRPCMessage {
  return typeof value === "object" && value !== null && "jsonrpc" in value && value.jsonrpc === "2.0";
}

function refuseLine(line: LongLine, output: Writable, log: Log): void {
  const id = requestIdOf(line);
  log.warn("a message was too long to be read", { bytes: line.bytes, limit: LONGEST_LINE, id });
  if (id === undefined) return;
  const message =
    `the message has ${line.bytes} bytes, and the longest that is read has ${LONGEST_LINE}: ` +
    "send the items in several calls, or give them as a file";
  output.write(`${JSON.stringify({ jsonrpc: "2.0", id, error: { code: INVALID_REQUEST, message } })}\n`);
}
