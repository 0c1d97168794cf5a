import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Ntfs } from "../support/ntfs.ts";
import { startRun, wasStarted } from "../support/records.ts";

// Stores data on a file system that behaves like NTFS: a file that a program has open cannot be moved, replaced or
// removed. Virus scanners and hosts open files for a moment, so all code must wait until that moment is over.

const system = vi.hoisted(() => {
  const real = process.platform;
  // The modules below read the platform once, when they are loaded.
  Object.defineProperty(process, "platform", { value: "win32" });
  const made: { ntfs?: Ntfs } = {};
  return { real, made };
});
vi.mock("node:fs/promises", async (original) => {
  const { asOnNtfs } = await import("../support/ntfs.ts");
  const real = await original<typeof import("node:fs/promises")>();
  const { functions, ntfs } = asOnNtfs(real);
  system.made.ntfs = ntfs;
  return { ...real, ...functions };
});

const { exchange } = await import("../../src/setup/config-file.ts");
const { saveFile } = await import("../../src/files/save-file.ts");
const { targetingMemory } = await import("../../src/runs/files/backend.ts");
const { fileRunStore } = await import("../../src/runs/files/run-store.ts");
const { ulidSource } = await import("../../src/spec/names-and-contexts.ts");
const { tryLease } = await import("../../src/runs/files/lease.ts");
const { systemClock } = await import("../../src/platform/clock.ts");
const { dataFile, readDataFile } = await import("../../src/sandbox/state-dump.ts");
Object.defineProperty(process, "platform", { value: system.real });

/**
 * How long another program has a file open. This is longer than the first tries take, and shorter than all tries
 * together.
 */
const A_MOMENT_MS = 60;

function ntfs(): Ntfs {
  if (system.made.ntfs === undefined) throw new Error("the file system is not in place");
  return system.made.ntfs;
}

/** Makes another program open a file for a moment. */
function holdForAMoment(path: string): void {
  const release = ntfs().hold(path);
  setTimeout(release, A_MOMENT_MS);
}

// Node itself uses the platform to find the folder for temporary files, which must be the real one.
const TEMPORARY = system.real === "win32" ? tmpdir() : (process.env.TMPDIR ?? "/tmp");
const folder = (): string => mkdtempSync(join(TEMPORARY, "targeting-mcp-ntfs-"));

afterEach(async () => {
  await expect.poll(() => ntfs().open()).toEqual([]);
});

