import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, textOf } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { startHttp } from "../support/http-server.ts";
import { browserOfTest, personAt } from "../support/page-person.ts";
import { COMMAND, cleanEnvironment, runCommand, startCommand } from "../support/server-process.ts";
import { startService } from "../support/service.ts";
import { startSession } from "../support/writing.ts";

// A power failure or a bad disk may damage the files of a run. The server must never read such a run as if it had done
// nothing.

/** Damages the files of a run. `file` returns the path of a file by its name. */
type Damage = (file: (name: string) => string) => void;

const cut = (name: string, bytes: (size: number) => number): Damage => {
  return (file) => truncateSync(file(name), bytes(readFileSync(file(name)).length));
};
const zeroed = (name: string): Damage => {
  return (file) => writeFileSync(file(name), Buffer.alloc(readFileSync(file(name)).length));
};
const missing = (name: string): Damage => {
  return (file) => rmSync(file(name));
};
const all =
  (...damages: readonly Damage[]): Damage =>
  (file) => {
    for (const damage of damages) damage(file);
  };

const pipe = (name: string): Damage => all(missing(name), (file) => execFileSync("mkfifo", [file(name)]));
const folder = (name: string): Damage => all(missing(name), (file) => mkdirSync(file(name)));
const device = (name: string): Damage => all(missing(name), (file) => symlinkSync("/dev/zero", file(name)));

const DAMAGES: Readonly<Record<string, Damage>> = {
  "an empty journal": cut("journal.ndjson", () => 0),
  "a journal of zeros": zeroed("journal.ndjson"),
  "no journal": missing("journal.ndjson"),
  "a journal cut inside its first line": cut("journal.ndjson", () => 20),
  "a journal cut in the middle": cut("journal.ndjson", (size) => Math.floor(size / 2)),
  "a journal without its last line": (file) => {
    const lines = readFileSync(file("journal.ndjson"), "utf8").trimEnd().split("\n");
    writeFileSync(file("journal.ndjson"), `${lines.slice(0, -1).join("\n")}\n`);
  },
  "a journal with zeros in the middle": (file) => {
    const bytes = readFileSync(file("journal.ndjson"));
    writeFileSync(file("journal.ndjson"), bytes.fill(0, 40, bytes.length - 20));
  },
  "no header": missing("run.json"),
  "a header of zeros": zeroed("run.json"),
  "an empty header": cut("run.json", () => 0),
  "a header of another run": (file) => {
    const header = readFileSync(file("run.json"), "utf8");
    writeFileSync(file("run.json"), header.replace(/"runId":"\w+"/, '"runId":"01ARZ3NDEKTSV4RRFFQ69G5FAV"'));
  },
  "a pipe as its journal": pipe("journal.ndjson"),
  "a folder as its journal": folder("journal.ndjson"),
  "a device as its journal": device("journal.ndjson"),
  "a pipe as its header": pipe("run.json"),
  "a folder as its header": folder("run.json"),
  "a device as its header": device("run.json"),
  "neither header nor summary": all(missing("run.json"), missing("record.2.json")),
  "a header of zeros and no summary": all(zeroed("run.json"), missing("record.2.json")),
  "a journal of zeros and no summary": all(zeroed("journal.ndjson"), missing("record.2.json")),
};

/** Damage to the stored summary, which the server can calculate again from the journal. */
const HEALED: Readonly<Record<string, Damage>> = {
  "no summary": missing("record.2.json"),
  "a summary of zeros": zeroed("record.2.json"),
  "a pipe as its summary": pipe("record.2.json"),
  "a folder as its summary": folder("record.2.json"),
  "a device as its summary": device("record.2.json"),
  "half a summary": cut("record.2.json", (size) => Math.floor(size / 2)),
};

const runRows = z.looseObject({
  cursor: z.string().optional(),
  runs: z.array(
    z.looseObject({
      runId: z.string(),
      status: z.string(),
      counts: z.unknown().optional(),
      error: z.looseObject({ errorCode: z.string() }).optional(),
    }),
  ),
});
const failure = z.looseObject({
  status: z.string().optional(),
  counts: z.unknown().optional(),
  error: z.looseObject({ errorCode: z.string(), message: z.string(), remedy: z.string() }),
});

