import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Transport } from "@modelcontextprotocol/client";
import { WarmProcess } from "./warm-process.ts";

/** Connects a client over stdio to the built command, in a process that has run it before. */
export class WarmTransport implements Transport {
  onmessage?: Transport["onmessage"];
  onclose?: () => void;
  readonly #start: () => WarmProcess;
  #child: WarmProcess | undefined;

  constructor(...[command, args, env]: ConstructorParameters<typeof WarmProcess>) {
    this.#start = () => new WarmProcess(command, args, env);
  }

  async start(): Promise<void> {
    const child = this.#start();
    this.#child = child;
    createInterface({ input: child.stdout }).on("line", (line) => this.onmessage?.(JSON.parse(line)));
    child.stderr.resume();
    child.once("close", () => this.onclose?.());
  }

  async send(message: unknown): Promise<void> {
    this.#child?.stdin.write(`${JSON.stringify(message)}\n`);
  }

  /** Closes the standard input of the command, and waits until the command has ended. */
  async close(): Promise<void> {
    if (this.#child === undefined || this.#child.exitCode !== null) return;
    this.#child.stdin.end();
    await once(this.#child, "close");
  }

  /** Releases the process for the next client. */
  leave(): void {
    this.#child?.leave();
    this.#child = undefined;
  }
}
