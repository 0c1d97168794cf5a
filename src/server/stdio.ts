import type { Readable, Writable } from "node:stream";
import type { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import type { CallsUnderWay } from "./calls-under-way.ts";
import { LineCap, type LongLine, requestIdOf } from "./line-cap.ts";
import type { Log } from "./log.ts";

/** The longest message that is read, in bytes: twice what one request to the API may hold. */
const LONGEST_LINE = 16 * 1_048_576;

/** How long calls under way may go on once nobody sends any more, so that `printf … | targeting-mcp` is answered. */
const LAST_ANSWERS_MS = 2000;

const INVALID_REQUEST = -32_600;

/** What a connection over standard input and output needs. */
export interface StdioOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly createServer: () => McpServer;
  readonly calls: CallsUnderWay;
  readonly log: Log;
  /** Called as soon as the input has ended: nothing new is to be started. */
  readonly onInputEnd: () => void;
}

/** A connection that is being served. */
export interface StdioConnection {
  /** Resolves when the connection is over: the input ended and the last answers are out, or the output broke. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

/** Serves one client over newline-delimited JSON-RPC, of either protocol era. A line that is too long costs only itself. */
export function serveOverStdio({ input, output, createServer, calls, log, onInputEnd }: StdioOptions): StdioConnection {
  const lines = new LineCap({
    mostBytes: LONGEST_LINE,
    onLongLine: (line) => refuseLine(line, output, log),
    async beforeEnd() {
      onInputEnd();
      await calls.idle(LAST_ANSWERS_MS);
    },
  });
  const transport = new StdioServerTransport(input.pipe(lines), output, { maxBufferSize: 2 * LONGEST_LINE });
  const ended = new Promise<void>((resolve) => {
    lines.once("close", resolve);
    output.once("error", () => resolve());
    input.once("error", () => lines.end());
    // A pipe does not pass on that its source was destroyed.
    input.once("close", () => lines.end());
  });
  const handle = serveStdio(createServer, {
    transport,
    onerror: (error) => log.warn("a message could not be handled", { error }),
  });
  return { ended, close: () => handle.close() };
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
