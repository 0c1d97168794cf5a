import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { ASKING_WORLDS, type AskingWorld, startAskingServers } from "../support/asking-worlds.ts";
import type { Said } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { SHOWS_VIEWS, type ViewResult } from "../support/view-hosts.ts";

type Client = Awaited<ReturnType<AskingWorld["connect"]>>;

/**
 * The result of a call for each way in which a person can be asked. The page is first, because it also shows runs that
 * wait in a view.
 */
const ALL = {
  page: "approved: page",
  /** The client only opens addresses. Over HTTP, it opens the page. Over stdio, the server opens the page itself. */
  opens: "approved: page",
  /**
   * The client opens addresses and shows forms. Here it declines the address over HTTP, and over stdio it is not asked
   * to open one.
   */
  both: "approved: client",
  view: "approved: view",
  client: "approved: client",
  /** The client answers with something that is not an approval. Nothing is done, and there is no token either. */
  odd: "needs_confirmation",
  token: "approved: token",
  none: "refused",
} as const;
type Channel = keyof typeof ALL;
const CHANNELS = Object.keys(ALL).filter((name): name is Channel => Object.hasOwn(ALL, name));
/** For runs that no view shows. There the next way is used, which is the token. */
const NOT_IN_VIEWS = { ...ALL, view: "approved: token" } as const;

/** For each call that needs approval: the result for each way in which a person can be asked. */
const TABLE: Readonly<Record<string, Readonly<Record<Channel, string>>>> = {
  delete_targeting: ALL,
  delete_options: ALL,
  "update_contexts that empties an option": ALL,
  "apply_plan of plan_targeting that empties an option": ALL,
  "apply_plan of undo_run that deletes": ALL,
  "resume_run of an old deletion": NOT_IN_VIEWS,
  "run_event_tests at the live endpoint": NOT_IN_VIEWS,
};
const ROWS = Object.keys(TABLE);

/** The requests that are sent when all calls of a channel are approved. */
const AGREED = [
  ...["deleteOptions", "deleteOptions", "deleteOptions", "deleteTargetings"],
  ...["trackEvent", "updateOptions", "updateOptions"],
];

/** A call that needs approval, and the arguments that are needed in addition to the token. */
interface Asking {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly besideToken?: Readonly<Record<string, unknown>>;
}

const seeded = z.object({ targetings: z.array(z.string()), options: z.array(z.string()) });
const made = z.looseObject({ runId: z.string() });
const suite = z.looseObject({ suiteId: z.string() });
const told = z.looseObject({
  status: z.string().optional(),
  approval: z.looseObject({ decision: z.string(), channel: z.string().optional(), by: z.string() }).optional(),
  confirmation: z.looseObject({ token: z.string().optional() }).optional(),
});

/** Creates a targeting for each call of a channel, most of them with an option. */
async function prepared(
  { service, stateDir }: AskingWorld,
  free: Client,
  channel: Channel,
): Promise<readonly Asking[]> {
  const seed = async (path: Readonly<Record<string, readonly object[]>>) =>
    seeded.parse(await service.control("POST", "/seed", path));
  const { targetings } = await seed({ targetings: ROWS.map((_, row) => ({ name: `Targeting ${row} of ${channel}` })) });
  const [gone = "", , , planned = "", undone = ""] = targetings;
  const { options } = await seed({
    options: targetings.map((targeting) => ({ targeting, name: "Running", contexts: ["r"] })),
  });
  const runIdOf = async (tool: string, args: Record<string, unknown>) =>
    made.parse((await free.call(tool, args)).structuredContent).runId;
  const desired = { version: 1, targeting: { _id: planned }, options: [{ name: "Running", contexts: [] }] };
  const added = { targetingId: undone, items: [{ name: "Rowing", contexts: ["o"] }] };
  const [plan, wayBack, cut, tests] = await Promise.all([
    runIdOf("plan_targeting", { desired }),
    runIdOf("bulk_add_options", added).then((runId) => runIdOf("undo_run", { runId })),
    runIdOf("delete_options", { ids: [options[5]] }),
    free.call("generate_event_tests", { eventNames: ["app_open"], kinds: ["minimal"], uid: `user-${channel}` }),
  ]);
  await makeOlder(stateDir, cut);
  const { suiteId } = suite.parse(tests.structuredContent);
  return [
    { tool: "delete_targeting", args: { ids: [gone] } },
    { tool: "delete_options", args: { ids: [options[1]] } },
    { tool: "update_contexts", args: { items: [{ _id: options[2], set: [] }] } },
    { tool: "apply_plan", args: { runId: plan } },
    { tool: "apply_plan", args: { runId: wayBack } },
    { tool: "resume_run", args: { runId: cut }, besideToken: { runId: cut } },
    { tool: "run_event_tests", args: { suiteId, target: "configured" } },
  ];
}

/** Makes a run look eleven minutes older. An approval counts only for ten minutes. */
async function makeOlder(stateDir: string, runId: string): Promise<void> {
  const file = join(stateDir, "runs", runId, "run.json");
  const header = z.looseObject({ createdAt: z.number() }).parse(JSON.parse(await readFile(file, "utf8")));
  await writeFile(file, JSON.stringify({ ...header, createdAt: header.createdAt - 660_000 }));
}

