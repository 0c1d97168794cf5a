import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { type Answer, CLIENTS, textOf } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { browserOfTest, personAt, redeem } from "../support/page-person.ts";
import { startCommand } from "../support/server-process.ts";
import { startInTerminal } from "../support/terminal.ts";
import { writtenIn } from "../support/view-hosts.ts";
import { type Connect, checkedReport, startSession } from "../support/writing.ts";

interface Given {
  readonly env?: Record<string, string>;
  readonly connect?: Connect;
  readonly answer?: Answer;
  readonly live?: boolean;
}

async function started({ env, ...given }: Given) {
  const browser = browserOfTest();
  return { ...(await startSession({ ...given, env: { ...browser.env, ...env } })), browser };
}

let made = 0;

/** Creates a targeting, and returns a call that deletes it. */
async function deletable(session: Awaited<ReturnType<typeof startSession>>) {
  made += 1;
  const name = `Sports fans ${made}`;
  const targetingId = await session.sandbox.targeting(name);
  await session.sandbox.options(targetingId, [{ name: "Running", contexts: ["r"] }]);
  await session.writesSent();
  const asking = () => session.client.callTool("delete_targeting", { ids: [targetingId] });
  const deletions = async (): Promise<number> =>
    (await session.writesSent()).filter((operation) => operation === "deleteTargetings").length;
  return { name, targetingId, asking, deletions };
}

/** Starts a session with a targeting to delete, and a browser that the server opens. */
async function begun(given: Given = {}) {
  const session = await started(given);
  return { ...session, ...(await deletable(session)) };
}

const shared = perFile(async (client: keyof typeof CLIENTS, more: Pick<Given, "env" | "live"> = {}) => {
  const session = await started({ connect: CLIENTS[client], ...more });
  // The server opens the page only when a run waits for approval.
  const { asking } = await deletable(session);
  const answer = asking();
  const person = await personAt(await session.browser.address());
  await person.press((await newlyWaiting(person)).runId, "decline");
  await answer;
  return { ...session, person };
});

/** Returns the shared session with a new targeting to delete. Its person has already opened the page. */
async function begunBefore(client: keyof typeof CLIENTS, more: Pick<Given, "env" | "live"> = {}) {
  const session = await shared(client, more);
  return { ...session, ...(await deletable(session)) };
}

const known = new Set<string>();

/** Waits until the page shows a run that waits and that no earlier test has seen. */
async function newlyWaiting(person: Awaited<ReturnType<typeof personAt>>) {
  const found = () => person.runs().find(({ runId, waiting }) => waiting !== undefined && !known.has(runId));
  await expect.poll(found).toBeDefined();
  const run = found();
  if (run === undefined) throw new Error("no run waits");
  known.add(run.runId);
  return run;
}

const LEGACY = "2026 client, legacy";
const BRIEF = { env: { TARGETING_MCP_WAIT_MS: "1000" } };

/** Makes all waiting runs of a folder expire this many milliseconds earlier. */
async function letPass(stateDir: string, ms: number): Promise<void> {
  const files = await readdir(join(stateDir, "runs"), { recursive: true, withFileTypes: true });
  for (const file of files.filter((one) => one.isFile())) {
    const path = join(file.parentPath, file.name);
    const text = await readFile(path, "utf8");
    const earlier = text.replace(/"until":(\d+)/g, (_, until) => `"until":${Number(until) - ms}`);
    if (earlier !== text) await writeFile(path, earlier);
  }
}

