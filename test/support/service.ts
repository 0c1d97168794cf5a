import * as z from "zod";
import { type SandboxOptions, startSandbox } from "../../src/sandbox/index.ts";
import { atEnd } from "./ends.ts";
import { hold } from "./hold.ts";

const journal = z.object({
  requests: z.array(
    z.looseObject({ operation: z.string().nullish(), headers: z.record(z.string(), z.unknown()).optional() }),
  ),
});

const seeded = z.object({ targetings: z.array(z.string()) });

/** Starts a sandbox that stands for the live service, with its control plane; it ends with the test. */
export async function startService(options: SandboxOptions = {}) {
  const sandbox = await startSandbox({ lockWaitMs: 0, ...options });
  atEnd(() => sandbox.close());
  const control = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
    return (await fetch(`${sandbox.url}/_sandbox${path}`, init)).json();
  };
  const requests = async () => journal.parse(await control("GET", "/requests")).requests;
  return {
    url: sandbox.url,
    /** Settings with which a server takes the sandbox for the live service. */
    live: {
      TARGETING_API_URL: sandbox.url,
      TARGETING_API_KEY: "sandbox-key",
      EVENT_API_URL: sandbox.url,
      EVENT_APP_KEY: "sandbox-app-key",
      TARGETING_MCP_MODE: "live",
    },
    control,
    /** Makes a targeting; gives its ID. */
    async targeting(name: string): Promise<string> {
      const { targetings } = seeded.parse(await control("POST", "/seed", { targetings: [{ name }] }));
      return targetings[0] ?? "";
    },
    /** How many requests of an operation have come in. */
    count: async (operation: string) => (await requests()).filter((one) => one.operation === operation).length,
    /** Keeps requests of an operation, from the nth on, until the function that it gives is called. */
    hold: (on: string, which: { readonly nth?: number; readonly times?: number } = {}) => hold(sandbox.url, on, which),
    /** Makes requests of an operation slow, from the nth on. */
    slow: (operation: string, delayMs: number, nth = 1) =>
      control("POST", "/faults", { faults: [{ kind: "slow", delayMs, on: operation, nth }] }),
  };
}

/** Options to add, with names of their own. */
export function optionItems(count: number): readonly { readonly name: string }[] {
  return Array.from({ length: count }, (_, number) => ({ name: `Option ${number + 1}` }));
}
