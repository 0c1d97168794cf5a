import { setTimeout as delay } from "node:timers/promises";
import { StoppedError } from "../api/network-causes.ts";
import { hasCode } from "../platform/files.ts";
import type { Sandbox, SandboxOptions } from "../sandbox/index.ts";
import { BUILT_IN_KEYS } from "../sandbox/keys.ts";
import type { SandboxSeed } from "../settings/value-types.ts";
import { once } from "../tools/define-tool.ts";

/** A sandbox inside this process. It starts when its address is first requested, and never keeps the process alive. */
export interface EmbeddedSandbox {
  /** Rejects if the port stays in use, or its seed cannot be read. */
  readonly url: () => Promise<string>;
  /** Returns the targetings that it has at its start. Rejects if they cannot be read. */
  readonly seeded: () => Promise<readonly Named[]>;
  close(): Promise<void>;
}

/** A host may briefly start a second copy of a server to inspect it; that copy then uses the port. */
const PORT_TRIES = 20;
const PORT_WAIT_MS = 150;

/** Keys that a sandbox accepts besides its own. */
type Keys = NonNullable<SandboxOptions["keys"]>;

/** A targeting by its name. */
export interface Named {
  readonly _id: string;
  readonly name: string;
}

type EmbeddedOptions = Pick<SandboxOptions, "allowedHosts"> & {
  readonly port: number;
  readonly keys: Keys;
  readonly seed: SandboxSeed;
};

/**
 * Prepares a sandbox inside this process. It starts to listen on `port` when its address is first requested. If `port`
 * is 0, it listens on a free port.
 */
export function embeddedSandbox({ seed: choice, ...options }: EmbeddedOptions): EmbeddedSandbox {
  let starting: Promise<Sandbox> | undefined;
  const seed = once(async () =>
    choice === "none" ? undefined : (await import("../sandbox/sample.ts")).readSeed(choice),
  );
  return {
    seeded: async () =>
      (await seed())?.targetings.flatMap(({ _id, name }) => (_id === undefined ? [] : [{ _id, name }])) ?? [],
    async url() {
      starting ??= seed().then((planted) => start({ ...options, seed: planted }));
      try {
        return (await starting).url;
      } catch (thrown) {
        starting = undefined;
        throw unusableSeed(choice, thrown);
      }
    },
    async close() {
      const sandbox = await starting;
      await sandbox?.close();
    },
  };
}

/** Returns the error for an unusable seed file, to be logged: the API reports only that it could not connect. */
function unusableSeed(choice: SandboxSeed, cause: unknown): unknown {
  if (typeof choice === "string" || hasCode(cause, "EADDRINUSE")) return cause;
  return new StoppedError(`TARGETING_MCP_SANDBOX_SEED names ${choice.file}, which cannot be used as a seed`, { cause });
}

/** Loads the code of the page when the page is first opened. */
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
      // This keeps the process alive until the first answer, since nothing else may do so before.
      await delay(PORT_WAIT_MS);
    }
  }
}

/** Returns the configured keys, without those that every sandbox has with scopes of its own. */
export function acceptedKeys(managementKey: string, appKey: string): Keys {
  const builtIn: readonly string[] = BUILT_IN_KEYS.management.map(({ key }) => key);
  return {
    managementKeys: builtIn.includes(managementKey) ? [] : [{ key: managementKey }],
    appKeys: [appKey],
  };
}
