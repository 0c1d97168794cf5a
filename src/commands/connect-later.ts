import type { Backend } from "../runs/backend/backend.ts";
import type { Settings } from "../settings/settings.ts";
import type { Connected, Shared } from "./connect.ts";
import type { Told } from "./log-of.ts";

/** A client has listed the tools by then, and may not have called one yet, in milliseconds. */
const SOON_MS = 1000;

/** The rooms below the server, which are connected when they are first needed. */
export interface Connecting {
  /** Connects and starts them at the first call. Rejects with a SettingsError where they cannot be. */
  connected(): Promise<Connected>;
  /** What `connected` has given; undefined before that. */
  now(): Connected | undefined;
  close(): Promise<void>;
}

/**
 * Connects the rooms below the server with the first call, or soon after the start: loading them takes a fifth of the
 * start, and no list of tools needs them.
 */
export function connectLater(
  settings: Settings,
  { stopping, told, observer }: Pick<Shared, "stopping" | "observer"> & { readonly told: Told },
): Connecting {
  let made: Connected | undefined;
  let backend: Backend | undefined;
  let making: Promise<Connected> | undefined;
  const make = async (): Promise<Connected> => {
    const [{ connect }, { backendOf }, { sealKeys }] = await Promise.all([
      import("./connect.ts"),
      import("./store.ts"),
      import("../server/seal-key.ts"),
    ]);
    backend = await backendOf(settings);
    const seals = sealKeys(settings.sealKey, backend.sealKey);
    made = connect(settings, { stopping, backend, sealKey: () => seals("confirmation"), told, observer });
    await made.start();
    return made;
  };
  const connected = (): Promise<Connected> => {
    making ??= make();
    return making;
  };
  const soon = setTimeout(() => {
    if (!stopping.aborted) connected().catch((error: unknown) => told.log.error("not connected", { error }));
  }, SOON_MS).unref();
  return {
    connected,
    now: () => made,
    async close() {
      clearTimeout(soon);
      const connected = await making?.catch(() => undefined);
      await connected?.close();
      await backend?.close();
    },
  };
}
