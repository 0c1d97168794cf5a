import { setTimeout as delay } from "node:timers/promises";
import { BUILT_IN_KEYS } from "../sandbox/http/keys.ts";
import type { Sandbox, SandboxOptions } from "../sandbox/index.ts";

/** A sandbox inside this process: it starts when its address is first asked for, and never keeps the process alive. */
export interface EmbeddedSandbox {
  /** Rejects when the port stays taken. */
  readonly url: () => Promise<string>;
  close(): Promise<void>;
}

/** A host may start a second copy of a server for a moment to look at it; that copy then holds the port. */
const PORT_TRIES = 20;
const PORT_WAIT_MS = 150;

/** Keys that a sandbox accepts besides its own. */
type Keys = NonNullable<SandboxOptions["keys"]>;

/** Sets a sandbox up on a port (0: any free one). */
export function embeddedSandbox(
  options: Pick<SandboxOptions, "allowedHosts"> & { readonly port: number; readonly keys: Keys },
): EmbeddedSandbox {
  let starting: Promise<Sandbox> | undefined;
  return {
    async url() {
      starting ??= start(options);
      try {
        return (await starting).url;
      } catch (thrown) {
        starting = undefined;
        throw thrown;
      }
    },
    async close() {
      const sandbox = await starting;
      await sandbox?.close();
    },
  };
}

async function start(options: SandboxOptions): Promise<Sandbox> {
  const { startSandbox } = await import("../sandbox/index.ts");
  for (let tries = 1; ; tries += 1) {
    try {
      const sandbox = await startSandbox(options);
      sandbox.unref();
      return sandbox;
    } catch (thrown) {
      if (!isPortTaken(thrown) || tries === PORT_TRIES) throw thrown;
      // The process lives on meanwhile: before the first answer nothing else may keep it alive.
      await delay(PORT_WAIT_MS);
    }
  }
}

/** The keys of the settings, without those that every sandbox has with scopes of its own. */
export function acceptedKeys(managementKey: string, appKey: string): Keys {
  const builtIn: readonly string[] = BUILT_IN_KEYS.management.map(({ key }) => key);
  return {
    managementKeys: builtIn.includes(managementKey) ? [] : [{ key: managementKey }],
    appKeys: [appKey],
  };
}

function isPortTaken(thrown: unknown): boolean {
  return thrown instanceof Error && "code" in thrown && thrown.code === "EADDRINUSE";
}
