import { randomBytes } from "node:crypto";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import * as z from "zod";
import { startHttp } from "../support/http-server.ts";
import { clientOf, loggedIn, postLogin, TOKENS, writeAccess } from "../support/page-http.ts";
import { cleanEnvironment } from "../support/server-process.ts";
import { startService } from "../support/service.ts";
import { startStub } from "../support/stub-server.ts";
import { connected, decisionMeta, type Era, type Given, madeTargeting, writtenIn } from "../support/view-hosts.ts";

/** The secrets that the server gets in its settings. It must never show them. */
const GIVEN = {
  apiKey: "canary-of-the-targeting-key",
  appKey: "canary-of-the-app-key",
  sealKey: randomBytes(32).toString("base64"),
  hook: "canary-of-the-hook",
  ...{ agent: TOKENS.agent, boss: TOKENS.boss, both: TOKENS.both },
} as const;

interface Api {
  readonly url: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts the built command over HTTP with all kinds of secrets. All its output is collected as text, by place. */
async function start({ url, env = {} }: Api) {
  const hook = await startStub(() => ({ status: 200, json: {} }));
  const environment = cleanEnvironment({
    ...{ TARGETING_API_URL: url, TARGETING_API_KEY: GIVEN.apiKey, EVENT_API_URL: url, EVENT_APP_KEY: GIVEN.appKey },
    ...{ TARGETING_MCP_SEAL_KEY: GIVEN.sealKey, TARGETING_MCP_APPROVAL_WEBHOOK: `${hook.url}/?key=${GIVEN.hook}` },
    ...{ TARGETING_MCP_MODE: "live", TARGETING_MCP_CONFIRM: "ask", TARGETING_MCP_WAIT_MS: "120000" },
    ...{ TARGETING_MCP_LOG_LEVEL: "debug", TARGETING_MCP_METRICS: "on", ...env },
  });
  const folder = environment.TARGETING_MCP_STATE_DIR ?? "";
  const accessFile = `${folder}-access.json`;
  const approves = { approves: true } as const;
  writeAccess(accessFile, [
    { name: "agent" },
    { name: "boss", ...approves },
    { name: "both", ...approves, tools: true },
  ]);
  const server = await startHttp({ ...environment, TARGETING_MCP_ACCESS_FILE: accessFile });
  const { origin } = new URL(server.url);
  const page: string[] = [];
  const text = async (path: string, headers: Record<string, string> = {}): Promise<string> => {
    const answer = await fetch(origin + path, { headers });
    return `${answer.status} ${await answer.text()}`;
  };
  return {
    ...server,
    origin,
    text,
    /** Requests all that the page shows a person: the page itself, and everything about these runs. */
    async look(person: Awaited<ReturnType<typeof loggedIn>>, runIds: readonly string[]): Promise<void> {
      const parts = ["", "/results", "/removed", "/rejects", "/plan"];
      const ofRuns = runIds.flatMap((runId) => parts.map((part) => `/page/runs/${runId}${part}`));
      for (const path of ["/", "/page/page.js", ...ofRuns]) page.push(await text(path, person.headers));
      page.push(...person.seen.filter(({ kind }) => kind !== "hello").map((message) => JSON.stringify(message)));
    },
    /** Returns all output except answers to clients: the page, the log and files, metrics, refusals and the webhook. */
    said: async () => ({
      page: page.join("\n"),
      written: writtenIn(folder, () => `${server.stderr()}${server.lines.join("\n")}`).written(),
      figures: (await text("/metrics")) + (await text("/metrics", { authorization: `Bearer ${TOKENS.agent}` })),
      refusals: (await text("/page/stream")) + (await text("/", { authorization: `Bearer ${TOKENS.boss}` })),
      hook: JSON.stringify(hook.received.map(({ body }) => body)),
    }),
  };
}

/** The places whose text must contain the IDs of runs. This proves that the search reads the right texts. */
const TELLS_RUNS: ReadonlySet<string> = new Set(["page", "written", "hook", "answers"]);

/** Returns which secrets are in which places, as `name in place`. */
function found(places: Readonly<Record<string, string>>, secrets: Readonly<Record<string, string>>): readonly string[] {
  const all = Object.entries(secrets);
  for (const [name, secret] of all) expect(secret.length, name).toBeGreaterThan(15);
  return Object.entries(places).flatMap(([place, text]) =>
    all.flatMap(([name, secret]) => (text.includes(secret) ? [`${name} in ${place}`] : [])),
  );
}

/** Returns messages to a client, without the one field that may contain the secret of a view. */
function withoutDecisions(told: readonly unknown[]): string {
  return JSON.stringify(told, (name, value: unknown) => (name === "targeting-mcp/decision" ? undefined : value));
}

const waiting = z.looseObject({ _meta: z.looseObject({ "targeting-mcp/decision": decisionMeta }) });

test.for([
  ["2026 era", "auto"],
  ["2025 era with sessions", "legacy"],
] as const)(
  "decisions in a view and on the page leave no secret where a tool or a log could show it, %s",
  async ([, era]) => {
    const service = await startService({ keys: { managementKeys: [{ key: GIVEN.apiKey }], appKeys: [GIVEN.appKey] } });
    const sessions = era === "legacy" ? "on" : "off";
    const server = await start({ url: service.url, env: { TARGETING_MCP_SESSIONS: sessions } });
    const [shows, plain] = [
      await clientOfEra(server.url, era, {}),
      await clientOfEra(server.url, era, { extensions: {} }),
    ];

    const inView = waiting.parse(
      await shows.call("delete_targeting", { ids: [await madeTargeting(shows, "In a view")] }),
    );
    const { runId, secret } = inView._meta["targeting-mcp/decision"];
    for (const { uri } of await shows.resources()) await shows.read(uri);
    // Reads what the model can see of the run: here while it waits for approval, and below after the decision.
    await lookAtRun(shows, runId);
    for (const guess of [`${secret}x`, secret])
      await shows.call("decide_run", { runId, decision: "approve", secret: guess });

    const answer = plain.call("delete_targeting", { ids: [await madeTargeting(plain, "On the page")] });
    expect((await postLogin(server.origin, TOKENS.agent)).status).toBe(403);
    const boss = await loggedIn(server.origin, "boss");
    const run = await boss.waiting();
    await server.look(boss, [run.runId]);
    await lookAtRun(shows, run.runId);
    expect((await boss.press(run.runId, "approve")).status).toBe(200);
    expect((await answer).structuredContent).toMatchObject({
      status: "succeeded",
      approval: { decision: "approved", channel: "page" },
    });
    await server.look(boss, [run.runId, runId]);

    for (const client of [shows, plain]) for (const id of [runId, run.runId]) await lookAtRun(client, id);
    for (const args of [{}, { runId: TOKENS.agent }, { runId: GIVEN.apiKey }]) await shows.call("get_run", args);
    await expect.poll(async () => (await server.said()).hook).toContain(run.runId);
    const places = { ...(await server.said()), answers: withoutDecisions([...shows.told, ...plain.told]) };
    expect(found(places, { ...GIVEN, view: secret, session: boss.session })).toEqual([]);
    // Checks that the search has read texts about this run.
    for (const [place, text] of Object.entries(places)) if (TELLS_RUNS.has(place)) expect(text).toContain(run.runId);
  },
);

/** Reads everything about a run that a client can get: with get_run, with and without input, and as resources. */
async function lookAtRun(client: Awaited<ReturnType<typeof clientOfEra>>, runId: string): Promise<void> {
  for (const includeInput of [false, true]) await client.call("get_run", { runId, includeInput });
  for (const part of ["results", "removed", "not-removed", "rejects", "plan"]) {
    await client.read(`targeting://runs/${runId}/${part}`).catch(() => undefined);
  }
}

function clientOfEra(url: string, era: Era, given: Given) {
  const requestInit = { headers: { authorization: `Bearer ${TOKENS.agent}` } };
  return connected(new StreamableHTTPClientTransport(new URL(url), { requestInit }), era, given);
}

const made = z.looseObject({ runId: z.string() });

test("what the service repeats of its key reaches neither answers nor the page", async () => {
  const api = await startStub(({ headers }) => ({
    status: 400,
    json: { message: [`no: ${JSON.stringify(headers)}`], error: "Bad Request", statusCode: 400 },
  }));
  const server = await start({ url: api.url });
  const client = await clientOf(server.url, "both");
  const answers = [
    await client.callTool("create_targetings", { items: [{ name: "Spring" }] }),
    await client.callTool("track_event", { uid: "u", eventName: "app_open" }),
    await client.callTool("get_targeting", { targetingId: "01JABCDEFGHJKMNPQRSTVWXYZ0" }),
    await client.callTool("get_targeting", { targetingName: TOKENS.both }),
  ];
  const runs = answers.slice(0, 2).map(({ structuredContent }) => made.parse(structuredContent).runId);
  for (const runId of runs) answers.push(await client.callTool("get_run", { runId, includeInput: true }));
  expect(api.received.map(({ headers }) => headers["x-api-key"] ?? headers.authorization)).toEqual(
    expect.arrayContaining([GIVEN.apiKey, GIVEN.appKey]),
  );
  const both = await loggedIn(server.origin, "both");
  await expect.poll(() => both.runs().length).toBe(2);
  await server.look(both, runs);
  const places = { ...(await server.said()), answers: JSON.stringify(answers) };
  expect(places.page).toContain("create_targetings");
  expect(found(places, GIVEN)).toEqual([]);
});
