// Runs the built command repeatedly in one process, on request of its parent (./warm-process.ts), because starting Node
// and loading the code take most of the time of a short command. Arguments, environment, folder, input, output, signals
// and exit code are the same as in a separate process.
import { PassThrough, Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import * as z from "zod";

const bytes = z.custom<Uint8Array>((value) => value instanceof Uint8Array);
const start = z.object({ command: z.string(), args: z.array(z.string()), env: z.record(z.string(), z.string()) });
const asked = z.union([
  z.object({ start, cwd: z.string() }),
  z.object({ leave: z.literal(true) }),
  z.object({ input: bytes.optional() }),
]);
export type Asked = z.infer<typeof asked>;
/** What this process sends to its parent: parts of the output, and the exit code after the command has ended. */
export const answered = z.object({ out: bytes.optional(), error: bytes.optional(), code: z.number().optional() });

/** Sends the output of the command to the parent until the command has ended. */
const output = (name: "out" | "error", run: number) =>
  new Writable({
    write(chunk: Uint8Array, _encoding, done) {
      if (process.connected && run === running) process.send?.({ [name]: chunk }, undefined, undefined, done);
      else done();
    },
  });

// The built command calls exit when it ends. Here that must not end the process, which waits for the next command.
const exit = process.exit.bind(process);
Object.assign(process, { exit: () => undefined });

let started = 0;
/** The number of the command that runs now; 0: none runs. */
let running = 0;
let stdin = new PassThrough();

async function run({ command, args, env }: z.infer<typeof start>): Promise<void> {
  started += 1;
  running = started;
  stdin = new PassThrough();
  const [stdout, stderr] = [output("out", running), output("error", running)];
  for (const [name, value] of Object.entries({ stdin, stdout, stderr })) {
    Object.defineProperty(process, name, { value, configurable: true });
  }
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.argv.splice(1, process.argv.length, command, ...args);
  process.exitCode = undefined;
  // A new query makes Node run the main file again. The files that it imports are already loaded.
  await import(`${pathToFileURL(command).href}?${started}`).catch((thrown: unknown) => {
    stderr.write(String(thrown instanceof Error ? thrown.stack : thrown));
    process.exitCode = 1;
  });
  for (const stream of [stdout, stderr]) await new Promise((resolve) => stream.write("", resolve));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.removeAllListeners(signal);
  running = 0;
  process.send?.({ code: process.exitCode ?? 0 });
}

process.on("message", async (message) => {
  const given = asked.parse(message);
  if ("start" in given) {
    process.chdir(given.cwd);
    await run(given.start);
  } else if ("leave" in given) {
    if (running > 0 && !process.emit("SIGTERM")) exit(1);
  } else if (given.input === undefined) stdin.end();
  else stdin.write(given.input);
});
process.on("disconnect", () => exit());