const journal = z.object({
  requests: z.array(z.looseObject({ operation: z.string().nullable(), method: z.string() })),
});

/** Returns a function that returns the write operations since its last call, sorted. */
async function writesTo({ service }: AskingWorld) {
  const requests = async () => journal.parse(await service.control("GET", "/requests")).requests;
  let seen = (await requests()).length;
  return async (): Promise<readonly string[]> => {
    const all = await requests();
    const fresh = all.slice(seen);
    seen = all.length;
    return fresh.flatMap(({ operation, method }) => (method === "GET" ? [] : [operation ?? "unknown"])).sort();
  };
}

/**
 * Makes calls, and waits until all of them wait for approval. Returns a function that approves all of them and returns
 * their results.
 */
type Ask = (calls: readonly Asking[]) => Promise<() => Promise<readonly string[]>>;

/** Patterns of secrets with which a person logs in or decides. A model must not see them. */
const SECRETS = /requestState|inputRequests|elicitationId|"secret"|\/open\/|[?&#](?:code|token|session)=/;

/** Makes calls. Checks that the model sees no secrets in their answers. */
const callsOf = (client: Client, calls: readonly Asking[]) =>
  calls.map(async ({ tool, args }) => {
    const answer = await client.call(tool, { ...args });
    expect(JSON.stringify([answer.content, answer.structuredContent])).not.toMatch(SECRETS);
    return answer;
  });

/** Returns how the person approved, as the answer says; if nothing was executed, the text of the answer. */
function askedOf({ structuredContent, content, isError }: ViewResult): string {
  const { approval } = told.parse(structuredContent ?? {});
  if (isError === true || approval === undefined) return JSON.stringify(content);
  return `${approval.decision}: ${approval.channel}`;
}

async function inClient({ connect }: AskingWorld): Promise<Ask> {
  let asked = 0;
  let agree = (): void => undefined;
  const agreed = new Promise<void>((resolve) => {
    agree = resolve;
  });
  const client = await connect("token", {
    async answer() {
      asked += 1;
      await agreed;
      return { action: "accept", content: { confirm: true } };
    },
  });
  return async (calls) => {
    const answers = Promise.all(callsOf(client, calls));
    await expect.poll(() => asked).toBe(calls.length);
    return async () => {
      agree();
      return (await answers).map(askedOf);
    };
  };
}

/** The runs that the page has shown in earlier tests. All servers of a world show the runs of one state folder. */
const shown = new Set<string>();

async function onPage({ connect, person: come }: AskingWorld, given = {}): Promise<Ask> {
  const client = await connect("page", given);
  return async (calls) => {
    const answers = Promise.all(callsOf(client, calls));
    const person = await come(client);
    const waiting = () => person.runs().filter((run) => run.waiting !== undefined && !shown.has(run.runId));
    await expect.poll(() => waiting().length).toBe(calls.length);
    const runIds = waiting().map(({ runId }) => runId);
    for (const runId of runIds) shown.add(runId);
    return async () => {
      await Promise.all(runIds.map((runId) => person.press(runId, "approve")));
      return (await answers).map(askedOf);
    };
  };
}

const opening = z.looseObject({ mode: z.literal("url"), url: z.string() });

async function onOpenedPage(world: AskingWorld): Promise<Ask> {
  const { connect, person: come, isHttp } = world;
  const never = () => {
    throw new Error("no address is to be opened over stdio");
  };
  if (!isHttp) return onPage(world, { elicitation: { modes: { url: {} }, says: never } });
  const runIds: string[] = [];
  const says = (question: unknown) => {
    runIds.push(opening.parse(question).url.split("/").at(-1) ?? "");
    return { action: "accept" } as const;
  };
  const client = await connect("page", { elicitation: { modes: { url: {} }, says } });
  return async (calls) => {
    const answers = Promise.all(callsOf(client, calls));
    await expect.poll(() => new Set(runIds).size).toBe(calls.length);
    const person = await come(client);
    const isWaiting = (id: string) => person.runs().some(({ runId, waiting }) => runId === id && waiting !== undefined);
    await expect.poll(() => runIds.every(isWaiting)).toBe(true);
    return async () => {
      await Promise.all(runIds.map((runId) => person.press(runId, "approve")));
      return (await answers).map(askedOf);
    };
  };
}

/** The client declines to open the page, and its person approves in the form that follows. */
async function afterOpening({ connect, isHttp }: AskingWorld): Promise<Ask> {
  const asked = { url: 0, form: 0 };
  let agree = (): void => undefined;
  const agreed = new Promise<void>((resolve) => {
    agree = resolve;
  });
  const client = await connect("page", {
    elicitation: {
      modes: { url: {}, form: {} },
      async says(question) {
        const isUrl = opening.safeParse(question).success;
        asked[isUrl ? "url" : "form"] += 1;
        if (isUrl) return { action: "decline" };
        await agreed;
        return { action: "accept", content: { confirm: true } };
      },
    },
  });
  return async (calls) => {
    const answers = Promise.all(callsOf(client, calls));
    await expect.poll(() => asked).toEqual({ url: isHttp ? calls.length : 0, form: calls.length });
    return async () => {
      agree();
      return (await answers).map(askedOf);
    };
  };
}

/**
 * The calls have already been answered when the person decides: in a view if the answer has a decision, else by the
 * token.
 */
async function afterAnswer({ connect }: AskingWorld, given: Parameters<AskingWorld["connect"]>[1]): Promise<Ask> {
  const client = await connect("token", given);
  const decide = async ({ structuredContent, _meta }: ViewResult, { tool, besideToken }: Asking): Promise<string> => {
    const { confirmation, status } = told.parse(structuredContent);
    expect(status).toBe("needs_confirmation");
    const decision = _meta?.["targeting-mcp/decision"];
    if (decision === undefined)
      return askedOf(await client.call(tool, { ...besideToken, confirmation: confirmation?.token }));
    expect(confirmation?.token).toBeUndefined();
    await client.call("decide_run", { ...decision, decision: "approve" });
    for (;;) {
      const answer = await client.call("get_run", { runId: decision.runId, waitMs: 9000 });
      if (answer.structuredContent?.status !== "running") return askedOf(answer);
    }
  };
  return async (calls) => {
    const answers = await Promise.all(callsOf(client, calls));
    return () => Promise.all(calls.map((call, row) => decide(answers[row] ?? { content: [] }, call)));
  };
}

/** Answers of a client that are not an approval. */
const ODD: readonly Said[] = [
  { action: "accept" },
  { action: "accept", content: {} },
  { action: "accept", content: { confirm: "true" } },
  { action: "accept", content: { confirm: false } },
  { action: "accept", content: { approve: true } },
  { action: "cancel" },
  { action: "cancel", content: { confirm: true } },
];

async function answeredOddly({ connect }: AskingWorld): Promise<Ask> {
  let asked = 0;
  const answer = () => {
    asked += 1;
    return ODD[asked % ODD.length] ?? { action: "cancel" as const };
  };
  const client = await connect("token", { answer });
  return async (calls) => {
    const answers = await Promise.all(callsOf(client, calls));
    expect(asked).toBeGreaterThanOrEqual(calls.length);
    return async () =>
      answers.map(({ structuredContent, content }) => {
        const { status, approval, confirmation } = told.parse(structuredContent ?? {});
        const isOpen = approval === undefined && confirmation?.token === undefined;
        return isOpen && status !== undefined ? status : JSON.stringify(content);
      });
  };
}

async function nowhere({ connect }: AskingWorld): Promise<Ask> {
  const client = await connect("strict");
  return async (calls) => {
    const answers = await Promise.all(callsOf(client, calls));
    return async () =>
      answers.map(({ isError, content }) => {
        const said = JSON.stringify(content);
        return isError === true && said.includes("needs approval") ? "refused" : said;
      });
  };
}

const ASKS = {
  page: (world) => onPage(world),
  opens: onOpenedPage,
  both: afterOpening,
  view: (world) => afterAnswer(world, { extensions: SHOWS_VIEWS }),
  client: inClient,
  odd: answeredOddly,
  token: (world) => afterAnswer(world, {}),
  none: nowhere,
} as const satisfies Record<Channel, (world: AskingWorld) => Promise<Ask>>;

/** Returns the tools that take a confirmation token. */
async function confirmedTools(client: Client): Promise<ReadonlySet<string>> {
  const tools = await client.tools();
  const takesIt = tools.filter(({ inputSchema: { properties = {} } }) => "confirmation" in properties);
  return new Set(takesIt.map(({ name }) => name));
}

const servers = perFile(startAskingServers);

test.for(Object.entries(ASKING_WORLDS))("every call that needs a yes waits for it over %s", async ([, start]) => {
  const world = await start(servers);
  const free = await world.connect("off");
  expect(await confirmedTools(free)).toEqual(new Set(ROWS.map((row) => row.split(" ")[0])));
  await world.service.control("POST", "/faults", {
    faults: [{ kind: "status", status: 403, on: "deleteOptions", times: CHANNELS.length }],
  });
  const columns = await Promise.all(
    CHANNELS.map(async (channel) => {
      const [ask, calls] = await Promise.all([ASKS[channel](world), prepared(world, free, channel)]);
      return { channel, ask, calls };
    }),
  );
  const written = await writesTo(world);
  const waiting: (() => Promise<readonly string[]>)[] = [];
  for (const { ask, calls } of columns) waiting.push(await ask(calls));
  expect(await written()).toEqual([]);
  const outcomes = await Promise.all(waiting.map((agree) => agree()));
  const table = ROWS.map((name, row) => [
    name,
    Object.fromEntries(columns.map(({ channel }, column) => [channel, outcomes[column]?.[row]])),
  ]);
  expect(Object.fromEntries(table)).toEqual(TABLE);
  const agreed = CHANNELS.filter((channel) => channel !== "none" && channel !== "odd");
  expect(await written()).toEqual(agreed.flatMap(() => AGREED).sort());
});
