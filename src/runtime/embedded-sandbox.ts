import { setTimeout as delay } from "node:timers/promises";
import { StoppedError } from "../api/errors.ts";
import type { Named } from "../platform/by-key.ts";
import { hasCode } from "../platform/files.ts";
import { BUILT_IN_KEYS } from "../sandbox/callers.ts";
import type { Sandbox, SandboxOptions } from "../sandbox/index.ts";
import type { SandboxSeed } from "../settings/value-types.ts";
import { once } from "../tools/define-tool.ts";

/** How many times, and with what pauses (ms), the port is tried. A second server of a host may use it for a moment. */
const PORT_TRIES = 20;
const PORT_WAIT_MS = 150;

/** The keys that a sandbox accepts in addition to its built-in ones. */
type Keys = NonNullable<SandboxOptions["keys"]>;

type EmbeddedOptions = Pick<SandboxOptions, "allowedHosts"> & {
  readonly port: number;
  readonly keys: Keys;
  readonly seed: SandboxSeed;
};

/**
 * Creates a sandbox in this process. It starts to listen on `port` (0: a free port) when its address is first needed,
 * and does not keep the process alive.
 */
export function embeddedSandbox({ seed: choice, ...options }: EmbeddedOptions) {
  let starting: Promise<Sandbox> | undefined;
  const seed = once(async () =>
    choice === "none" ? undefined : (await import("../sandbox/seed.ts")).readSeed(choice),
  );
  return {
    /** Returns the targetings with which the sandbox starts. Rejects if the seed cannot be read. */
    seeded: async (): Promise<readonly Named[]> =>
      (await seed())?.targetings.flatMap(({ _id, name }) => (_id === undefined ? [] : [{ _id, name }])) ?? [],
    /** Starts the sandbox once. Returns its address. Rejects if the port stays in use or the seed is unreadable. */
    async url(): Promise<string> {
      starting ??= seed().then((planted) => start({ ...options, seed: planted }));
      try {
        return (await starting).url;
      } catch (thrown) {
        starting = undefined;
        throw unusableSeed(choice, thrown);
      }
    },
    async close(): Promise<void> {
      const sandbox = await starting;
      await sandbox?.close();
    },
  };
}

/** Returns an error that names the seed file. If there is no seed file, or the port is in use, returns the cause. */
function unusableSeed(choice: SandboxSeed, cause: unknown): unknown {
  if (typeof choice === "string" || hasCode(cause, "EADDRINUSE")) return cause;
  return new StoppedError(`the seed file ${choice.file} (TARGETING_MCP_SANDBOX_SEED) cannot be used`, { cause });
}

export const pageOf: NonNullable<SandboxOptions["page"]> = async (world, url) =>
  (await import("../web/sandbox-page.ts")).sandboxPage(world, url);

async function start(options: SandboxOptions): Promise<Sandbox> {
  const { startSandbox } = await import("../sandbox/index.ts");
  for (let tries = 1; ; tries += 1) {
    try {
      const sandbox = await startSandbox({ ...options, page: pageOf });
      sandbox.unref();
      return sandbox;
    } catch (thrown) {
      if (!hasCode(thrown, "EADDRINUSE") || tries === PORT_TRIES) throw thrown;
      // A running sandbox does not keep the process alive. This pause does, because a call waits for the start.
      await delay(PORT_WAIT_MS);
    }
  }
}

/** Returns the configured keys, without a management key that every sandbox accepts anyway. */
export function acceptedKeys(managementKey: string, appKey: string): Keys {
  const builtIn: readonly string[] = BUILT_IN_KEYS.management.map(({ key }) => key);
  return {
    managementKeys: builtIn.includes(managementKey) ? [] : [{ key: managementKey }],
    appKeys: [appKey],
  };
}
