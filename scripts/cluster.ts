// Starts the services of compose.yaml without containers, for a person to try: PostgreSQL, two replicas, a worker and a
// proxy, with the emulated service. `npm run cluster -- --port 8080`; Ctrl-C ends all of them. Needs a built dist/.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import * as z from "zod";
import { startSandbox } from "../src/sandbox/index.ts";
import { testPostgres } from "../test/cluster/postgres.ts";
import { fileAt } from "./packaging/generated.ts";
import { passesOn, proxyTo } from "./serving/proxy.ts";

const COMMAND = fileURLToPath(fileAt("dist/main.js"));
const { port } = parseArgs({ options: { port: { type: "string", default: "8080" } } }).values;
const line = z.looseObject({ message: z.string(), url: z.string().default("") });

/** Starts the built command. Returns its process, and its address after its log contains `message`. */
async function started(args: readonly string[], message: string, settings: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [COMMAND, ...args], {
    env: { PATH: process.env.PATH ?? "", ...settings },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  const url = await new Promise<string>((resolve, reject) => {
    child.once("exit", () => reject(new Error(`the command ${args.join(" ")} ended during its start:\n${log}`)));
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      log = (log + text).slice(-100_000);
      const lines = log.split("\n").filter((one) => one.startsWith("{") && one.endsWith("}"));
      const found = lines.map((one) => line.parse(JSON.parse(one))).find((one) => one.message === message);
      if (found !== undefined) resolve(found.url);
    });
  });
  child.removeAllListeners("exit");
  return { child, url };
}

const asked = Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
const sandbox = await startSandbox({ lockWaitMs: 0 });
const postgres = await testPostgres();
const children: ChildProcess[] = [];
try {
  const settings = {
    TARGETING_API_URL: sandbox.url,
    TARGETING_API_KEY: "sandbox-key",
    EVENT_API_URL: sandbox.url,
    EVENT_APP_KEY: "sandbox-app-key",
    TARGETING_MCP_MODE: "live",
    TARGETING_MCP_STORE: await postgres.database(),
    TARGETING_MCP_METRICS: "on",
  };
  const one = await started(["http", "--port", "0"], "serving", settings);
  children.push(one.child);
  const two = await started(["http", "--port", "0"], "serving", settings);
  children.push(two.child);
  const worker = await started(["worker", "--port", "0"], "driving", settings);
  children.push(worker.child);
  const proxy = proxyTo([one.url, two.url], passesOn());
  proxy.listen(Number(port), "127.0.0.1");
  await once(proxy, "listening");
  const address = proxy.address();
  const at = typeof address === "object" && address !== null ? address.port : port;
  process.stdout.write(
    [
      `proxy      http://127.0.0.1:${at}/mcp   (claude mcp add --transport http targeting http://127.0.0.1:${at}/mcp)`,
      `replica    ${one.url}   process ${one.child.pid}`,
      `replica    ${two.url}   process ${two.child.pid}`,
      `worker     ${worker.url}/metrics   process ${worker.child.pid}`,
      `service    ${sandbox.url}/_sandbox/state`,
      `PostgreSQL ${settings.TARGETING_MCP_STORE}`,
      "Kill a process, and its runs go on in another one. Ctrl-C ends all of it.",
      "",
    ].join("\n"),
  );
  await asked;
  proxy.close();
  proxy.closeAllConnections();
} finally {
  const ended = children.map((child) => child.exitCode ?? child.signalCode ?? once(child, "exit"));
  for (const child of children) child.kill("SIGTERM");
  await Promise.all(ended);
  await postgres.stop();
  await sandbox.close();
}
