import { createServer, type Server } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { probes } from "../../server/http/probes.ts";
import { followWork } from "../../server/log.ts";
import { sealKeys } from "../../server/seal-key.ts";
import { readAccess, secretsIn } from "../../settings/access.ts";
import { type CommandLine, optionOf } from "../../settings/command-line.ts";
import { text, wholeNumber } from "../../settings/forms.ts";
import { NO_TRACES, observers } from "../connecting/observers.ts";
import { backendOf, giveUpAfter, isStoreReady, mayMigrate, withoutStore } from "../connecting/store.ts";
import { inputOf, settingsFrom } from "../settings-input.ts";
import { orAsked, stopSignal } from "../stop-signal.ts";
import { driveLeftRuns, workerName } from "./driving.ts";
import { listen } from "./listening.ts";
import { projects } from "./projects.ts";
import { servedFigures } from "./served-figures.ts";

/** After a signal: how long requests in flight get to be answered and journaled, in milliseconds. */
const LAST_MS = 20_000;

/** Drives runs of a shared store without serving calls, until a signal comes; gives the exit code. */
export async function runWorker(line: CommandLine): Promise<number> {
  process.stderr.on("error", () => undefined);
  const asked = stopSignal();
  const input = { ...inputOf(line), overHttp: true } as const;
  const host = optionOf(line, "host", text) ?? "127.0.0.1";
  const port = optionOf(line, "port", wholeNumber(0, 65_535));
  const read = settingsFrom(input);
  if (read.store === undefined) return withoutStore("worker");
  // A worker drives by its name; the setting is for those that serve.
  const settings = { ...read, store: { ...read.store, drives: true } };
  const access = readAccess(settings.http.accessFile);
  const stopping = new AbortController();
  const { observer, over, text: figures, problem } = await observers(settings.http.metrics && port !== undefined);
  const backend = over(await backendOf(settings));
  const seals = sealKeys(settings.sealKey, backend.sealKey);
  const all = projects(input, settings, {
    stopping: stopping.signal,
    backend,
    secrets: secretsIn(access),
    sealKey: () => seals("confirmation"),
    work: followWork(),
    observer,
  });
  const { log } = all.of(undefined);
  const isReady = await orAsked(isStoreReady(settings, { migrates: mayMigrate(line), log }), asked);
  let probed: Server | undefined;
  if (isReady) {
    if (problem !== undefined) log.warn(NO_TRACES, { error: problem });
    await driveLeftRuns({ all, input, settings, access }, stopping.signal);
    const answers = probes({
      stopping: stopping.signal,
      ready: backend.ready,
      metrics: figures && servedFigures(figures, access),
    });
    probed = createServer(getRequestListener(answers.fetch, { overrideGlobalObjects: false }));
    const url = port === undefined ? undefined : await listen(probed, host, port);
    log.info("driving", { worker: workerName(), ...(url !== undefined && { url }) });
    await asked;
    log.info("stopping", {});
  }
  stopping.abort();
  giveUpAfter(backend, LAST_MS);
  await all.interrupt();
  await all.close();
  await backend.close();
  probed?.close();
  probed?.closeAllConnections();
  return isReady === false ? 1 : 0;
}
