import { createServer, type Server } from "node:http";
import { hostname } from "node:os";
import { getRequestListener } from "@hono/node-server";
import { claimOrphanedRuns, LAST_CALLS_MS, probes, servedFigures, startProcess } from "../http/process.ts";
import { NO_TRACES } from "../runtime/observers.ts";
import { inputOf, settingsFrom } from "../runtime/settings-input.ts";
import { giveUpAfter, withoutStore } from "../runtime/store.ts";
import { listen, stopSignal } from "../runtime/terminal.ts";
import { readAccess } from "../settings/access-file.ts";
import { type CommandLine, optionOf } from "../settings/command-line.ts";
import { text, wholeNumber } from "../settings/value-types.ts";

export async function runWorker(line: CommandLine): Promise<number> {
  process.stderr.on("error", () => undefined);
  const asked = stopSignal();
  const input = { ...inputOf(line), overHttp: true } as const;
  const host = optionOf(line, "host", text) ?? "127.0.0.1";
  const port = optionOf(line, "port", wholeNumber(0, 65_535));
  const read = settingsFrom(input);
  if (read.store === undefined) return withoutStore("worker");
  // A worker always executes runs. TARGETING_MCP_DRIVE is only for processes that serve calls.
  const settings = { ...read, store: { ...read.store, drives: true } };
  const access = readAccess(settings.http.accessFile);
  const start = { line, input, settings, access, serves: false };
  const started = await startProcess(start, settings.http.metrics && port !== undefined, asked);
  const { stopping, figures, problem, backend, all, log, isReady, close } = started;
  let probed: Server | undefined;
  if (isReady) {
    if (problem !== undefined) log.warn(NO_TRACES, { error: problem });
    await claimOrphanedRuns(started);
    const answers = probes({
      stopping: stopping.signal,
      ready: backend.ready,
      metrics: figures && servedFigures(figures, access),
    });
    probed = createServer(getRequestListener(answers.fetch, { overrideGlobalObjects: false }));
    const url = port === undefined ? undefined : await listen(probed, host, port);
    log.info("driving", { worker: `${hostname()}:${process.pid}`, ...(url !== undefined && { url }) });
    await asked;
    log.info("stopping", {});
  }
  stopping.abort();
  giveUpAfter(backend, LAST_CALLS_MS);
  await all.interrupt();
  await close();
  probed?.close();
  probed?.closeAllConnections();
  return isReady === false ? 1 : 0;
}
