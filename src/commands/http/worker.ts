import { followWork } from "../../server/log.ts";
import { sealKeys } from "../../server/seal-key.ts";
import { readAccess, secretsIn } from "../../settings/access.ts";
import type { CommandLine } from "../../settings/command-line.ts";
import { inputOf, settingsFrom } from "../settings-input.ts";
import { stopSignal } from "../stop-signal.ts";
import { backendOf, giveUpAfter, isStoreReady, mayMigrate, withoutStore } from "../store.ts";
import { driveLeftRuns, workerName } from "./driving.ts";
import { projects } from "./projects.ts";

/** After a signal: how long requests in flight get to be answered and journaled, in milliseconds. */
const LAST_MS = 20_000;

/** Drives runs of a shared store without serving, until a signal comes; gives the exit code. */
export async function runWorker(line: CommandLine): Promise<number> {
  process.stderr.on("error", () => undefined);
  const asked = stopSignal();
  const input = { ...inputOf(line), overHttp: true } as const;
  const read = settingsFrom(input);
  if (read.store === undefined) return withoutStore("worker");
  // A worker drives by its name; the setting is for those that serve.
  const settings = { ...read, store: { ...read.store, drives: true } };
  const access = readAccess(settings.http.accessFile);
  const stopping = new AbortController();
  const backend = await backendOf(settings);
  const seals = sealKeys(settings.sealKey, backend.sealKey);
  const all = projects(input, settings, {
    stopping: stopping.signal,
    backend,
    secrets: secretsIn(access),
    sealKey: () => seals("confirmation"),
    work: followWork(),
  });
  const { log } = all.of(undefined);
  const isReady = await isStoreReady(settings, { migrates: mayMigrate(line), log });
  if (isReady) {
    await driveLeftRuns({ all, input, settings, access }, stopping.signal);
    log.info("driving", { worker: workerName() });
    await asked;
    log.info("stopping", {});
  }
  stopping.abort();
  giveUpAfter(backend, LAST_MS);
  await all.interrupt();
  await all.close();
  await backend.close();
  return isReady ? 0 : 1;
}
