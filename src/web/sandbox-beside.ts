import * as z from "zod";
import { pageAnswer, refusalAnswer } from "./answers.ts";
import type { StreamSource } from "./event-stream.ts";
import { type Message, PATHS, TOKEN_HEADER, type ViewName } from "./wire.ts";

// The sandbox of a server on the page of its runs: its views show what the sandbox's own page shows, and come from there.

/** What a person may do with the sandbox: everything on this machine, and elsewhere only look. */
export type SandboxRights = "all" | "reads";

/** A sandbox whose views a page shows beside its runs. */
export interface SandboxBeside {
  /** Its host and port. */
  readonly address: string;
  readonly views: readonly ViewName[];
  /** What its page receives, for as long as a page is open. */
  readonly updates: () => StreamSource<Message>;
  /** Answers a request of the page that is about the sandbox; undefined where it is about something else. */
  answer(request: Request, body: unknown): Promise<Response | undefined>;
}

const VIEWS = {
  all: ["targetings", "events", "faults"],
  reads: ["targetings", "events"],
} as const satisfies Record<SandboxRights, readonly ViewName[]>;
const READS = [PATHS.events, PATHS.targetings];
const CHANGES = [...READS, PATHS.faults, PATHS.reset];

/** What a server knows of the sandbox that it can look at, and of where that listens. */
interface SandboxOf {
  readonly sandbox?: unknown;
  readonly testBench?: { readonly url: () => Promise<string> } | undefined;
}

/** The sandbox of a server, where there is one that can be looked at from here; undefined where not. */
export async function sandboxBeside(
  { sandbox, testBench }: SandboxOf,
  rights: SandboxRights,
): Promise<SandboxBeside | undefined> {
  if (sandbox === undefined || testBench === undefined) return undefined;
  try {
    const url = await testBench.url();
    const page = pageOf(url);
    await page.token();
    return {
      ...{ address: new URL(url).host, views: VIEWS[rights] },
      updates: () => updatesOf(page, rights),
      answer: (request, body) => answerOf(page, rights, request, body),
    };
  } catch {
    // Without its sandbox the page still shows its runs; the tools say why it cannot be reached.
    return undefined;
  }
}

/** Finds the sandbox once, and again only where it was not found and some time has passed. */
export function whileFound(find: () => Promise<SandboxBeside | undefined>, now = Date.now) {
  let finding: Promise<SandboxBeside | undefined> | undefined;
  let at = 0;
  return async (): Promise<SandboxBeside | undefined> => {
    const found = await finding;
    if (found !== undefined || (finding !== undefined && now() - at < FIND_AGAIN_MS)) return found;
    at = now();
    finding = find();
    return finding;
  };
}

const FIND_AGAIN_MS = 10_000;

/** The page of a sandbox, which gives each session to this machine. */
interface SandboxPage {
  readonly url: string;
  token(isOver?: string): Promise<string>;
}

function pageOf(url: string): SandboxPage {
  let known: Promise<string> | undefined;
  let given = "";
  return {
    url,
    token(isOver) {
      if (known === undefined || isOver === given)
        known = sessionOf(url).then((token) => {
          given = token;
          return token;
        });
      known.catch(() => {
        known = undefined;
      });
      return known;
    },
  };
}

async function sessionOf(url: string): Promise<string> {
  const text = await (await fetch(new URL(PATHS.page, url))).text();
  const [, content = ""] = /<meta name="session" content="([^"]*)">/.exec(text) ?? [];
  return z.string().parse(JSON.parse(decodeURIComponent(content)));
}

/** Asks the sandbox's page with its token, and once more where that is over, since the sandbox started again. */
async function asked(page: SandboxPage, path: string, init: RequestInit = {}): Promise<Response> {
  const token = await page.token();
  const send = (by: string) => {
    const headers = new Headers(init.headers);
    headers.set(TOKEN_HEADER, by);
    return fetch(new URL(path, page.url), { ...init, headers });
  };
  const answer = await send(token);
  return answer.status === 401 ? send(await page.token(token)) : answer;
}