/** Runs a deletion for each kind of damage, ends the server, damages the run's files, and starts a new server. */
async function damaged(damages: Readonly<Record<string, Damage>>) {
  const session = await startSession({ live: true, env: { TARGETING_MCP_CONFIRM: "off" } });
  const { environment } = session;
  const made = await session.write("create_targetings", { items: [{ name: "Spring" }] });
  const targetingId = made.results[0]?._id ?? "";
  const runs: { readonly name: string; readonly runId: string }[] = [];
  for (const [index, name] of Object.keys(damages).entries()) {
    await session.write("bulk_add_options", { targetingId, items: [{ name: `Option ${index}`, contexts: ["c"] }] });
    const { runId = "" } = await session.write("delete_options", { targetingId, names: [`Option ${index}`] });
    runs.push({ name, runId });
  }
  await session.client.close();
  await session.writesSent();
  for (const { name, runId } of runs) {
    damages[name]?.((file) => join(environment.TARGETING_MCP_STATE_DIR ?? "", "runs", runId, file));
  }
  const client = await CLIENTS["2026 client, legacy"]({ args: [COMMAND], env: environment });
  const list = async () => {
    const rows: z.output<typeof runRows>["runs"][number][] = [];
    for (let cursor: string | undefined = ""; cursor !== undefined; ) {
      const { structuredContent } = await client.callTool("get_run", { limit: 1000, cursor });
      const page: z.output<typeof runRows> = runRows.parse(structuredContent);
      rows.push(...page.runs);
      cursor = page.cursor;
    }
    return new Map(rows.map((run) => [run.runId, run]));
  };
  return { ...session, client, runs, list, targetingId };
}

/** One run for each kind of damage. */
const everyDamage = perFile(() => damaged(DAMAGES));

