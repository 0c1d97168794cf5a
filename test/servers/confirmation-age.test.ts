import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { lossDigest } from "../../src/changes/change-kinds.ts";
import { sealKeys } from "../../src/runtime/store.ts";
import { sealConfirmation } from "../../src/tools/write/confirmation-token.ts";
import { type Answer, CLIENTS, call, type TestClient, textOf } from "../support/clients.ts";
import { startHttp } from "../support/http-server.ts";
import { optionItems, startService } from "../support/service.ts";

const TEN_MINUTES = 600_000;
/** Calls a tool that must refuse. Returns the text of its answer. */
async function refused(client: TestClient, name: string, args: Record<string, unknown>): Promise<string> {
  const { isError, text } = await call(client, name, args);
  expect(isError).toBe(true);
  return text;
}

function callersIn(audit: string): readonly string[] {
  const line = z.looseObject({ caller: z.string() });
  return audit
    .trim()
    .split("\n")
    .map((text) => line.parse(JSON.parse(text)).caller);
}

async function start(more: Readonly<Record<string, string>> = {}, answer?: Answer) {
  const service = await startService();
  const server = await startHttp({ ...service.live, TARGETING_MCP_CONFIRM: "ask", ...more });
  const client = await CLIENTS["2026 client, modern"]({ url: server.url, ...(answer && { answer }) });
  const { results } = await call(client, "create_targetings", { items: [{ name: "Spring" }] });
  return { service, server, client, targetingId: results[0]?._id ?? "" };
}

test("a confirmation that has expired, or is sealed with another key or for somebody else, starts nothing", async () => {
  const sealKey = randomBytes(32).toString("base64");
  const { service, server, client, targetingId } = await start({ TARGETING_MCP_SEAL_KEY: sealKey });
  const { confirmation, runId } = await call(client, "delete_targeting", { ids: [targetingId] });
  expect(confirmation.token).toMatch(/^[\w-]{40}$/);
  const key = await sealKeys(sealKey, () => Promise.reject(new Error("no key is kept")))("confirmation");
  const digest = lossDigest([{ name: "Spring", _id: targetingId, kind: "targeting", count: 0 }]);
  const [caller] = callersIn(await readFile(join(server.stateDir, "audit.ndjson"), "utf8"));
  const sealed = { run: runId, digest, caller: caller ?? "", expiresAt: Date.now() + TEN_MINUTES };
  const act = (token: string) => refused(client, "delete_targeting", { confirmation: token });
  // Tokens that expire too late, as if they had been issued while the machine's clock was 40 days ahead.
  const ahead = sealConfirmation(key, { ...sealed, expiresAt: Date.now() + 40 * 24 * 6 * TEN_MINUTES });
  expect(await act(ahead)).toContain("expired");
  const expired = sealConfirmation(key, { ...sealed, expiresAt: Date.now() - 1 });
  expect(await act(expired)).toContain("has expired; nothing was done");
  expect(await act(sealConfirmation(key, { ...sealed, caller: "token:somebody" }))).toContain("not a token that");
  expect(await act(sealConfirmation(randomBytes(32), sealed))).toContain("not a token that");
  expect(await act(sealConfirmation(key, { ...sealed, run: "01JABCDEFGHJKMNPQRSTVWXYZ0" }))).toContain(
    "is no longer stored",
  );
  const other = `${confirmation.token.slice(0, -1)}${confirmation.token.endsWith("A") ? "B" : "A"}`;
  const asked = await call(client, "delete_targeting", { confirmation: other });
  expect(asked, "made for another effect").toMatchObject({ status: "needs_confirmation" });
  expect(await service.count("deleteTargetings")).toBe(0);
  const done = await call(client, "delete_targeting", { confirmation: confirmation.token });
  expect(done.status).toBe("succeeded");
  // An expired token of a run that was already started only returns the run's report. Nothing is started again.
  expect(await call(client, "delete_targeting", { confirmation: expired })).toMatchObject({ runId: done.runId });
  expect(await service.count("deleteTargetings")).toBe(1);
});

/** Changes the stored creation time of a run, so that the run looks older. */
async function aged(stateDir: string, runId: string, ageMs = TEN_MINUTES): Promise<void> {
  const file = join(stateDir, "runs", runId, "run.json");
  const header = z.looseObject({ createdAt: z.number() }).parse(JSON.parse(await readFile(file, "utf8")));
  await writeFile(file, JSON.stringify({ ...header, createdAt: header.createdAt - ageMs }));
}

/**
 * Deletes 300 sub-options, which takes two requests, and stops the server after the first. The run then looks `ageMs`
 * milliseconds old.
 */
async function interruptedDeletion(ageMs: number) {
  const { service, server, client, targetingId } = await start({ TARGETING_MCP_CONFIRM: "off" });
  const group = { name: "Group", contexts: ["g"], children: optionItems(300) };
  await call(client, "bulk_add_options", { targetingId, items: [group] });
  const release = await service.hold("deleteOptions");
  const names = optionItems(300).map(({ name }) => name);
  const deleting = call(client, "delete_options", { targetingId, names });
  await expect.poll(() => service.count("deleteOptions")).toBe(1);
  await server.stop();
  await release();
  const { status, runId } = await deleting;
  expect(status).toBe("interrupted");
  await server.exited;
  await aged(server.stateDir, runId, ageMs);
  const again = async (more: Readonly<Record<string, string>> = {}, answer?: Answer) => {
    const asking = { TARGETING_MCP_CONFIRM: "ask", TARGETING_MCP_STATE_DIR: server.stateDir };
    const { url } = await startHttp({ ...service.live, ...asking, ...more });
    return CLIENTS["2026 client, modern"]({ url, ...(answer && { answer }) });
  };
  return { service, runId, again };
}

