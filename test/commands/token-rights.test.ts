import { expect, test } from "vitest";
import { rightsNow, tokenRights } from "../../src/http/access-now.ts";
import type { CallerTexts } from "../../src/runs/backend.ts";
import { readSettings } from "../../src/settings/settings.ts";

const NAME = "oauth:https://issuer.example ann";
const HOUR = 3_600_000;

/** Processes that share what they know of callers, at a time that the test says. */
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
  const environment = {
    TARGETING_MCP_OAUTH_ISSUER: "https://issuer.example",
    TARGETING_MCP_MODE: "sandbox",
  };
  const input = {
    ...{ environment, flags: new Map<string, string>() },
    home: "/",
    platform: process.platform,
  } as const;
  const problems: unknown[] = [];
  const member = () => {
    const tokens = tokenRights(texts, { now: () => now, problem: (error) => problems.push(error) });
    const access = { projects: new Map(), tokens: [] };
    const rights = rightsNow({
      ...{ settings: readSettings({ ...input, overHttp: true }), access: () => access, knowsTokens: true, tokens },
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
