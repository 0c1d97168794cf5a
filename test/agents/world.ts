import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import * as z from "zod";
import { startSandbox } from "../../src/sandbox/index.ts";
import { ulidSource } from "../../src/spec/names-and-contexts.ts";
import { counted, type RecordedOption, type RecordedWorld } from "./recorded.ts";

const state = z.object({
  projects: z.array(
    z.object({
      targetings: z.array(z.object({ _id: z.string(), name: z.string() })),
      options: z.array(
        z.object({
          _id: z.string(),
          targeting: z.string(),
          name: z.string(),
          parent: z.string().optional(),
          contexts: z.array(z.string()),
        }),
      ),
    }),
  ),
});
const arrived = z.object({ events: z.array(z.object({ eventName: z.string().nullable(), verdict: z.string() })) });

/** Starts a sandbox with the data that existed before a request. Ends with the test. */
export async function startWorld({ targetings, unseen, files, events, faults }: RecordedWorld) {
  const sandbox = await startSandbox();
  onTestFinished(() => sandbox.close());
  const control = async (path: string, body?: object): Promise<unknown> => {
    const request = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const response = await fetch(`${sandbox.url}/_sandbox${path}`, request);
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
    return response.json();
  };
  const newId = ulidSource(() => Date.now(), Math.random);
  const ids = new Map<string, string>();
  const named = (name: string): string => {
    const _id = newId();
    ids.set(name, _id);
    return _id;
  };
  const seeds = Object.entries(targetings).map(([name, options]) => {
    const targeting = named(name);
    return { targeting, name, options: options.flatMap((option) => planted(option, targeting, named)) };
  });
  await control("/seed", {
    targetings: seeds.map(({ targeting, name }) => ({ _id: targeting, name })),
    options: seeds.flatMap(({ options }) => options),
    events: events.map((event) => ({ event })),
  });
  if (faults.length > 0) await control("/faults", { faults });
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-agents-"));
  for (const [name, lines] of Object.entries(files)) {
    writeFileSync(join(folder, name), `${lines.flatMap(counted).join("\n")}\n`);
  }
  return {
    url: sandbox.url,
    folder,
    /** The IDs of targetings and options by name. Calls add those that they create. */
    ids,
    seen: seeds.filter(({ name }) => !unseen.includes(name)).map(({ targeting }) => targeting),
    holds: async () => holdings(await control("/state")),
    arrived: async () => {
      const counts: Record<string, number> = {};
      for (const { eventName, verdict } of arrived.parse(await control("/events?limit=1000")).events) {
        const key = `${eventName} ${verdict}`;
        counts[key] = (counts[key] ?? 0) + 1;
      }
      return counts;
    },
  };
}

export type World = Awaited<ReturnType<typeof startWorld>>;

function planted(
  { name, contexts = [], children }: RecordedOption,
  targeting: string,
  named: (name: string) => string,
  parent?: string,
): readonly object[] {
  return counted(name).flatMap((one) => {
    const _id = named(one);
    const type = children === undefined ? "atomic" : "collection";
    const below = (children ?? []).flatMap((child) => planted(child, targeting, named, _id));
    return [{ _id, targeting, name: one, type, contexts: contexts.flatMap(counted), parent }, ...below];
  });
}

/** Returns how many Context IDs each option has, by the name of its targeting and by `group/option`. */
function holdings(dump: unknown): Record<string, Record<string, number>> {
  const holds: Record<string, Record<string, number>> = {};
  for (const { targetings, options } of state.parse(dump).projects) {
    const names = new Map(options.map(({ _id, name }) => [_id, name]));
    for (const { _id, name } of targetings) {
      const own = options.filter(({ targeting }) => targeting === _id);
      holds[name] = Object.fromEntries(
        own.map(({ name: option, parent, contexts }) => [
          parent === undefined ? option : `${names.get(parent)}/${option}`,
          contexts.length,
        ]),
      );
    }
  }
  return holds;
}
