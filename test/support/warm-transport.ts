import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Transport } from "@modelcontextprotocol/client";
import { WarmProcess } from "./warm-process.ts";

/** Connects a client over stdio to the built command in a process that has run it before. */
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

  /** Ends the input of the command, which ends it, and waits for its end. */
  async close(): Promise<void> {
    if (this.#child === undefined || this.#child.exitCode !== null) return;
    this.#child.stdin.end();
    await once(this.#child, "close");
  }

  /** Leaves the process to the next client. */
  leave(): void {
    this.#child?.leave();
    this.#child = undefined;
  }
}
