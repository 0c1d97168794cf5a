import type { Backend } from "../runs/backend.ts";
import type { Settings, SettingsInput } from "../settings/settings.ts";
import type { ToolServices } from "../tools/context.ts";
import { once } from "../tools/define-tool.ts";
import type { ServerProcess, Shared } from "./connect.ts";

/** A client has listed the tools by then, and may not have called one yet, in milliseconds. */
const SOON_MS = 1000;

/** The rooms below the server, which are connected when they are first needed. */
export interface Connecting {
  /** Connects and starts them at the first call. Rejects with a SettingsError where they cannot be. */
  connected(): Promise<ServerProcess>;
  /** The services of what `connected` gives, with the page on which the person of this machine decides. */
  services(): Promise<ToolServices>;
  /** What `connected` has given; undefined before that. */
  now(): ServerProcess | undefined;
  close(): Promise<void>;
}

/**
 * Connects the rooms below the server with the first call, or soon after the start: loading them takes a fifth of the
 * start, and no list of tools needs them.
 */
export function connectLazily(
  settings: Settings,
  { stopping, logging, observer }: Pick<Shared, "stopping" | "observer"> & Required<Pick<Shared, "logging">>,
  environment: SettingsInput["environment"],
): Connecting {
  let made: ServerProcess | undefined;
  let backend: Backend | undefined;
  let isConnecting = false;
  const connected = once(async (): Promise<ServerProcess> => {
    isConnecting = true;
    const [{ connect }, { backendOf }, { sealKeys }] = await Promise.all([
      import("./connect.ts"),
      import("./store.ts"),
      import("./seal-key.ts"),
    ]);
    backend = await backendOf(settings);
    const seals = sealKeys(settings.sealKey, backend.sealKey);
    made = connect(settings, { stopping, backend, sealKey: () => seals("confirmation"), logging, observer });
    await made.start();
    return made;
  });
  const soon = setTimeout(() => {
    if (!stopping.aborted) connected().catch((error: unknown) => logging.log.error("not connected", { error }));
  }, SOON_MS).unref();
  return {
    connected,
    services: once(async () => {
      const [made, { withPage }] = await Promise.all([connected(), import("./decision-page.ts")]);
      return withPage(made, settings, environment);
    }),
    now: () => made,
    async close() {
      clearTimeout(soon);
      if (isConnecting)
        await connected().then(
          ({ close }) => close(),
          () => undefined,
        );
      await backend?.close();
    },
  };
}
