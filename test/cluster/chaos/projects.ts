import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startService } from "../cluster.ts";
import { openServiceGate, type SeenWrite } from "../service-gate.ts";

/**
 * Starts a service with many projects behind a gate. Returns settings for processes that have the keys of all projects.
 */
export async function manyProjects(
  count: number,
  onWrite: (write: SeenWrite) => Promise<void> | void = () => undefined,
) {
  const keys = Array.from({ length: count }, (_, n) => ({ key: `key-of-${n}`, project: `project-${n}` }));
  const service = await startService(keys);
  const gate = await openServiceGate(service.url, { onWrite });
  const file = join(await mkdtemp(join(tmpdir(), "targeting-mcp-access-")), "access.json");
  const projects = Object.fromEntries(keys.map(({ key, project }) => [project, { targetingApiKey: key }]));
  const callers = keys.map(({ key, project }) => ({ name: project, token: `token-of-the-${project}`, project, key }));
  const tokens = callers.map(({ name, token, project }) => ({ name, token, project }));
  await writeFile(file, JSON.stringify({ projects, tokens }), { mode: 0o600 });
  return {
    service,
    gate,
    callers,
    settings: {
      TARGETING_MCP_MODE: "live",
      TARGETING_API_URL: gate.url,
      TARGETING_MCP_ACCESS_FILE: file,
      TARGETING_MCP_CONFIRM: "ask",
      TARGETING_MCP_WAIT_MS: "2000",
      TARGETING_MCP_REQUEST_TIMEOUT_MS: "5000",
    },
    async close() {
      gate.close();
      await service.close();
    },
  };
}

/** Returns the caller whose project has this key, by the name that the store uses. */
export function callerOf(key: string): string {
  return `token:${key.replace("key-of-", "project-")}`;
}
