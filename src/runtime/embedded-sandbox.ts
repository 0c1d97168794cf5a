import { setTimeout as delay } from "node:timers/promises";
import { StoppedError } from "../api/network-causes.ts";
import { hasCode } from "../platform/files.ts";
import type { Sandbox, SandboxOptions } from "../sandbox/index.ts";
import { BUILT_IN_KEYS } from "../sandbox/keys.ts";
import type { SandboxSeed } from "../settings/value-types.ts";
import { once } from "../tools/define-tool.ts";

/** A sandbox inside this process: it starts when its address is first asked for, and never keeps the process alive. */
export interface EmbeddedSandbox {
  /** Rejects when the port stays taken, or what it is to hold cannot be read. */
  readonly url: () => Promise<string>;
  /** The targetings that it holds at its start. Rejects where they cannot be read. */
  readonly seeded: () => Promise<readonly Named[]>;
  close(): Promise<void>;
}

/** A host may start a second copy of a server for a moment to look at it; that copy then holds the port. */
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

/** Prepares a sandbox inside this process, which starts to listen on `port` (0 takes a free one) when its address is first asked for. */
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

/** An API tells of a failed connection in words of ours alone; what is wrong with the file stands in the log. */
function unusableSeed(choice: SandboxSeed, cause: unknown): unknown {
  if (typeof choice === "string" || hasCode(cause, "EADDRINUSE")) return cause;
  return new StoppedError(`TARGETING_MCP_SANDBOX_SEED names ${choice.file}, which cannot be used as a seed`, { cause });
}

/** Loads what serves the page once it is first opened. */
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