describe("a decision on the page over stdio", () => {
  test.for(["2026 client, modern", LEGACY, "2025 client"] as const)("approve, with a %s", async (client) => {
    const session = await begunBefore(client);
    const { person } = session;
    const answer = session.asking();
    const run = await newlyWaiting(person);
    expect(run).toMatchObject({ tool: "delete_targeting", actions: ["approve", "decline"] });
    expect(run.waiting?.parts).toEqual([
      {
        ...{ title: "Targetings deleted", kind: "deleted" },
        count: 1,
        objects: [{ name: session.name, says: "1 option and 1 Context ID" }],
      },
      {
        title: "Options deleted with their targeting",
        count: 1,
        objects: [{ name: "Running", says: "1 Context ID" }],
        kind: "inside",
      },
    ]);
    expect((await person.press(run.runId, "approve")).status).toBe(200);
    expect(checkedReport(await answer)).toMatchObject({
      status: "succeeded",
      approval: { decision: "approved", channel: "page" },
    });
    await expect.poll(() => person.runs().find(({ runId }) => runId === run.runId)?.status).toBe("succeeded");
    expect((await person.press(run.runId, "decline")).status).toBe(409);
  });

  test("an approval of another effect than the run has now counts for nothing", async () => {
    const { person, asking, deletions } = await begunBefore(LEGACY);
    const answer = asking();
    const { runId } = await newlyWaiting(person);
    for (const digest of ["another effect", ""]) {
      const refused = await person.press(runId, "approve", {}, { digest });
      expect({ digest, status: refused.status }).toEqual({ digest, status: 409 });
      expect(await refused.text()).toContain("different from what the page showed");
    }
    expect(await deletions()).toBe(0);
    expect((await person.press(runId, "approve")).status).toBe(200);
    expect(checkedReport(await answer)).toMatchObject({ status: "succeeded" });
    expect(await deletions()).toBe(1);
  });

  test("a whole targeting is approved with its name alone, which the server compares", async () => {
    const { person, asking, deletions, name } = await begunBefore(LEGACY);
    const answer = asking();
    const { runId } = await newlyWaiting(person);
    for (const typed of ["", "another name", name.toUpperCase(), `${name}x`]) {
      const refused = await person.press(runId, "approve", {}, { typed });
      expect({ typed, status: refused.status }).toEqual({ typed, status: 409 });
      expect(await refused.text()).toContain("Nothing was approved");
    }
    expect(await deletions()).toBe(0);
    expect(person.runs().find((run) => run.runId === runId)?.status).toBe("needs_confirmation");
    expect((await person.press(runId, "approve", {}, { typed: ` ${name.normalize("NFD")} ` })).status).toBe(200);
    expect(checkedReport(await answer)).toMatchObject({ status: "succeeded" });
    expect(await deletions()).toBe(1);
  });

  test("a plan that deletes waits there too, and is applied once", async () => {
    const session = await begunBefore(LEGACY);
    const { targetingId, person } = session;
    const desired = { version: 1, targeting: { _id: targetingId }, options: [{ name: "Running", contexts: [] }] };
    const planned = await session.client.callTool("plan_targeting", { desired });
    const { runId } = z.looseObject({ runId: z.string() }).parse(planned.structuredContent);
    const answer = session.client.callTool("apply_plan", { runId });
    const run = await newlyWaiting(person);
    expect(run).toMatchObject({ runId, actions: ["approve", "decline"] });
    expect((await person.press(runId, "approve")).status).toBe(200);
    expect((await answer).structuredContent).toMatchObject({
      runId,
      tool: "apply_plan",
      status: "succeeded",
      approval: { decision: "approved", channel: "page" },
    });
    expect((await person.press(runId, "approve")).status).toBe(409);
  });

  test("a dry run waits there as long as its effect is the same, also if it is applied again", async () => {
    const session = await begun(BRIEF);
    const { client, sandbox, targetingId } = session;
    const dry = await client.callTool("delete_targeting", { ids: [targetingId], dryRun: true });
    const { runId } = z.looseObject({ runId: z.string() }).parse(dry.structuredContent);
    const apply = async () => checkedReport(await client.callTool("apply_plan", { runId }));
    const first = apply();
    const person = await personAt(await session.browser.address());
    await person.waiting();
    expect(await first).toMatchObject({ status: "needs_confirmation" });
    expect(await apply()).toMatchObject({ status: "needs_confirmation" });
    expect((await person.waiting()).actions).toEqual(["approve", "decline"]);
    await sandbox.options(targetingId, [{ name: "New", contexts: ["n"] }]);
    expect((await apply()).notes.join()).toContain("has changed since it was shown");
    const refused = await person.press(runId, "approve");
    expect(refused.status).toBe(409);
    expect(await refused.text()).toContain("different from what the page showed");
    expect(await apply()).toMatchObject({ status: "needs_confirmation" });
    expect((await person.waiting()).actions).toEqual(["approve", "decline"]);
    expect((await person.press(runId, "approve")).status).toBe(200);
    await expect.poll(() => person.runs().find((run) => run.runId === runId)?.status).toBe("succeeded");
  });

  test("decline: nothing is sent, and the answer says who said no", async () => {
    const session = await begunBefore(LEGACY);
    const { person } = session;
    const answer = session.asking();
    const run = await newlyWaiting(person);
    expect((await person.press(run.runId, "decline")).status).toBe(200);
    const report = checkedReport(await answer);
    expect(report).toMatchObject({
      status: "cancelled",
      approval: { decision: "declined", channel: "page" },
      runId: run.runId,
    });
    expect(report.notes.join()).toContain("deletes 1 targeting with 1 option");
    expect((await session.client.callTool("get_targeting", { targetingId: session.targetingId })).isError).not.toBe(
      true,
    );
    expect((await person.press(run.runId, "approve")).status).toBe(409);
  });

  test("a plan that went stale meanwhile cannot be approved, and is told as that", async () => {
    const session = await begun({ env: { TARGETING_MCP_WAIT_MS: "4000" } });
    // The first deletion loads the code, which takes time.
    await session.client.callTool("delete_targeting", { ids: [session.targetingId], dryRun: true });
    const answer = session.asking();
    const person = await personAt(await session.browser.address());
    const run = await person.waiting();
    await session.sandbox.options(session.targetingId, [{ name: "New", contexts: ["n"] }]);
    expect((await person.press(run.runId, "approve")).status).toBe(409);
    const report = checkedReport(await answer);
    expect(report.status).toBe("needs_confirmation");
    expect(report.notes.join()).toContain("changed since it was planned");
    await expect
      .poll(() => person.runs().find(({ runId }) => runId === run.runId)?.disabled?.approve)
      .toBe("Changed since it was planned: ask the agent to plan it again.");
    expect((await person.press(run.runId, "approve")).status).toBe(409);
  });

  test.each(["get_run with its ID", "the list of runs"])("after 24 hours it is cancelled: %s", async (looksBy) => {
    const session = await begunBefore(LEGACY, BRIEF);
    const answer = session.asking();
    const { runId } = await newlyWaiting(session.person);
    expect(["needs_confirmation", "running"]).toContain(checkedReport(await answer).status);
    await letPass(session.environment.TARGETING_MCP_STATE_DIR ?? "", 24 * 3_600_000);
    const { client } = session;
    if (looksBy === "the list of runs") {
      const { structuredContent } = await client.callTool("get_run", {});
      expect(structuredContent?.runs).toContainEqual(expect.objectContaining({ runId, status: "cancelled" }));
    }
    const told = await client.callTool("get_run", { runId });
    expect(checkedReport(told)).toMatchObject({ status: "cancelled", counts: { notApplied: 1 } });
    expect(textOf(told)).toContain("nobody approved or declined the change within 24 hours");
    expect(await session.deletions()).toBe(0);
  });

  test("what is approved with a token says so on the page, can be declined there, and goes when the token expires", async () => {
    const session = await begun({ env: { TARGETING_MCP_PAGE: "off" } });
    const first = checkedReport(await session.asking());
    expect(first.confirmation?.token).toBeDefined();
    const page = browserOfTest();
    startCommand(["page"], { ...session.environment, ...page.env, TARGETING_MCP_PAGE: "on" });
    const person = await personAt(await page.address());
    const run = await person.waiting();
    expect(run).toMatchObject({ runId: first.runId, actions: ["decline"], waiting: { elsewhere: "token" } });
    expect(run.waiting).toMatchObject({ act: "Delete the targeting", optionsInside: 1, effect: "" });
    expect(run.waiting?.parts).toMatchObject([
      { title: "Targetings deleted", count: 1 },
      { title: "Options deleted with their targeting", count: 1 },
    ]);
    expect(run.waiting?.expiresAt).toBe(Date.parse(first.confirmation?.expiresAt ?? ""));
    expect((await person.press(run.runId, "approve")).status).toBe(409);
    const status = (runId: string) => person.runs().find((one) => one.runId === runId)?.status;
    await letPass(session.environment.TARGETING_MCP_STATE_DIR ?? "", 600_000);
    await expect.poll(() => status(run.runId)).toBe("cancelled");
    const late = await session.client.callTool("delete_targeting", { confirmation: first.confirmation?.token });
    expect(textOf(late)).toContain("the confirmation has expired; nothing was done");

    const second = checkedReport(await session.asking());
    await expect.poll(() => status(second.runId ?? "")).toBe("needs_confirmation");
    expect((await person.press(second.runId ?? "", "decline")).status).toBe(200);
    const spent = await session.client.callTool("delete_targeting", { confirmation: second.confirmation?.token });
    expect(spent.isError).toBe(true);
    expect(await session.deletions()).toBe(0);
  });

  test("many runs that wait at once open one tab", async () => {
    const session = await begun({ env: { TARGETING_MCP_WAIT_MS: "60000" } });
    const names = ["One", "Two", "Three", "Four"];
    const ids = await Promise.all(names.map((name) => session.sandbox.targeting(name)));
    const calls = ids.map((_id) => session.client.callTool("delete_targeting", { ids: [_id] }));
    const person = await personAt(await session.browser.address());
    const waiting = () => person.runs().filter((run) => run.waiting !== undefined);
    await expect.poll(() => waiting().length).toBe(names.length);
    for (const { runId } of waiting()) await person.press(runId, "decline");
    await Promise.all(calls);
    expect(session.browser.opened()).toHaveLength(1);
  });

  test("without a session / is a page that a person can read", async () => {
    const { person } = await begunBefore(LEGACY);
    const page = await fetch(person.origin);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(decodeURIComponent(await page.text())).toContain("Open this page with a one-time link");
  });

  test("without a decision within the wait there is no token, and get_run goes on waiting", async () => {
    const session = await begunBefore(LEGACY, BRIEF);
    const { person } = session;
    const answer = session.asking();
    const run = await newlyWaiting(person);
    const answered = checkedReport(await answer);
    // On a busy machine, the call may answer before the run is planned.
    const report =
      answered.status === "running"
        ? checkedReport(await session.client.callTool("get_run", { runId: run.runId, waitMs: 1 }))
        : answered;
    expect(report).toMatchObject({ status: "needs_confirmation", runId: run.runId });
    expect(report.confirmation?.token).toBeUndefined();
    const look = () => session.client.callTool("get_run", { runId: run.runId, waitMs: 900 });
    const waiting = look();
    await person.press(run.runId, "approve");
    await waiting;
    await expect
      .poll(async () => checkedReport(await look()))
      .toMatchObject({ status: "succeeded", approval: { decision: "approved", channel: "page" } });
  });

  test("a closed question goes on to the page, and a yes to it never needs the page", async () => {
    const closing = await begun({ answer: () => ({ action: "cancel" }) });
    const answer = closing.asking();
    const person = await personAt(await closing.browser.address());
    const run = await person.waiting();
    await person.press(run.runId, "approve");
    expect(checkedReport(await answer)).toMatchObject({
      status: "succeeded",
      approval: { decision: "approved", channel: "page" },
    });
    const agreeing = await begun({ answer: () => ({ action: "accept", content: { confirm: true } }) });
    expect(checkedReport(await agreeing.asking()).approval).toMatchObject({ decision: "approved", channel: "client" });
    expect(agreeing.browser.opened()).toEqual([]);
  });

  test.for([
    ["ask", "needs_confirmation"],
    ["strict", undefined],
  ] as const)("where no browser can be opened, %s takes the next channel", async ([confirm, status]) => {
    const session = await begun({ env: { BROWSER: "/nowhere/browser", TARGETING_MCP_CONFIRM: confirm } });
    const result = await session.asking();
    if (status === undefined) {
      expect(result.isError).toBe(true);
      expect(textOf(result)).toContain("targeting-mcp page");
      return;
    }
    const report = checkedReport(result);
    expect(report.confirmation?.token).toMatch(/^.{40}$/);
    const done = await session.client.callTool("delete_targeting", { confirmation: report.confirmation?.token ?? "" });
    expect(checkedReport(done)).toMatchObject({
      status: "succeeded",
      approval: { decision: "approved", channel: "token" },
    });
  });
});