async function answerOf(
  page: SandboxPage,
  rights: SandboxRights,
  request: Request,
  body: unknown,
): Promise<Response | undefined> {
  const { pathname, search } = new URL(request.url);
  const isOf = (paths: readonly string[]): boolean =>
    paths.some((path) => pathname === path || pathname.startsWith(`${path}/`));
  const isPost = request.method === "POST";
  if (!isOf(isPost ? CHANGES : READS)) return undefined;
  if (isPost && rights === "reads") return refusalAnswer(403, "The sandbox is changed on its own machine alone.");
  const init = isPost
    ? {
        ...{ method: "POST", body: JSON.stringify(body) },
        headers: { "Content-Type": "application/json", Origin: new URL(page.url).origin },
      }
    : {};
  try {
    const { status, headers, body: content } = await asked(page, pathname + search, init);
    // The session of the person is another one: it is not over.
    if (status === 401) return refusalAnswer(502, "The sandbox refused the session of this page.");
    const kept = ["content-type", "content-disposition"].flatMap((name) => {
      const value = headers.get(name);
      return value === null ? [] : [[name, value] as const];
    });
    return pageAnswer(content, { status, headers: Object.fromEntries(kept) });
  } catch (thrown) {
    return refusalAnswer(502, `The sandbox did not answer (${thrown instanceof Error ? thrown.message : thrown}).`);
  }
}

/** After an end of its stream the sandbox is asked again so long later, in milliseconds. */
const AGAIN_MS = 1000;
/** The most updates that wait for a page that does not read; then it gets everything again. */
const MOST_WAITING = 50;

/** Follows the stream of the sandbox's page for as long as this page is open. */
function updatesOf(page: SandboxPage, rights: SandboxRights): StreamSource<Message> {
  let waiting: Message[] = [];
  let count = 0;
  return {
    since() {
      const messages = waiting;
      waiting = [];
      return { messages, position: String(count) };
    },
    watch(changed) {
      const ending = new AbortController();
      const take = (messages: readonly Message[]): boolean => {
        waiting.push(...messages.flatMap((message) => passedOn(message, rights)));
        count += 1;
        changed();
        return waiting.length < MOST_WAITING;
      };
      void follow(page, take, ending.signal);
      return () => ending.abort();
    },
  };
}

/** A message of the sandbox's page as this page has it. */
function passedOn(message: Message, rights: SandboxRights): readonly Message[] {
  if (message.kind === "hello") return [];
  return [message.kind === "sandbox" && rights === "reads" ? { ...message, readOnly: true } : message];
}

async function follow(
  page: SandboxPage,
  take: (messages: readonly Message[]) => boolean,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    let isBehind = false;
    try {
      const answer = await asked(page, PATHS.stream, { signal });
      for await (const messages of updatesIn(answer)) {
        isBehind = !take(messages);
        if (isBehind) break;
      }
    } catch {
      // It is asked again.
    }
    if (!signal.aborted && !isBehind) take([{ kind: "sandbox", address: page.url, appKey: "", isLost: true }]);
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS).unref());
  }
}

async function* updatesIn({ body }: Response): AsyncGenerator<readonly Message[]> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body ?? []) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const [, data] = /^data: (.*)$/m.exec(part) ?? [];
      const messages: readonly Message[] = data === undefined ? [] : JSON.parse(data);
      if (messages.length > 0) yield messages;
    }
  }
}

/** What two sources tell, as one. */
export function bothOf(one: StreamSource<Message>, other: StreamSource<Message>): StreamSource<Message> {
  return {
    async since(position) {
      const [first, second] = (position ?? "").split("|");
      const [its, others] = await Promise.all([one.since(first || undefined), other.since(second || undefined)]);
      return {
        messages: [...its.messages, ...others.messages],
        position: `${its.position}|${others.position}`,
      };
    },
    watch(changed) {
      const ends = [one.watch(changed), other.watch(changed)];
      return () => {
        for (const end of ends) end();
      };
    },
  };
}