describe("a run whose record is damaged", () => {
  test("is listed, and every tool says that its outcome is unknown; nothing is sent for it", async () => {
    const { client, runs, list, writesSent } = await everyDamage();
    await writesSent();
    const listed = await list();
    for (const { name, runId } of runs) {
      for (const tool of ["get_run", "resume_run", "cancel_run"]) {
        const { structuredContent, isError } = await client.callTool(tool, { runId });
        const told = failure.safeParse(structuredContent).data;
        expect({
          name,
          tool,
          isError,
          status: told?.status,
          counts: told?.counts,
          code: told?.error.errorCode,
        }).toEqual({
          ...{ name, tool, isError: true, status: "unknown", counts: undefined, code: "RUN_DAMAGED" },
        });
        expect(told?.error.message).not.toMatch(/nothing was sent/);
      }
      expect(listed.has(runId), name).toBe(true);
      // The list does not read whole files, so it does not notice damage in the middle of a file.
      if (name.endsWith("zeros in the middle") || name.endsWith("of another run")) continue;
      const { status, counts, error } = listed.get(runId) ?? {};
      expect({ name, status, counts, error }).toEqual({
        ...{ name, status: "unknown", counts: undefined, error: { errorCode: "RUN_DAMAGED" } },
      });
    }
    expect(await writesSent()).toEqual([]);
  });

  test("what it removed is served where that is whole, and the answer names it", async () => {
    const { client, runs } = await damaged({
      whole: cut("journal.ndjson", () => 0),
      cut: all(
        missing("run.json"),
        cut("removed.ndjson", () => 9),
      ),
      zeros: all(zeroed("run.json"), zeroed("removed.ndjson")),
    });
    for (const { name, runId } of runs) {
      const { error } = failure.parse((await client.callTool("get_run", { runId })).structuredContent);
      expect({ name, isNamed: error.remedy.includes(`targeting://runs/${runId}/removed`) }).toEqual({
        ...{ name, isNamed: name === "whole" },
      });
    }
    for (const { name, runId } of runs) {
      const { isError } = await client.callTool("undo_run", { runId });
      expect({ name, isError: isError ?? false }).toEqual({ name, isError: name !== "whole" });
    }
    const removed = await client.readResource(`targeting://runs/${runs[0]?.runId}/removed`);
    expect(JSON.parse(removed)).toMatchObject({ name: "Option 0", contexts: ["c"] });
  });

  test("is listed even if its folder is a file or a pipe", async () => {
    const replaced = (create: (path: string) => void): Damage => {
      return (file) => {
        rmSync(file(""), { recursive: true });
        create(file("").replace(/\/$/, ""));
      };
    };
    const { client, runs, list } = await damaged({
      file: replaced((path) => writeFileSync(path, "")),
      pipe: replaced((path) => execFileSync("mkfifo", [path])),
    });
    const listed = await list();
    for (const { name, runId } of runs) {
      const { structuredContent } = await client.callTool("get_run", { runId });
      expect({ name, code: failure.safeParse(structuredContent).data?.error.errorCode }).toEqual({
        ...{ name, code: "RUN_DAMAGED" },
      });
      expect({ name, error: listed.get(runId)?.error }).toEqual({ name, error: { errorCode: "RUN_DAMAGED" } });
    }
  });

  test("is undone as far as what it removed is missing now", async () => {
    const { client, runs, targetingId } = await everyDamage();
    const undo = async (runId: string) => (await client.callTool("undo_run", { runId })).structuredContent;
    for (const [index, { name, runId }] of runs.entries()) {
      const planned = await undo(runId);
      expect({ name, ...planned }).toMatchObject({ name, status: "planned", undo: { caveat: 1 } });
      const plan = z.looseObject({ runId: z.string() }).parse(planned);
      const { structuredContent: applied } = await client.callTool("apply_plan", { runId: plan.runId });
      expect({ name, ...applied }).toMatchObject({ name, status: "succeeded", counts: { succeeded: 1 } });
      const { structuredContent: back } = await client.callTool("list_options", {
        targetingId,
        search: `Option ${index}`,
      });
      expect({ name, ...back }).toMatchObject({
        name,
        options: expect.arrayContaining([expect.objectContaining({ name: `Option ${index}`, contextCount: 1 })]),
      });
      // The option has been restored, so nothing is left to undo.
      expect(await undo(runId)).not.toHaveProperty("runId");
    }
  });

  test("brings a targeting and Context IDs back, and nothing in another project", async () => {
    const session = await startSession({ live: true, env: { TARGETING_MCP_CONFIRM: "off" } });
    const { environment } = session;
    const items = [
      { name: "Gone", options: [{ name: "Gloves", contexts: ["g"] }] },
      { name: "Whole", options: [{ name: "Hats" }] },
      { name: "Stays", options: [{ name: "Scarves", contexts: ["a", "b"] }] },
    ];
    await session.write("create_targetings", { items });
    const gone = await session.write("delete_targeting", { names: ["Gone"] });
    const whole = await session.write("delete_targeting", { names: ["Whole"] });
    const taken = await session.write("update_contexts", {
      targetingName: "Stays",
      items: [{ name: "Scarves", remove: ["b"] }],
    });
    expect([gone.status, taken.status], JSON.stringify([gone, taken])).toEqual(["succeeded", "succeeded"]);
    await session.client.close();
    for (const { runId = "" } of [gone, taken]) {
      writeFileSync(join(environment.TARGETING_MCP_STATE_DIR ?? "", "runs", runId, "journal.ndjson"), "");
    }
    const start = (env: Readonly<Record<string, string>> = {}) =>
      CLIENTS["2026 client, legacy"]({ args: [COMMAND], env: { ...environment, ...env } });
    const other = await start({ TARGETING_MCP_PROJECT: "another" });
    for (const { runId = "" } of [gone, taken, whole]) {
      const { structuredContent, isError } = await other.callTool("undo_run", { runId });
      expect(isError).toBe(true);
      expect(JSON.stringify(structuredContent)).toContain("another project");
    }
    const client = await start();
    for (const { runId = "" } of [gone, taken]) {
      const plan = z.looseObject({ runId: z.string() });
      const planned = plan.parse((await client.callTool("undo_run", { runId })).structuredContent);
      const { structuredContent } = await client.callTool("apply_plan", { runId: planned.runId });
      expect(structuredContent).toMatchObject({ status: "succeeded" });
    }
    for (const [targetingName, contextCount] of [
      ["Gone", 1],
      ["Stays", 2],
    ] as const) {
      const { structuredContent } = await client.callTool("list_options", { targetingName });
      expect(structuredContent).toMatchObject({ options: [{ contextCount }] });
    }
  });

  test("is shown to people, without buttons", async () => {
    const { environment, runs } = await damaged({
      "a header": zeroed("run.json"),
      "a journal": zeroed("journal.ndjson"),
    });
    const browser = browserOfTest();
    startCommand(["page"], { ...environment, ...browser.env });
    const person = await personAt(await browser.address());
    for (const { runId } of runs) {
      await expect.poll(() => person.runs().find((run) => run.runId === runId)).toBeDefined();
      expect(person.runs().find((run) => run.runId === runId)).toMatchObject({
        ...{ status: "unknown", actions: [], standsStill: expect.stringContaining("is damaged") },
      });
      const pressed = await person.press(runId, "undo");
      expect(pressed.status).toBe(409);
      expect(await pressed.text()).toContain("is damaged");
    }
  });

  test("is not resumed by the same call, and what it reported is in no hint", async () => {
    const { client, runs } = await damaged({ "a journal": zeroed("journal.ndjson") });
    const { structuredContent } = await client.callTool("create_targetings", { items: [{ name: "Summer" }] });
    expect(structuredContent).toMatchObject({ status: "succeeded" });
    expect(JSON.stringify(structuredContent)).not.toContain(runs[0]?.runId);
  });
});

