import { appendFile, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { detachJournal, journalLines, openJournal } from "../../../src/runs/files/run-folder.ts";
import { type RunForm, understood } from "../../../src/runs/kind.ts";
import { RunStoreError } from "../../../src/runs/store.ts";
import { type Lease, LeaseLostError, permitWithoutLease } from "../../../src/runs/turn.ts";

const FORM: RunForm<unknown, { readonly n: number }> = {
  name: "numbers",
  tools: [],
  call: z.unknown(),
  entry: z.object({ n: z.number() }),
  line: (entry) => [JSON.stringify(entry)],
};

const HEADER = {
  ...{ runId: "RUN", kind: FORM.name, call: {}, project: "project", caller: "local" },
  ...{ environment: "sandbox" as const, createdAt: 0, fingerprint: "" },
};

const clock = { now: () => 1000, monotonic: () => 1000, sleep: async () => {} };

async function newFile(): Promise<string> {
  return join(await mkdtemp(join(tmpdir(), "targeting-mcp-")), "journal.ndjson");
}

function lease(lost: AbortSignal, check: () => Promise<void> = async () => {}): Lease {
  const held = { isTakenOver: false, settled: async () => {}, stillHeld: async () => true, release: async () => {} };
  return { ...permitWithoutLease(clock), ...held, lost, check };
}

async function opened(file: string, held: Lease = lease(new AbortController().signal)) {
  const journal = await openJournal(file, held, async () => false);
  onTestFinished(() => journal.close().catch(() => undefined));
  return journal;
}

async function entriesOf(file: string): Promise<readonly number[]> {
  const found: number[] = [];
  const run = understood(FORM, {
    header: HEADER,
    record: { version: 1, status: "running" },
    proposed: none(),
    entries: journalLines(file),
  });
  for await (const { n } of run?.entries ?? []) found.push(n);
  return found;
}

async function* none(): AsyncGenerator<never> {}

test("entries are on the disk in their order once a flush has resolved, and not before it was asked for", async () => {
  const file = await newFile();
  const journal = await opened(file);
  for (const n of [1, 2, 3]) journal.append(FORM.line({ n }));
  expect(await readFile(file, "utf8")).toBe("");
  await journal.flush();
  expect(await entriesOf(file)).toEqual([1, 2, 3]);
});

test("many entries at once keep their order", async () => {
  const file = await newFile();
  const journal = await opened(file);
  const numbers = Array.from({ length: 3000 }, (_, n) => n);
  for (const n of numbers) journal.append(FORM.line({ n }));
  await journal.flush();
  expect(await entriesOf(file)).toEqual(numbers);
});

describe("a last line that a crash cut off", () => {
  test("never took effect: it is not read, and cut away before anything is appended", async () => {
    const file = await newFile();
    await writeFile(file, '{"n":1}\n{"n":2}\n{"n":');
    expect(await entriesOf(file)).toEqual([1, 2]);
    const journal = await opened(file);
    journal.append(FORM.line({ n: 3 }));
    await journal.flush();
    expect(await entriesOf(file)).toEqual([1, 2, 3]);
  });

  test("of any length, and as the only line", async () => {
    const file = await newFile();
    await writeFile(file, `{"n":1}\n{"n":"${"x".repeat(200_000)}`);
    await opened(file);
    expect(await readFile(file, "utf8")).toBe('{"n":1}\n');
    await writeFile(file, '{"n"');
    await opened(file);
    expect(await readFile(file, "utf8")).toBe("");
  });
});

test("a damaged line before the last one is an error that names the run", async () => {
  const file = await newFile();
  await writeFile(file, '{"n":1}\n{"n":"none"}\n{"n":3}\n');
  await expect(entriesOf(file)).rejects.toThrow(RunStoreError);
  await expect(entriesOf(file)).rejects.toThrow("run RUN");
});

test("a run without a journal has no entries", async () => {
  expect(await entriesOf(await newFile())).toEqual([]);
});

describe("a lost lease", () => {
  test("that is known lets nothing be written any more", async () => {
    const file = await newFile();
    const lost = new AbortController();
    const journal = await opened(file, lease(lost.signal));
    lost.abort(new LeaseLostError("taken over"));
    journal.append(FORM.line({ n: 1 }));
    await expect(journal.flush()).rejects.toThrow(LeaseLostError);
    expect(await entriesOf(file)).toEqual([]);
  });

  test("that is noticed after the write makes the flush fail", async () => {
    const check = async (): Promise<never> => {
      throw new LeaseLostError("taken over");
    };
    const journal = await opened(await newFile(), lease(new AbortController().signal, check));
    journal.append(FORM.line({ n: 1 }));
    await expect(journal.flush()).rejects.toThrow(LeaseLostError);
  });

  test("loses what is appended after the journal was parted from those that had it open", async () => {
    const file = await newFile();
    const journal = await opened(file);
    journal.append(FORM.line({ n: 1 }));
    await journal.flush();
    await detachJournal(file);
    journal.append(FORM.line({ n: 2 }));
    await journal.flush();
    expect(await entriesOf(file)).toEqual([1]);
    // Only the entry about a request that was sent too late is still written, to the journal as it is now.
    await journal.appendLate(FORM.line({ n: 3 }));
    expect(await entriesOf(file)).toEqual([1, 3]);
  });
});

test("a journal that does not exist yet needs no parting, and one that is parted loses its cut-off line", async () => {
  const file = await newFile();
  await detachJournal(file);
  await writeFile(file, '{"n":1}\n');
  await appendFile(file, '{"n":2');
  await detachJournal(file);
  expect(await readFile(file, "utf8")).toBe('{"n":1}\n');
});
