// Runs the built command again and again in one process, as each message of its parent asks: a start of Node and the
// loading of the code are most of a short command. Arguments, environment and folder are as a process of its own has
// them; output and exit code go back to the parent.
import { pathToFileURL } from "node:url";
import * as z from "zod";

const asked = z.object({
  command: z.string(),
  args: z.array(z.string()),
  env: z.record(z.string(), z.string()),
  cwd: z.string(),
});
export type Asked = z.infer<typeof asked>;

const written: { out: Uint8Array[]; error: Uint8Array[] } = { out: [], error: [] };
for (const name of ["out", "error"] as const) {
  const write = (chunk: string | Uint8Array, ...more: readonly (string | (() => void))[]): true => {
    written[name].push(Buffer.from(chunk));
    for (const one of more) if (typeof one === "function") setImmediate(one);
    return true;
  };
  Object.assign(name === "out" ? process.stdout : process.stderr, { write });
}

let started = 0;
async function run({ command, args, env, cwd }: Asked): Promise<void> {
  [written.out, written.error] = [[], []];
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.chdir(cwd);
  process.argv.splice(1, process.argv.length, command, ...args);
  process.exitCode = undefined;
  started += 1;
  // A query of its own has the main file run again; what it loads is loaded already.
  await import(`${pathToFileURL(command).href}?${started}`).catch((thrown: unknown) => {
    process.stderr.write(String(thrown instanceof Error ? thrown.stack : thrown));
    process.exitCode = 1;
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.removeAllListeners(signal);
  const textOf = (chunks: readonly Uint8Array[]) => Buffer.concat(chunks).toString("utf8");
  process.send?.({
    code: process.exitCode,
    text: textOf(written.out).replace(/\n$/, ""),
    stderr: textOf(written.error),
  });
}

process.on("message", async (message) => run(asked.parse(message)));
// A command ends its process, whatever it has left open; here the last one's parent does.
const exit = process.exit.bind(process);
process.on("disconnect", () => exit());
Object.assign(process, { exit: () => undefined });
