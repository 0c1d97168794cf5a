import * as z from "zod";
import { startService as startSandbox } from "../support/service.ts";

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
/** Starts a sandbox as the service, with functions that change and read its data without the server under test. */
export async function startService() {
  const sandbox = await startSandbox();
  const read = async () => state.parse(await sandbox.control("GET", "/state"));
  const fault = (one: object) => sandbox.control("POST", "/faults", { faults: [one] });
  return {
    ...sandbox,
    /** The nth write from now on gets no answer. The service applies it half a second later. */
    late: (nth: number) => fault({ kind: "late", delayMs: 500, on: "write", nth }),
    /** Each read from now on takes this many milliseconds. */
    slowReads: (delayMs: number) => fault({ kind: "slow", delayMs, on: "read" }),
    /** Removes all faults, so that requests are answered normally from now on. */
    mend: () => sandbox.control("DELETE", "/faults"),
    /** The IDs of all targetings and options, with their names. */
    async names(): Promise<ReadonlyMap<string, string>> {
      const { projects } = await read();
      return new Map(
        projects.flatMap((each) => [...each.targetings, ...each.options].map(({ _id, name }) => [_id, name])),
      );
    },
    /** Returns everything in the service, one line per object: `Targeting / Group / Option: Context IDs`. */
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