describe("a file that another program has open for a moment", () => {
  test("the configuration of a host is exchanged, and nothing stays beside it but the copy", async () => {
    const file = join(folder(), "mcp.json");
    writeFileSync(file, "{}");
    holdForAMoment(file);
    const done = await exchange(file, { before: Buffer.from("{}"), after: '{"a":1}', isPrivate: false });
    expect(done).toMatchObject({ done: true });
    expect(readFileSync(file, "utf8")).toBe('{"a":1}');
    expect(readdirSync(join(file, ".."))).toHaveLength(2);
  });

  test("one that stays open is not exchanged: the file is as it was, and nothing stays beside it", async () => {
    const file = join(folder(), "mcp.json");
    writeFileSync(file, "{}");
    const release = ntfs().hold(file);
    const change = { before: Buffer.from("{}"), after: '{"a":1}', isPrivate: false };
    await expect(exchange(file, change)).rejects.toMatchObject({ code: "EPERM" });
    release();
    expect(readFileSync(file, "utf8")).toBe("{}");
    expect(readdirSync(join(file, ".."))).toEqual([basename(file)]);
  });

  test("the data file of the sandbox is written whole", async () => {
    const file = join(folder(), "state.json");
    const state = { version: 1, keys: [], projects: [] } as const;
    const kept = dataFile(file, () => ({ ...state, keys: [], projects: [] }));
    await kept.flush();
    holdForAMoment(file);
    holdForAMoment(`${file}.new`);
    await kept.flush();
    expect(await readDataFile(file)).toEqual(state);
    expect(readdirSync(join(file, ".."))).toEqual([basename(file)]);
  });

  test("rows are saved, though a scanner looks at them at once", async () => {
    const root = await realpath(folder());
    const place = { root, steps: ["rows.csv"], path: join(root, "rows.csv") };
    async function* pieces() {
      yield "name\n";
      const [unfinished = ""] = readdirSync(root);
      holdForAMoment(join(root, unfinished));
      yield "one\n";
    }
    await saveFile(place, pieces());
    expect(readFileSync(place.path, "utf8")).toBe("name\none\n");
    expect(readdirSync(root)).toEqual(["rows.csv"]);
  });

  test("rows are copied where the system has no links, and nothing stays beside them", async () => {
    const root = await realpath(folder());
    const place = { root, steps: ["rows.csv"], path: join(root, "rows.csv") };
    const noLinks = () => Promise.reject(Object.assign(new Error("no links"), { code: "ENOTSUP", syscall: "link" }));
    async function* pieces() {
      yield "one\n";
    }
    await saveFile(place, pieces(), noLinks);
    expect(readFileSync(place.path, "utf8")).toBe("one\n");
    expect(readdirSync(root)).toEqual(["rows.csv"]);
  });

  test("names are remembered", async () => {
    const file = join(folder(), "targetings.json");
    const problems: unknown[] = [];
    const memory = targetingMemory({ file, now: () => 1, onProblem: (problem) => problems.push(problem) });
    await memory.remember([{ _id: "1", name: "One" }]);
    holdForAMoment(file);
    await memory.remember([{ _id: "2", name: "Two" }]);
    expect((await memory.recent()).map(({ name }) => name).sort()).toEqual(["One", "Two"]);
    expect(problems).toEqual([]);
    expect(readdirSync(join(file, ".."))).toEqual([basename(file)]);
  });

  test("a lease is given back, and the next one has it", async () => {
    const place = folder();
    for (let round = 0; round < 5; round += 1) {
      const lease = await tryLease(place, "write", systemClock);
      expect(lease).toBeDefined();
      for (const file of readdirSync(place)) holdForAMoment(join(place, file));
      await lease?.release();
    }
    await delay(A_MOMENT_MS);
    expect(readdirSync(place).length).toBeLessThan(4);
  });
});

describe("a scanner that opens each file once it was written", () => {
  beforeEach(() => ntfs().scan(30));
  afterEach(() => ntfs().scan(0));

  test("of many that try for a lease exactly one gets it, again and again", async () => {
    const place = folder();
    for (let round = 0; round < 4; round += 1) {
      const tries = await Promise.all(Array.from({ length: 4 }, () => tryLease(place, "write", systemClock)));
      const held = tries.filter((lease) => lease !== undefined);
      expect(held).toHaveLength(1);
      await held[0]?.release();
    }
    expect(ntfs().refused()).toBeGreaterThan(0);
  });

  test("a run is kept, journaled, read back and at rest, and none of its files stays open", async () => {
    const place = folder();
    const store = fileRunStore(place, systemClock);
    const runId = ulidSource(Date.now, Math.random)();
    const call = { tool: "delete_targeting", input: { ids: [] } } as const;
    const about = {
      kind: "changes",
      project: "project",
      caller: "local",
      environment: "sandbox",
      fingerprint: "one",
    } as const;
    await store.create({ runId, call, createdAt: Date.now(), ...about });
    const lease = await store.lease(runId);
    if (lease === undefined) throw new Error("the lease is not to be had");
    expect(await startRun(store, runId)).toBe(true);
    const journal = await store.journal(runId, lease);
    await journal.flush();
    await journal.close();
    await lease.release();
    expect(await wasStarted(store, runId)).toBe(true);
    ntfs().scan(0);
    await expect.poll(() => ntfs().open()).toEqual([]);
  });
});

test("the emulated system refuses what NTFS refuses", async () => {
  const { open, rename, rm, unlink } = await import("node:fs/promises");
  const file = join(folder(), "file");
  const handle = await open(file, "w");
  const before = ntfs().refused();
  await expect(rename(file, `${file}.2`)).rejects.toMatchObject({ code: "EPERM" });
  await expect(unlink(file)).rejects.toMatchObject({ code: "EBUSY" });
  await expect(rm(join(file, ".."), { recursive: true })).rejects.toMatchObject({ code: "EBUSY" });
  await handle.close();
  await rename(file, `${file}.2`);
  await unlink(`${file}.2`);
  expect(ntfs().refused() - before).toBe(3);
});