test("a run whose summary alone is damaged is as its journal says", async () => {
  const { client, runs, list } = await damaged(HEALED);
  const listed = await list();
  for (const { name, runId } of runs) {
    const { structuredContent } = await client.callTool("get_run", { runId });
    const counts = expect.objectContaining({ succeeded: 1, pending: 0 });
    expect({ name, ...structuredContent }).toMatchObject({ name, status: "succeeded", counts });
    expect({ name, ...listed.get(runId) }).toMatchObject({ name, status: "succeeded", counts });
  }
});

test("an empty key for seals is made again, and the server over HTTP starts", async () => {
  const environment = cleanEnvironment();
  const file = join(environment.TARGETING_MCP_STATE_DIR ?? "", "seal.key");
  writeFileSync(file, "");
  const server = await startHttp(environment);
  expect(server.url).toMatch(/^http:/);
  expect((await fetch(new URL("/healthz", server.url))).status).toBe(200);
  expect(Buffer.from(readFileSync(file, "utf8"), "base64")).toHaveLength(32);
});

test("a key for seals that is a folder is named with its remedy, in answers and at the start over HTTP", async () => {
  const { url, targeting } = await startService();
  const environment = cleanEnvironment({ TARGETING_MCP_SANDBOX_URL: url, TARGETING_MCP_CONFIRM: "ask" });
  const file = join(environment.TARGETING_MCP_STATE_DIR ?? "", "seal.key");
  mkdirSync(file);
  const client = await CLIENTS["2025 client"]({ args: [COMMAND], env: environment });
  const args = { targetingId: await targeting("Shoes") };
  const refused = textOf(await client.callTool("delete_targeting", args));
  expect(refused).toContain(`cannot be stored in ${file}: this is a folder`);
  expect(refused).toContain("or remove it. A new key is then created");
  expect(await runCommand(["http", "--port", "0"], environment)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`cannot be stored in ${file}: this is a folder. Replace it by a file`),
  });
  // After the fix, the server needs no restart.
  rmdirSync(file);
  expect(textOf(await client.callTool("delete_targeting", args))).toContain("Approval required");
});
