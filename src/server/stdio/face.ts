import type { Writable } from "node:stream";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/server";

/** A server's way to the client of a connection, which it may share with another server. */
export class Face implements Transport {
  onmessage: Transport["onmessage"];
  onerror: Transport["onerror"];
  onclose: Transport["onclose"];
  readonly #output: Writable;
  readonly #closed: () => void;

  constructor(output: Writable, closed: () => void) {
    this.#output = output;
    this.#closed = closed;
  }

  async start(): Promise<void> {}

  send(message: JSONRPCMessage): Promise<void> {
    const line = `${JSON.stringify(message)}\n`;
    // An error of the stream is an error of the output, too.
    return new Promise((resolve) => void this.#output.write(line, () => resolve()));
  }

  async close(): Promise<void> {
    this.#closed();
  }
}