const FINISHED = { status: "succeeded", counts: { items: 300, succeeded: 300 } };

describe("resume_run of a deletion", () => {
  test("goes on while the yes is fresh", async () => {
    const { runId, again } = await interruptedDeletion(TEN_MINUTES / 2);
    const resumed = await call(await again(), "resume_run", { runId });
    expect(resumed).toMatchObject({ ...FINISHED, approval: { decision: "not_needed" } });
  });

  test("asks anew after ten minutes, and takes no other yes for it", async () => {
    const { service, runId, again } = await interruptedDeletion(TEN_MINUTES);
    const strict = await again({ TARGETING_MCP_CONFIRM: "strict" });
    expect(await refused(strict, "resume_run", { runId })).toContain("needs approval");
    const client = await again();
    const asked = await call(client, "resume_run", { runId });
    expect(asked.status).toBe("needs_confirmation");
    expect(asked.confirmation.effect).toContain("150 deletions");
    const { results } = await call(client, "create_targetings", { items: [{ name: "Summer" }] });
    const other = await call(client, "delete_targeting", { ids: [results[0]?._id] });
    for (const confirmation of ["made.up", `${asked.confirmation.token}x`]) {
      expect(await refused(client, "resume_run", { runId, confirmation })).toContain("not a token that");
    }
    const { token } = other.confirmation;
    expect(await refused(client, "resume_run", { runId, confirmation: token })).toContain(
      "does not belong to this run",
    );
    expect(await service.count("deleteOptions")).toBe(1);
    const { token: confirmation } = asked.confirmation;
    const agreed = await call(client, "resume_run", { runId, confirmation });
    expect(agreed).toMatchObject({ ...FINISHED, approval: { decision: "approved", channel: "token" } });
    // The approval is stored with the run, so later calls report it as well.
    expect(await call(client, "get_run", { runId })).toMatchObject({
      ...FINISHED,
      approval: { decision: "approved", channel: "token" },
    });
    expect(await service.count("deleteOptions")).toBe(2);
  });

  test.each([
    ["declined", { action: "decline" } as const],
    ["agreed to", { action: "accept", content: { confirm: true } } as const],
  ])("a person is asked where there is one: %s", async (_what, said) => {
    const { service, runId, again } = await interruptedDeletion(TEN_MINUTES);
    const asked: string[] = [];
    const client = await again({}, (message) => {
      asked.push(message);
      return said;
    });
    const resumed = await client.callTool("resume_run", { runId });
    const { structuredContent } = resumed;
    if (said.action === "accept") {
      expect(structuredContent).toMatchObject({ ...FINISHED, approval: { decision: "approved", channel: "client" } });
      expect(await call(client, "get_run", { runId })).toMatchObject({
        ...FINISHED,
        approval: { decision: "approved", channel: "client" },
      });
    } else {
      expect(structuredContent).toMatchObject({
        status: "cancelled",
        approval: { decision: "declined", channel: "client" },
      });
      expect(textOf(resumed)).toMatch(/The client declined\.[\s\S]*the question was: .*150 deletions/i);
      const again = await client.callTool("resume_run", { runId });
      expect(textOf(again)).toMatch(/The client declined\.[\s\S]*nobody was asked again/);
    }
    expect(asked).toEqual([expect.stringContaining("150 deletions")]);
    expect(await service.count("deleteOptions")).toBe(said.action === "accept" ? 2 : 1);
  });
});

test("resume_run of Context IDs that a person agreed to take away asks anew after ten minutes, too", async () => {
  const { service, server, client, targetingId } = await start();
  // One request cannot carry the Context IDs of all options.
  const gone = Array.from({ length: 60 }, (_, at) => `gone ${at}`);
  const children = optionItems(300).map(({ name }) => ({ name, contexts: ["kept", ...gone] }));
  await call(client, "bulk_add_options", { targetingId, items: [{ name: "Group", contexts: ["g"], children }] });
  const items = children.map(({ name }) => ({ name, remove: gone }));
  const asked = await call(client, "update_contexts", { targetingId, items });
  expect(asked.status).toBe("needs_confirmation");
  const release = await service.hold("updateOptions");
  const taking = call(client, "update_contexts", { confirmation: asked.confirmation.token });
  await expect.poll(() => service.count("updateOptions")).toBe(1);
  await server.stop();
  await release();
  const { status, runId } = await taking;
  expect(status).toBe("interrupted");
  await server.exited;
  const again = async () => {
    const { url } = await startHttp({
      ...service.live,
      TARGETING_MCP_CONFIRM: "ask",
      TARGETING_MCP_STATE_DIR: server.stateDir,
    });
    return CLIENTS["2026 client, modern"]({ url });
  };
  await aged(server.stateDir, runId);
  const later = await again();
  const anew = await call(later, "resume_run", { runId });
  expect(anew.status).toBe("needs_confirmation");
  expect(anew.confirmation.effect).toMatch(
    /^This continues update_contexts: \d+ changes of this run that remove data may/,
  );
  expect(await service.count("updateOptions")).toBe(1);
  const { token: confirmation } = anew.confirmation;
  const agreed = await call(later, "resume_run", { runId, confirmation });
  expect(agreed).toMatchObject({ ...FINISHED, approval: { decision: "approved", channel: "token" } });
});