describe("the page is not the model's", () => {
  test("links work once; foreign hosts, origins, sessions and IDs are refused", async () => {
    const session = await begun();
    const answer = session.asking();
    const link = await session.browser.address();
    const { origin, host } = new URL(link);
    expect((await redeem(link, { origin: "http://evil.example" })).status).toBe(403);
    expect((await fetch(`${origin}/page/stream`)).status).toBe(401);
    const person = await personAt(link);
    const run = await person.waiting();
    expect((await redeem(link)).status).toBe(403);
    const guessed = await redeem(`${origin}/open/guessed`);
    expect(guessed.status).toBe(403);
    expect(await guessed.text()).toContain("was used before, or is more than two minutes old");
    expect((await person.press(run.runId, "approve", { origin: "http://evil.example" })).status).toBe(403);
    for (const token of ["", "guessed", `${person.session}A`]) {
      expect((await person.press(run.runId, "approve", { "x-page-token": token })).status).toBe(401);
    }
    const asCookies = { "x-page-token": "", cookie: `session=${person.session}; X-Page-Token=${person.session}` };
    expect((await person.press(run.runId, "approve", asCookies)).status).toBe(401);
    expect((await person.press("01ARZ3NDEKTSV4RRFFQ69G5FAV", "approve")).status).toBe(404);
    const page = await fetch(`${origin}/`);
    expect(page.status).toBe(200);
    expect(await page.clone().text()).not.toContain("Sports fans");
    expect(page.headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
        "frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    );
    await person.press(run.runId, "approve");
    const answers = JSON.stringify([await answer, await session.client.callTool("get_run", { runId: run.runId })]);
    const told = answers + writtenIn(session.environment.TARGETING_MCP_STATE_DIR ?? "", () => "").written();
    const secrets = [host, new URL(link).pathname.slice(6), person.session];
    for (const secret of secrets) {
      expect(secret.length).toBeGreaterThan(5);
      expect(told).not.toContain(secret);
    }
  });

  test.for([
    ["page", undefined],
    ["client", () => ({ action: "accept", content: { confirm: true } })],
    ["token", undefined],
  ] as const satisfies readonly (readonly [string, Answer | undefined])[])(
    "one line of the audit tells a decision: %s",
    async ([where, said]) => {
      const env: Record<string, string> = where === "token" ? { TARGETING_MCP_PAGE: "off" } : {};
      const before = where === "page" ? await begunBefore(LEGACY) : undefined;
      const session = before ?? (await begun({ env, ...(said && { answer: said }) }));
      const answer = session.asking();
      if (before !== undefined) await before.person.press((await newlyWaiting(before.person)).runId, "approve");
      const { runId, confirmation } = checkedReport(await answer);
      if (where === "token") {
        const token = { confirmation: confirmation?.token ?? "" };
        await session.write("delete_targeting", token);
        await session.write("delete_targeting", token);
      }
      const audit = await readFile(join(session.environment.TARGETING_MCP_STATE_DIR ?? "", "audit.ndjson"), "utf8");
      const lines = audit.trim().split("\n");
      const decisions = lines
        .map((line): Record<string, unknown> => JSON.parse(line))
        .filter((line) => "decision" in line && line.runId === runId);
      const text = expect.any(String);
      expect(decisions).toEqual([
        { at: text, runId, decision: "approved", where, who: text, caller: "local", project: text },
      ]);
    },
  );
});

describe("targeting-mcp page", () => {
  test("decides what a server over stdio asked for, and of two pages one decision counts", async () => {
    const session = await begunBefore(LEGACY, { live: true });
    const answer = session.asking();
    const [here, other] = [session.person, browserOfTest()];
    startCommand(["page"], { ...session.environment, ...other.env });
    const there = await personAt(await other.address());
    const { runId } = await newlyWaiting(here);
    expect(await there.waiting()).toMatchObject({ runId, actions: ["approve", "decline"] });
    const pressed = await Promise.all([there.press(runId, "approve"), here.press(runId, "approve")]);
    expect(pressed.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(checkedReport(await answer)).toMatchObject({
      status: "succeeded",
      approval: { decision: "approved", channel: "page" },
    });
    expect(await session.deletions()).toBe(1);
  });

  test("with another project's key it shows the run, and nobody could drive it", async () => {
    const session = await begunBefore(LEGACY, { live: true });
    const answer = session.asking();
    const here = session.person;
    const other = browserOfTest();
    startCommand(["page"], { ...session.environment, ...other.env, TARGETING_MCP_PROJECT: "another" });
    const there = await personAt(await other.address());
    const { runId } = await newlyWaiting(there);
    expect((await there.press(runId, "approve")).status).toBe(409);
    expect((await here.press(runId, "decline")).status).toBe(200);
    expect(checkedReport(await answer).approval).toMatchObject({ decision: "declined", channel: "page" });
  });

  test("prints its link at a terminal alone", async () => {
    const there = startInTerminal(["page"], { BROWSER: "none" });
    expect(await there.until("/open/")).toContain("within two minutes; it works once: http://127.0.0.1:");
    const other = browserOfTest();
    const command = startCommand(["page"], other.env);
    await personAt(await other.address());
    expect(command.lines).toEqual([]);
    expect(command.stderr()).not.toContain("/open/");
  });

  test("says so where no browser can be opened, and ends", async () => {
    const command = startCommand(["page"], { BROWSER: "none" });
    expect((await command.exited).code).toBe(1);
    expect(command.stderr()).toContain("No browser can be opened here");
    expect(command.lines).toEqual([]);
  });
});
