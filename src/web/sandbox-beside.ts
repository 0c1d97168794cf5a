import * as z from "zod";
import type { StreamSource } from "./event-stream.ts";
import { RefusedRequest } from "./page.ts";
import { type Message, PATHS, TOKEN_HEADER, type ViewName } from "./wire.ts";

// Shows the views of a sandbox on the web page of another server. That server passes the requests for them on to the
// page of the sandbox.

/** The user of this machine may do everything in the sandbox (`all`), approvers may only read (`reads`). */
export type SandboxRights = "all" | "reads";

export interface PageSandbox {
  readonly address: string;
  readonly views: readonly ViewName[];
  /** Returns the updates of the sandbox's page. They are read from the sandbox only while a tab shows this page. */
  readonly updates: () => StreamSource<Message>;
  /** Answers a request about the sandbox. Undefined for other requests. */
  answer(request: Request, body: unknown): Promise<Response | undefined>;
}

const VIEWS = {
  all: ["targetings", "events", "faults"],
  reads: ["targetings", "events"],
} as const satisfies Record<SandboxRights, readonly ViewName[]>;
const READS = [PATHS.events, PATHS.targetings];
const CHANGES = [...READS, PATHS.faults, PATHS.reset];

interface SandboxAccess {
  readonly sandbox?: unknown;
  readonly testBench?: { readonly url: () => Promise<string> } | undefined;
}

/** Returns the sandbox of a server. Undefined if there is none or it does not answer. */
export async function findPageSandbox(
  { sandbox, testBench }: SandboxAccess,
  rights: SandboxRights,
): Promise<PageSandbox | undefined> {
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
    // If the sandbox does not answer, the page shows only the runs. The tools report why it does not answer.
    return undefined;
  }
}

/**
 * Returns a function that finds the sandbox once and remembers it. After a failure, a call tries again if the last
 * attempt was at least `FIND_AGAIN_MS` milliseconds ago.
 */
export function findOnce(find: () => Promise<PageSandbox | undefined>, now = Date.now) {
  let finding: Promise<PageSandbox | undefined> | undefined;
  let at = 0;
  return async (): Promise<PageSandbox | undefined> => {
    const found = await finding;
    if (found !== undefined || (finding !== undefined && now() - at < FIND_AGAIN_MS)) return found;
    at = now();
    finding = find();
    return finding;
  };
}

const FIND_AGAIN_MS = 10_000;

/** The web page of the sandbox. This server opens a session there like a browser. No login is needed. */
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

/** Sends a request to the page of the sandbox. If the session has ended, opens another and sends the request again. */
async function sendToPage(page: SandboxPage, path: string, init: RequestInit = {}): Promise<Response> {
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
  if (isPost && rights === "reads")
    throw new RefusedRequest(403, "The sandbox can be changed only on its own machine.");
  const posted = {
    ...{ method: "POST", body: JSON.stringify(body) },
    headers: { "Content-Type": "application/json", Origin: new URL(page.url).origin },
  };
  const answer = await sendToPage(page, pathname + search, isPost ? posted : {}).catch(() => {
    throw new RefusedRequest(502, "The sandbox does not answer.");
  });
  const { status, headers, body: content } = answer;
  // A 401 means that the sandbox refused the session of this server. It is not passed to the browser, which would end
  // the person's own session.
  if (status === 401) throw new RefusedRequest(502, "The sandbox refused the session of this page.");
  const kept = ["content-type", "content-disposition"].flatMap((name) => {
    const value = headers.get(name);
    return value === null ? [] : [[name, value] as const];
  });
  return new Response(content, { status, headers: Object.fromEntries(kept) });
}

const AGAIN_MS = 1000;
/** The maximum number of messages that wait for a browser tab. If there are more, the tab gets everything again. */
const MAX_WAITING = 50;

/** Returns the updates of the sandbox's page. Reads its stream as long as a tab of this page is open. */
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
        if (waiting.length < MAX_WAITING) return true;
        // Reading starts again, and the first messages then contain everything.
        waiting = [];
        return false;
      };
      void follow(page, take, ending.signal);
      return () => ending.abort();
    },
  };
}

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
      const answer = await sendToPage(page, PATHS.stream, { signal });
      for await (const messages of updatesIn(answer)) {
        isBehind = !take(messages);
        if (isBehind) break;
      }
    } catch {
      // The loop tries again after a pause.
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

export function mergeSources(one: StreamSource<Message>, other: StreamSource<Message>): StreamSource<Message> {
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
