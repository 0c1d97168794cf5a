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
const added = z.object({
  results: z.array(z.object({ success: z.literal(true), data: z.object({ _id: z.string() }) })),
});

/** Returns the settings with which a server uses this address as the live service. */
const liveAt = (url: string) => ({
  ...{ TARGETING_API_URL: url, TARGETING_API_KEY: "sandbox-key" },
  ...{ EVENT_API_URL: url, EVENT_APP_KEY: "sandbox-app-key" },
  TARGETING_MCP_MODE: "live",
});

/** Starts a sandbox with its control plane. Tests can use it as the live service. Ends with the test. */
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
    live: liveAt(sandbox.url),
    /** Returns the events that the sandbox has stored. */
    events: sandbox.events,
    control,
    /** Creates a targeting. Returns its ID. */
    async targeting(name: string): Promise<string> {
      const { targetings } = seeded.parse(await control("POST", "/seed", { targetings: [{ name }] }));
      return targetings[0] ?? "";
    },
    /** Creates options of a targeting through the API. Returns their IDs. */
    async options(targeting: string, items: readonly object[]): Promise<readonly string[]> {
      const answer = await fetch(`${sandbox.url}/context-targeting/category/bulk/create`, {
        method: "POST",
        headers: { "x-api-key": "sandbox-key", "content-type": "application/json" },
        body: JSON.stringify({ items: items.map((item) => ({ targeting, ...item })) }),
      });
      return added.parse(await answer.json()).results.map(({ data }) => data._id);
    },
    /** Returns how many requests of an operation have arrived. */
    count: async (operation: string) => (await requests()).filter((one) => one.operation === operation).length,
    /**
     * Makes the sandbox hold requests of an operation, starting with the nth, until the returned function is called.
     */
    hold: (on: string, which: { readonly nth?: number; readonly times?: number } = {}) => hold(sandbox.url, on, which),
    /** Makes the sandbox answer requests of an operation later, starting with the nth. */
    slow: (operation: string, delayMs: number, nth = 1) =>
      control("POST", "/faults", { faults: [{ kind: "slow", delayMs, on: operation, nth }] }),
  };
}

/**
 * Returns groups to add. A request may have only 150 groups, but 5,000 options. Tests that need several requests use
 * groups, because they need fewer of them.
 */
export function groupItems(count: number, word = "Group"): readonly { readonly name: string }[] {
  const names = Array.from({ length: count }, (_, number) => `${word} ${number + 1}`);
  return names.map((name) => ({ name, type: "collection", contexts: [name] }));
}

/** Returns options to add, with different names. */
export function optionItems(count: number): readonly { readonly name: string }[] {
  return Array.from({ length: count }, (_, number) => ({ name: `Option ${number + 1}` }));
}
