import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as z from "zod";
import { runCommand } from "../support/server-process.ts";
import { startService } from "../support/service.ts";

const seeded = z.object({ targetings: z.array(z.string()), options: z.array(z.string()) });

/**
 * Starts a service with a targeting whose names and Context IDs look like numbers or other types to some programs, and
 * creates a state folder.
 */
export async function shop() {
  const service = await startService();
  const seed = async (body: object) => seeded.parse(await service.control("POST", "/seed", body));
  const [targeting = ""] = (await seed({ targetings: [{ name: "Spring" }] })).targetings;
  const [group = "", shoes = "", plain = ""] = (
    await seed({
      options: [
        { targeting, name: "Seasonal", type: "collection", exposeChildren: true, contexts: ["season"] },
        {
          targeting,
          name: "Running Shoes",
          contexts: ["007", "1e3", "no", "null", "a|b", "[x", "2024-01-01", 'quo"te, x'],
        },
        { targeting, name: "0123" },
      ],
    })
  ).options;
  const [easter = ""] = (await seed({ options: [{ targeting, name: "yes", parent: group, contexts: ["c7"] }] }))
    .options;
  const folder = mkdtempSync(join(tmpdir(), "plans-"));
  const settings = { ...service.live, TARGETING_MCP_STATE_DIR: join(folder, "state") };
  const run = (args: readonly string[], environment: Record<string, string> = {}) =>
    runCommand(args, { ...settings, ...environment });
  return {
    ...service,
    settings,
    seed,
    targeting,
    group,
    shoes,
    plain,
    easter,
    folder,
    run,
    at: (name: string) => join(folder, name),
  };
}
