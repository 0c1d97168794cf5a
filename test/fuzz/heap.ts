import { startHttp } from "../support/http-server.ts";

/** A module that collects garbage on SIGUSR2, and prints how many bytes of the heap are in use. */
const TELL_HEAP = `
process.on("SIGUSR2", () => {
  for (let round = 0; round < 3; round += 1) globalThis.gc();
  process.stderr.write("heap " + process.memoryUsage().heapUsed + "\\n");
});`;

/** Starts the command over HTTP, so that its heap can be measured. */
export async function startWatched(environment: Readonly<Record<string, string>>) {
  const options = ["--expose-gc", `--import=data:text/javascript,${encodeURIComponent(TELL_HEAP)}`];
  const server = await startHttp(environment, [], options);
  const told = () => [...server.stderr().matchAll(/^heap (\d+)$/gm)].map(([, bytes]) => Number(bytes));
  return {
    ...server,
    /** Returns the size of the heap after a garbage collection, in bytes. */
    async heap(): Promise<number> {
      const before = told().length;
      server.child.kill("SIGUSR2");
      for (;;) {
        const now = told();
        if (now.length > before) return now.at(-1) ?? 0;
        if (server.child.exitCode !== null) throw new Error(`the server ended: ${server.stderr()}`);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
  };
}
