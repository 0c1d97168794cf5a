import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { accessNow, rightsNow, tokenRights } from "../../src/http/access-now.ts";
import { authenticator } from "../../src/http/auth.ts";
import type { CallerTexts } from "../../src/runs/backend.ts";
import { readAccess } from "../../src/settings/access-file.ts";
import { readSettings } from "../../src/settings/settings.ts";

const NAME = "oauth:https://issuer.example ann";
const HOUR = 3_600_000;

function settingsOf(more: Readonly<Record<string, string>> = {}) {
  const environment = {
    TARGETING_MCP_OAUTH_ISSUER: "https://issuer.example",
    TARGETING_MCP_MODE: "sandbox",
    ...more,
  };
  const { platform } = process;
  return readSettings({ environment, flags: new Map(), home: "/", platform, overHttp: true });
}

/** Processes that share their knowledge of callers' rights. The test sets the time. */
function sharing() {
  const kept = new Map<string, string>();
  let [now, isAway] = [0, false];
  const texts: CallerTexts = {
    keep: async (caller, text) => {
      if (isAway) throw new Error("away");
      kept.set(caller, text);
    },
    read: async (caller) => kept.get(caller),
  };
  const problems: unknown[] = [];
  const member = () => {
    const tokens = tokenRights(texts, { now: () => now, problem: (error) => problems.push(error) });
    const access = { projects: new Map(), tokens: [] };
    const rights = rightsNow({
      ...{ settings: settingsOf(), access: () => access, knowsTokens: true, tokens },
    });
    const note = (writes: boolean, { client = "", owner = NAME, lastsMs = HOUR } = {}) =>
      tokens.note({ name: NAME, client, owner, writes, until: now + lastsMs });
    return { note, rights: () => rights(NAME) };
  };
  return {
    member,
    problems,
    pass: (ms: number) => {
      now += ms;
    },
    away: (is: boolean) => {
      isAway = is;
    },
  };
}

const WRITES = { readOnly: false, folders: [] };
const READS = { readOnly: true, folders: [] };

test("a caller of an issuer may do what their last token says, in every process", async () => {
  const { member, pass } = sharing();
  const [one, other] = [member(), member()];
  expect(await one.rights()).toEqual(WRITES);
  await one.note(true);
  expect(await other.rights()).toEqual(WRITES);
  pass(HOUR / 2);
  await other.note(false);
  expect(await one.rights()).toEqual(READS);
  pass(3 * HOUR);
  expect(await member().rights()).toEqual(READS);
  await one.note(true);
  expect(await other.rights()).toEqual(WRITES);
});

test("of several clients one that may write is enough, until its token has expired", async () => {
  const { member, pass } = sharing();
  const { note, rights } = member();
  await note(true, { client: "agent" });
  await note(false, { client: "dashboard", lastsMs: 3 * HOUR });
  expect(await rights()).toEqual(WRITES);
  pass(HOUR);
  expect(await rights()).toEqual(READS);
});

test("a caller whose token is for another project now may do nothing in the one of the run", async () => {
  const { member } = sharing();
  const { note, rights } = member();
  await note(true, { owner: `keys:0123 ${NAME}` });
  expect(await rights()).toEqual({ refused: expect.stringContaining("another project") });
});

test("what cannot be stored counts in this process, and is stored with the next call", async () => {
  const { member, away, problems, pass } = sharing();
  const [one, other] = [member(), member()];
  await one.note(true);
  away(true);
  await one.note(false);
  expect(problems).toHaveLength(1);
  expect([await one.rights(), await other.rights()]).toEqual([READS, WRITES]);
  away(false);
  pass(2000);
  await one.note(false);
  expect(await other.rights()).toEqual(READS);
});

test("while the access file cannot be read nobody is let in, in whichever way, and no run goes on", async () => {
  const file = join(mkdtempSync(join(tmpdir(), "targeting-mcp-")), "access.json");
  const token = "a-token-of-the-agent";
  const content = JSON.stringify({ tokens: [{ name: "agent", token }] });
  writeFileSync(file, content);
  const problems: unknown[] = [];
  const accessOfNow = accessNow(file, readAccess(file), (error) => problems.push(error));
  const claims = { name: NAME, client: "", scopes: ["targeting:write"], project: undefined, until: HOUR } as const;
  const authenticate = authenticator({
    ...{ access: accessOfNow(), accessOfNow, addresses: [], ownKeys: true },
    jwt: { verify: async () => claims },
  });
  const settings = settingsOf({ TARGETING_MCP_OWN_KEYS: "on", TARGETING_API_URL: "http://127.0.0.1:9" });
  const tokens = { of: async () => undefined };
  const rights = rightsNow({ settings, access: accessOfNow, tokens });
  const statuses = async () =>
    Promise.all(
      [token, "a-token-of-the-issuer"].map(async (bearer) => {
        const headers = { authorization: `Bearer ${bearer}` };
        const caller = await authenticate(new Request("http://127.0.0.1/mcp", { headers }));
        return caller instanceof Response ? caller.status : caller.name;
      }),
    );
  const refusals = async () =>
    Promise.all(["token:agent", NAME, "key:1", "local"].map(async (name) => "refused" in (await rights(name))));
  expect(await statuses()).toEqual(["token:agent", NAME]);
  expect(await refusals()).toEqual([false, false, false, false]);
  writeFileSync(file, "{");
  expect(await statuses()).toEqual([503, 503]);
  expect(await refusals()).toEqual([true, true, true, true]);
  expect(problems).toHaveLength(1);
  writeFileSync(file, `${content} `);
  expect(await statuses()).toEqual(["token:agent", NAME]);
});
