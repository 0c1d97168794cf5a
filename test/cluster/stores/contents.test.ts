import { expect, test } from "vitest";
import { startService } from "../../support/service.ts";
import { call, startReplica, withPostgres } from "../cluster.ts";

const cluster = withPostgres();

const AN_HOUR_MS = 3_600_000;
const OPTIONS = 40;

test("Context IDs that one replica read are not read again by another one, until they change", async () => {
  let agoMs = AN_HOUR_MS;
  const service = await startService({ now: () => Date.now() - agoMs });
  const settings = { ...service.live, TARGETING_MCP_STORE: await cluster.postgres.database() };
  const [one, other] = [await startReplica(settings), await startReplica(settings)];
  const made = await call(one.url, "create_targetings", { items: [{ name: "Spring" }] });
  expect(made.isError).not.toBe(true);
  const items = Array.from({ length: OPTIONS }, (_, n) => ({ name: `Option ${n}`, contexts: ["all", `only-${n}`] }));
  await call(one.url, "bulk_add_options", { targetingName: "Spring", items });
  // Options that were changed within the last minute are always read from the service.
  agoMs = 0;
  const holders = async (url: string, contextId: string): Promise<number> => {
    const told = await call(url, "list_options", { targetingName: "Spring", contextId });
    expect(told.structuredContent).toMatchObject({ complete: true });
    const { options } = told.structuredContent ?? {};
    return Array.isArray(options) ? options.length : Number.NaN;
  };
  expect(await holders(one.url, "only-7")).toBe(1);
  expect(await service.count("getOption")).toBe(OPTIONS);
  expect(await holders(other.url, "all")).toBe(OPTIONS);
  expect(await service.count("getOption")).toBe(OPTIONS);
}, 60_000);
