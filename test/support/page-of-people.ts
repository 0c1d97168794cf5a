import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { projects } from "../../src/http/access-now.ts";
import { approverSessions } from "../../src/http/approver-sessions.ts";
import { approversPage } from "../../src/http/approvers-page.ts";
import { createLog, followWork } from "../../src/observe/log.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { fileBackend } from "../../src/runs/files/backend.ts";
import { readSettings } from "../../src/settings/settings.ts";
import { startLoginIssuer } from "./login-issuer.ts";

const CLIENT = "page-client";
/** The token of a person who approves the changes of all projects. */
export const CHIEF = "token-of-chief-0001";
const MINUTE = 60_000;

/** The authorization server of the page (an existing one, or how a new one behaves), and settings of the server. */
interface Given extends Partial<Parameters<typeof startLoginIssuer>[0]> {
  readonly issuer?: Awaited<ReturnType<typeof startLoginIssuer>>;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Creates the page for the approvers of two projects, who log in at an authorization server. The test sets the page's
 * address and the time.
 */
export async function pageOfPeople(address: string, { issuer: known, env, ...more }: Given = {}) {
  const issuer = known ?? (await startLoginIssuer({ clientId: CLIENT, claims: { project: "shop" }, ...more }));
  const input = {
    environment: {
      TARGETING_API_URL: "http://127.0.0.1:9",
      TARGETING_MCP_MODE: "live",
      TARGETING_MCP_OWN_KEYS: "on",
      TARGETING_MCP_STATE_DIR: mkdtempSync(join(tmpdir(), "targeting-mcp-")),
      TARGETING_MCP_OAUTH_ISSUER: issuer.url,
      TARGETING_MCP_OAUTH_CLIENT_ID: CLIENT,
      TARGETING_MCP_OAUTH_PROJECT_CLAIM: "project",
      ...env,
    },
    flags: new Map<string, string>(),
    home: tmpdir(),
    platform: process.platform,
    overHttp: true,
  } as const;
  const settings = readSettings(input);
  const all = projects(input, settings, {
    stopping: new AbortController().signal,
    backend: fileBackend({ ...settings, clock: systemClock }),
    sealKey: async () => new Uint8Array(32),
    work: followWork(),
  });
  onTestFinished(() => all.close());
  const lines: string[] = [];
  const log = createLog({
    ...{ level: "debug", write: (line: string) => lines.push(line), redact: (line: string) => line },
    ...{ now: Date.now, work: undefined },
  });
  let now = Date.now();
  let isUnreadable = false;
  const access = () => ({
    isUnreadable,
    projects: new Map(["shop", "other"].map((name) => [name, { targetingApiKey: `${name}-key` }])),
    tokens: [{ name: "chief", token: CHIEF, approves: true, project: "*", readOnly: false, folders: [] }],
  });
  const page = approversPage({
    ...{ viewers: approverSessions({ settings, access, all }), address, key: new Uint8Array(32) },
    ...{ log, stopping: new AbortController().signal, settings, now: () => now },
  });
  return {
    ...{ issuer, page, lines, of: { settings, access, all } },
    /** Makes the access file unreadable, or readable again. */
    breakAccess(isBroken: boolean): void {
      isUnreadable = isBroken;
    },
    pass(minutes: number): void {
      now += minutes * MINUTE;
    },
  };
}
