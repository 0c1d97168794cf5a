import { type ChildProcess, fork } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { type Asked, answered } from "./warm-command.ts";

/** Processes that wait for their next command. They end with the test worker, and do not keep the worker alive. */
const idle: ChildProcess[] = [];

/**
 * Starts the built command in a process that has run it before. Can be used like a child process that `spawn` returns.
 * When the command ends by itself or after `leave`, the process is kept for the next command. If a test kills the
 * command, the process ends too.
 */
export class WarmProcess extends EventEmitter<{ close: [code: number | null, signal: string | null] }> {
  exitCode: number | null = null;
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly stdin = new Writable({
    write: (input: Uint8Array, _encoding, done) => this.#send({ input }, done),
    final: (done) => {
      this.#isLast = true;
      this.#send({}, done);
    },
  });
  readonly #child = nextProcess();
  /** If true, the process ends with its present command. */
  #isLast = false;

  constructor(command: string, args: readonly string[], env: Record<string, string>) {
    super();
    const child = this.#child;
    child.ref();
    child.on("message", (message) => {
      const { out, error, code } = answered.parse(message);
      if (out !== undefined) this.stdout.write(out);
      if (error !== undefined) this.stderr.write(error);
      if (code === undefined) return;
      this.exitCode = code;
      if (this.#isLast) child.kill("SIGKILL");
      else {
        child.removeAllListeners("message").removeAllListeners("exit").unref();
        idle.push(child);
        this.#end(code, null);
      }
    });
    child.once("exit", (code, signal) => this.#end(this.exitCode ?? code, this.exitCode === null ? signal : null));
    this.#send({ start: { command, args: [...args], env }, cwd: process.cwd() });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  kill(signal: NodeJS.Signals = "SIGTERM"): boolean {
    if (this.exitCode !== null) return false;
    this.#isLast = true;
    return this.#child.kill(signal);
  }

  /** Asks the command to end, so that its process can be used again. Does not wait for the end. */
  leave(): void {
    this.#send({ leave: true });
  }

  /**
   * Sends a message to the process. Does nothing after the command has ended, because the process may already run
   * another command.
   */
  #send(asked: Asked, done: (error: Error | null) => void = () => undefined): void {
    if (this.exitCode === null) this.#child.send(asked, done);
    else done(null);
  }

  async #end(code: number | null, signal: string | null): Promise<void> {
    this.exitCode = code;
    const streams = [this.stdout, this.stderr];
    await Promise.all(streams.map((stream) => stream.closed || once(stream.end(), "close")));
    this.emit("close", code, signal);
  }
}

function nextProcess(): ChildProcess {
  const child = idle.pop();
  if (child === undefined) return started();
  return child.connected ? child : nextProcess();
}

function started(): ChildProcess {
  const program = join(process.env.TEST_PROGRAMS ?? "", "warm-command.mjs");
  const child = fork(program, {
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    execArgv: [],
    serialization: "advanced",
  });
  child.channel?.unref();
  return child;
}
