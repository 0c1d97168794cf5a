import { onTestFinished } from "vitest";
import * as z from "zod";
import { startSandbox } from "../../src/sandbox/index.ts";

const state = z.looseObject({
  projects: z.array(
    z.looseObject({
      targetings: z.array(z.looseObject({ _id: z.string(), name: z.string() })),
      options: z.array(
        z.looseObject({
          _id: z.string(),
          targeting: z.string(),
          name: z.string(),
          type: z.string(),
          parent: z.string().nullish(),
          contexts: z.array(z.string()).default([]),
        }),
      ),
    }),
  ),
});
const made = z.looseObject({
  results: z.array(z.looseObject({ success: z.literal(true), data: z.looseObject({ _id: z.string() }) })),
});

/** The service in memory, and a way to put things into it and to look at them, past the server under test. */
export async function startService() {
  const sandbox = await startSandbox({ lockWaitMs: 0 });
  onTestFinished(() => sandbox.close());
  const post = async (path: string, body: unknown): Promise<unknown> => {
    const headers = { "x-api-key": "sandbox-key", "content-type": "application/json" };
    const answer = await fetch(`${sandbox.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    return answer.json();
  };
  const read = async () => state.parse(await (await fetch(`${sandbox.url}/_sandbox/state`)).json());
  return {
    url: sandbox.url,
    async targeting(name: string): Promise<string> {
      const { results } = made.parse(await post("/context-targeting/bulk/create", { items: [{ name }] }));
      return results.map(({ data }) => data._id).join();
    },
    async options(targeting: string, items: readonly object[]): Promise<readonly string[]> {
      const body = { items: items.map((item) => ({ targeting, ...item })) };
      const { results } = made.parse(await post("/context-targeting/category/bulk/create", body));
      return results.map(({ data }) => data._id);
    },
    /** Lets the nth write from now on get no answer, and be applied half a second later. */
    late: (nth: number) => post("/_sandbox/faults", { faults: [{ kind: "late", delayMs: 500, on: "write", nth }] }),
    /** Lets the nth write from now on take so many milliseconds. */
    slow: (nth: number, delayMs: number) =>
      post("/_sandbox/faults", { faults: [{ kind: "slow", delayMs, on: "write", nth }] }),
    /** Lets each read from now on take so many milliseconds. */
    slowReads: (delayMs: number) => post("/_sandbox/faults", { faults: [{ kind: "slow", delayMs, on: "read" }] }),
    /** Lets requests be carried out as they should, from now on. */
    mend: async () => void (await fetch(`${sandbox.url}/_sandbox/faults`, { method: "DELETE" })),
    /** The IDs of all targetings and options, with their names. */
    async names(): Promise<ReadonlyMap<string, string>> {
      const { projects } = await read();
      return new Map(
        projects.flatMap((each) => [...each.targetings, ...each.options].map(({ _id, name }) => [_id, name])),
      );
    },
    /** What there is, a line for each thing: `Targeting / Group / Option: Context IDs`. */
    async lines(): Promise<readonly string[]> {
      const { projects } = await read();
      return projects
        .flatMap(({ targetings, options }) => {
          const names = new Map([...targetings, ...options].map(({ _id, name }) => [_id, name]));
          return [
            ...targetings.map(({ name }) => name),
            ...options.map(({ targeting, parent, name, type, contexts }) => {
              const path = [targeting, parent ?? []].flat().map((id) => names.get(id) ?? id);
              return `${[...path, name].join(" / ")}${type === "collection" ? " (group)" : ""}: ${shown(contexts)}`;
            }),
          ];
        })
        .sort();
    },
  };
}

export type Service = Awaited<ReturnType<typeof startService>>;

function shown(contexts: readonly string[]): string {
  return contexts.length > 5 ? `${new Set(contexts).size} IDs` : [...contexts].sort().join(" ");
}
