import { StreamableHTTPClientTransport, withInputRequired } from "@modelcontextprotocol/client";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import type { Said } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { loggedIn, startApproved, TOKENS, writeAccess } from "../support/page-http.ts";
import { connected, type Era, SHOWS_VIEWS, type ViewResult } from "../support/view-hosts.ts";

const ERAS = ["auto", "legacy"] as const satisfies readonly Era[];
const MODES = { url: { url: {} }, both: { url: {}, form: {} }, form: { form: {} } } as const;
/** Patterns of secrets with which a person logs in or decides. No answer may contain them. */
const SECRETS = /requestState|elicitationId|secret|\/open\/|[?&#](?:code|token|session)=|"token"/;

const BOSS = { name: "boss", approves: true } as const;

const shared = perFile(() =>
  startApproved([{ name: "agent" }, BOSS], {
    env: { TARGETING_MCP_CONFIRM: "ask", TARGETING_MCP_SESSIONS: "on", TARGETING_MCP_WAIT_MS: "60000" },
  }),
);
/** The same server, but its calls answer after 3 seconds if nobody decides. */
const hasty = perFile(() =>
  startApproved([{ name: "agent" }, BOSS], {
    env: { TARGETING_MCP_CONFIRM: "ask", TARGETING_MCP_SESSIONS: "on", TARGETING_MCP_WAIT_MS: "3000" },
  }),
);

interface Question {
  readonly mode: "url" | "form";
  readonly message: string;
  readonly url?: string;
  readonly elicitationId?: string;
}

interface Host {
  readonly era: Era;
  readonly modes: keyof typeof MODES;
  readonly server: Awaited<ReturnType<typeof shared>>;
  readonly says: (question: Question) => Said | Promise<Said>;
  readonly extensions?: typeof SHOWS_VIEWS;
}

const made = z.looseObject({
  runId: z.string(),
  status: z.string(),
  results: z.array(z.looseObject({ _id: z.string().optional() })),
});
const questionIn = z.looseObject({
  mode: z.enum(["url", "form"]).default("form"),
  message: z.string(),
  url: z.string().exactOptional(),
  elicitationId: z.string().exactOptional(),
});
let count = 0;

/** Returns a client, a call that deletes options, and whether these options still exist. */
async function host({ era, modes, server, says, extensions }: Host) {
  const asked: Question[] = [];
  const requestInit = { headers: { authorization: `Bearer ${TOKENS.agent}` } };
  const transport = new StreamableHTTPClientTransport(new URL(server.url), { requestInit });
  const client = await connected(transport, era, {
    extensions: extensions ?? {},
    elicitation: {
      modes: MODES[modes],
      says: (params) => {
        const question = questionIn.parse(params);
        asked.push(question);
        return says(question);
      },
    },
  });
  count += 1;
  /** Waits until a creation has ended. Returns the ID of its first object. */
  const firstOf = async (result: ViewResult): Promise<string> => {
    const told = made.parse(result.structuredContent);
    if (told.status === "running") return firstOf(await client.call("get_run", { runId: told.runId, waitMs: 1000 }));
    return told.results[0]?._id ?? "";
  };
  const name = `Sports fans ${count}`;
  const targetingId = await firstOf(await client.call("create_targetings", { items: [{ name }] }));
  const items = [{ name: `Running ${count}`, contexts: ["r"] }];
  const optionId = await firstOf(await client.call("bulk_add_options", { targetingId, items }));
  return {
    ...client,
    asked,
    raw: (more: Record<string, unknown>): Promise<unknown> =>
      client.client.request(
        { method: "tools/call", params: { name: "delete_options", arguments: { ids: [optionId] }, ...more } },
        withInputRequired(z.looseObject({})),
        { allowInputRequired: true },
      ),
    ask: () => client.call("delete_options", { ids: [optionId] }),
    isThere: async () => (await client.call("get_option", { optionId })).isError !== true,
  };
}

const ACCEPT = { action: "accept" } as const;
/** Answers that hosts may send without asking a person. */
const BY_THEMSELVES = [
  ["url", ACCEPT],
  ["url", { action: "accept", content: { confirm: true } }],
  ["url", { action: "decline" }],
  ["url", { action: "cancel" }],
  ["both", { action: "cancel" }],
  ["both", ACCEPT],
] as const;

/** Waits until the page shows the run of this question. Returns the run's ID. */
async function runOf(boss: Awaited<ReturnType<typeof loggedIn>>, { url = "" }: Pick<Question, "url">) {
  const runId = url.split("/").at(-1) ?? "";
  await expect.poll(() => boss.runs().find((run) => run.runId === runId)?.waiting).toBeDefined();
  return runId;
}

describe.for(ERAS)("a client of the %s era", (era) => {
  test.for(["url", "both"] as const)(
    "that opens addresses (%s) opens the page, and the page decides",
    async (modes) => {
      const server = await shared();
      const boss = await loggedIn(server.origin, "boss");
      const client = await host({
        ...{ era, modes, server },
        says: async (question) => {
          const runId = await runOf(boss, question);
          expect((await boss.press(runId, "approve")).status).toBe(200);
          return ACCEPT;
        },
      });
      const answer = await client.ask();
      const [question] = client.asked;
      expect(client.asked).toHaveLength(1);
      expect(question).toMatchObject({ mode: "url", message: expect.stringContaining("1 option") });
      expect(question?.url).toBe(`${server.origin}/#/runs/${answer.structuredContent?.runId}`);
      expect(answer.structuredContent).toMatchObject({
        status: "succeeded",
        approval: { decision: "approved", channel: "page", by: "boss" },
      });
      expect(JSON.stringify(answer)).not.toMatch(SECRETS);
      expect(await client.isThere()).toBe(false);
      const completed = client.told.filter((message) => JSON.stringify(message).includes("elicitation/complete"));
      expect(completed).toHaveLength(era === "legacy" ? 1 : 0);
      expect(JSON.stringify(completed)).toContain(era === "legacy" ? question?.elicitationId : "[]");
    },
  );

  test("that shows forms alone is asked in one", async () => {
    const client = await host({
      ...{ era, modes: "form", server: await shared() },
      says: () => ({ action: "accept", content: { confirm: true } }),
    });
    expect((await client.ask()).structuredContent).toMatchObject({
      approval: { decision: "approved", channel: "client" },
    });
    expect(client.asked.map(({ mode }) => mode)).toEqual(["form"]);
  });

  test("that opens nothing is asked in a form next, whose yes and no count", async () => {
    const server = await shared();
    for (const confirm of [true, false]) {
      const client = await host({
        ...{ era, modes: "both", server },
        says: ({ mode }) => {
          if (mode === "url") return { action: confirm ? "decline" : "cancel" };
          return confirm ? { action: "accept", content: { confirm } } : { action: "decline" };
        },
      });
      const answer = await client.ask();
      expect(client.asked.map(({ mode }) => mode)).toEqual(["url", "form"]);
      expect(answer.structuredContent).toMatchObject({
        status: confirm ? "succeeded" : "cancelled",
        approval: { decision: confirm ? "approved" : "declined", channel: "client" },
      });
      expect(JSON.stringify(answer)).not.toMatch(SECRETS);
      expect(await client.isThere()).toBe(!confirm);
    }
  });

  test("that says yes or no by itself decides nothing, and gets no token", async () => {
    const server = await hasty();
    const boss = await loggedIn(server.origin, "boss");
    await Promise.all(
      BY_THEMSELVES.map(async ([modes, said]) => {
        const client = await host({ ...{ era, modes, server }, says: () => said });
        const answer = await client.ask();
        const { runId = "", status } = answer.structuredContent ?? {};
        expect(status).toBe("needs_confirmation");
        expect(answer.structuredContent).not.toHaveProperty("confirmation.token");
        expect(JSON.stringify(answer)).not.toMatch(SECRETS);
        expect(JSON.stringify(answer)).toContain(`the page at ${server.origin}/`);
        // Making the same call again decides nothing either. Only the page does.
        expect((await client.ask()).structuredContent?.status).toBe("needs_confirmation");
        expect(await client.isThere()).toBe(true);
        await runOf(boss, { url: `/${runId}` });
        expect((await boss.press(runId, "decline")).status).toBe(200);
        const later = await client.call("get_run", { runId });
        expect(later.structuredContent).toMatchObject({ status: "cancelled", approval: { channel: "page" } });
      }),
    );
  });

  test("that opens nothing and shows views decides in one", async () => {
    const client = await host({
      ...{ era, modes: "url", server: await shared(), extensions: SHOWS_VIEWS },
      says: () => ({ action: "cancel" }),
    });
    const answer = await client.ask();
    expect(answer.structuredContent?.status).toBe("needs_confirmation");
    const { "targeting-mcp/decision": decision } = answer._meta ?? {};
    expect(decision?.runId).toBe(answer.structuredContent?.runId);
    const secret = decision?.secret ?? "none";
    expect(JSON.stringify([answer.content, answer.structuredContent])).not.toContain(secret);
    await client.call("decide_run", { ...decision, decision: "decline" });
    expect(await client.isThere()).toBe(true);
  });
});

test("a client of the legacy era that never answers waits for the page all the same", async () => {
  const server = await shared();
  const boss = await loggedIn(server.origin, "boss");
  const client = await host({
    ...{ era: "legacy", modes: "url", server },
    says: async (question) => {
      const runId = await runOf(boss, question);
      expect((await boss.press(runId, "approve")).status).toBe(200);
      return new Promise<Said>(() => undefined);
    },
  });
  expect((await client.ask()).structuredContent).toMatchObject({ status: "succeeded", approval: { channel: "page" } });
});

test.for(ERAS)("nobody is asked in a form where another person has to approve (%s)", async (era) => {
  const server = await startApproved([{ name: "agent", approves: true, tools: true }, BOSS], {
    more: { requireOtherApprover: true },
    env: { TARGETING_MCP_CONFIRM: "ask", TARGETING_MCP_SESSIONS: "on", TARGETING_MCP_WAIT_MS: "3000" },
  });
  const client = await host({ ...{ era, modes: "both", server }, says: () => ({ action: "cancel" }) });
  const answer = await client.ask();
  expect(client.asked.map(({ mode }) => mode)).toEqual(["url"]);
  expect(answer.structuredContent?.status).toBe("needs_confirmation");
  expect(answer.structuredContent).not.toHaveProperty("confirmation.token");
  // If nobody can approve on the page, the page is not opened, and the call answers with a token.
  writeAccess(server.accessFile, [{ name: "agent" }]);
  const alone = await host({ ...{ era, modes: "url", server }, says: () => ACCEPT });
  expect((await alone.ask()).structuredContent).toHaveProperty("confirmation.token");
  expect(alone.asked).toEqual([]);
});

const required = z.looseObject({
  resultType: z.literal("input_required"),
  inputRequests: z.record(z.string(), z.looseObject({ method: z.string(), params: questionIn })),
  requestState: z.string(),
});

test("answers of another type, twice, late or for another call approve nothing", async () => {
  const server = await hasty();
  const client = await host({ ...{ era: "auto", modes: "both", server }, says: () => ({ action: "cancel" }) });
  const other = await host({ ...{ era: "auto", modes: "both", server }, says: () => ({ action: "cancel" }) });
  const { raw } = client;
  const first = required.parse(await raw({}));
  expect(first.inputRequests).toMatchObject({ open: { method: "elicitation/create", params: { mode: "url" } } });
  expect(Object.values(first.inputRequests)[0]?.params).not.toHaveProperty("elicitationId");
  const { requestState } = first;
  const yes = { action: "accept", content: { confirm: true } };
  const statusOf = (found: unknown) =>
    z.looseObject({ structuredContent: z.looseObject({ status: z.string() }) }).parse(found).structuredContent.status;
  const opened = [{ open: yes }, { open: ACCEPT }, { open: ACCEPT }, { open: yes, confirm: yes }];
  const waited = await Promise.all(opened.map((inputResponses) => raw({ requestState, inputResponses })));
  expect(waited.map(statusOf)).toEqual(opened.map(() => "needs_confirmation"));
  // If the host does not say whether it opened the address, the form follows.
  const unanswered = await Promise.all(
    [{ confirm: yes }, {}].map((inputResponses) => raw({ requestState, inputResponses })),
  );
  expect(unanswered.map((found) => required.parse(found).inputRequests.open?.params.mode)).toEqual(["form", "form"]);
  const form = required.parse(await raw({ requestState, inputResponses: { open: { action: "decline" } } }));
  required.parse(await other.raw({}));
  await other.raw({ requestState: form.requestState, inputResponses: { open: yes } });
  const contents = [{}, { content: { confirm: "true" } }, { content: { confirm: false } }, { content: { open: true } }];
  const replies = contents.map((content) => ({ open: { ...ACCEPT, ...content } }));
  const odd = await Promise.all(
    replies.map((inputResponses) => raw({ requestState: form.requestState, inputResponses })),
  );
  expect(odd.map(statusOf)).toEqual(contents.map(() => "needs_confirmation"));
  expect([await client.isThere(), await other.isThere()]).toEqual([true, true]);
  expect(
    statusOf(await raw({ requestState: form.requestState, inputResponses: { open: { action: "decline" } } })),
  ).toBe("cancelled");
  // Too late: the run is already cancelled.
  expect(statusOf(await raw({ requestState: form.requestState, inputResponses: { open: yes } }))).toBe("cancelled");
  expect(await client.isThere()).toBe(true);
});
