import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { startHttp } from "../support/http-server.ts";
import { OPENING, runCommand, startCommand } from "../support/server-process.ts";

const ON_POSIX = process.platform !== "win32";
const diagnosis = z.looseObject({
  ok: z.boolean(),
  checks: z.array(z.looseObject({ about: z.string(), state: z.string(), found: z.string() })),
});
const logLine = z.looseObject({ level: z.string(), message: z.string(), remedy: z.string().optional() });

async function doctor(environment: Readonly<Record<string, string>>) {
  return diagnosis.parse(JSON.parse((await runCommand(["doctor", "--json"], environment)).text));
}

/** Returns the warnings of a server over stdio at its start. */
async function warnings(environment: Readonly<Record<string, string>>) {
  const command = startCommand([], environment);
  for (const message of OPENING) command.send(message);
  await command.answer("open");
  await command.end();
  return warned(command.stderr());
}

function warned(log: string) {
  const lines = log.split("\n").filter((line) => line.startsWith("{"));
  return lines.map((line) => logLine.parse(JSON.parse(line))).filter(({ level }) => level === "warn");
}

/** Creates a state folder with a seal key, and an access file, with these permissions. */
function files(folderMode: number, sealMode: number, accessMode: number) {
  const root = mkdtempSync(join(tmpdir(), "targeting-mcp-open-"));
  const [seal, access] = [join(root, "seal.key"), join(root, "access.json")];
  writeFileSync(seal, Buffer.alloc(32, 7).toString("base64"));
  writeFileSync(access, JSON.stringify({ tokens: [{ name: "anna", token: "a-long-random-text" }] }));
  chmodSync(seal, sealMode);
  chmodSync(access, accessMode);
  chmodSync(root, folderMode);
  // With `strict`, doctor and the server would also warn that nobody can approve.
  const confirm = { TARGETING_MCP_CONFIRM: "ask" };
  const environment = { TARGETING_MCP_STATE_DIR: root, TARGETING_MCP_ACCESS_FILE: access, ...confirm };
  return { root, seal, access, environment };
}

describe.runIf(ON_POSIX)("files that hold secrets", () => {
  test("open to every user: doctor says what to do, and the start warns", async () => {
    const { root, seal, access, environment } = files(0o755, 0o644, 0o604);
    const { ok, checks } = await doctor(environment);
    expect(ok).toBe(false);
    const open = [
      ["state folder", "note", `${root} is open to every user of this machine (mode 755)`, `chmod 700 ${root}`],
      ["seal key", "problem", `${seal} is open to every user of this machine (mode 644)`, `chmod 600 ${seal}`],
      ["access file", "problem", `${access} is open to every user of this machine (mode 604)`, `chmod 600 ${access}`],
    ] as const;
    for (const [about, state, found, remedy] of open) {
      expect(checks).toContainEqual({ about, state, found: expect.stringContaining(found), remedy });
    }
    const overStdio = await warnings(environment);
    const { stderr } = await startHttp(environment);
    await expect.poll(() => warned(stderr()).length).toBe(open.length);
    for (const lines of [overStdio, warned(stderr())]) {
      for (const [, , found, remedy] of open) {
        expect(lines).toContainEqual(expect.objectContaining({ message: expect.stringContaining(found), remedy }));
      }
    }
  });

  test("open to a group, which may be meant: a note", async () => {
    const { environment } = files(0o770, 0o600, 0o640);
    const { ok, checks } = await doctor(environment);
    expect(ok).toBe(true);
    expect(checks.filter(({ state }) => state === "note").map(({ about, found }) => [about, found])).toEqual([
      ["state folder", expect.stringContaining("is open to its group (mode 770)")],
      ["access file", expect.stringContaining("is open to its group (mode 640)")],
    ]);
  });

  test("their owner's alone: nothing is said", async () => {
    const { environment } = files(0o700, 0o600, 0o600);
    expect((await doctor(environment)).checks.filter(({ found }) => found.includes("open to"))).toEqual([]);
    expect(await warnings(environment)).toEqual([]);
  });
});

describe("keys over plain http", () => {
  const FAR = {
    TARGETING_API_URL: "http://api.invalid",
    TARGETING_API_KEY: "some-management-key",
    EVENT_API_URL: "http://events.invalid/v1",
    EVENT_APP_KEY: "some-event-key",
  };
  const words = (variable: string, address: string) =>
    expect.stringMatching(
      new RegExp(`${variable} is ${address}: the key of the \\w+ API is sent unencrypted over http`),
    );
  const expected = [
    words("TARGETING_API_URL", "http://api.invalid"),
    words("EVENT_API_URL", "http://events.invalid/v1"),
  ];

  test("doctor and the start name the addresses", async () => {
    const { checks } = await doctor(FAR);
    const found = checks.filter(({ about }) => about === "addresses");
    expect(found.map((check) => check.found)).toEqual(expected);
    expect((await warnings(FAR)).map(({ message }) => message)).toEqual(expected);
  });

  test.each([
    ["of this machine", { TARGETING_API_URL: "http://127.0.0.1:9", TARGETING_API_KEY: "some-management-key" }],
    ["with TLS", { TARGETING_API_URL: "https://api.invalid", TARGETING_API_KEY: "some-management-key" }],
    ["that a sandbox stands in for", { ...FAR, TARGETING_MCP_MODE: "sandbox" }],
  ])("addresses %s are no matter", async (_, environment) => {
    expect(await warnings(environment)).toEqual([]);
  });
});
