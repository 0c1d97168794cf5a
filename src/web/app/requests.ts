import { PATHS, TOKEN_HEADER } from "../paths.ts";
import type { LoginWays, OpenedSession } from "../wire.ts";
import { keepSession, sessionToken } from "./session.ts";
import { outcome } from "./state.ts";

/** What a request came to: the data of its answer, or why it was not carried out. */
export type Answered<Data> = { readonly data: Data } | { readonly message: string; readonly status: number };

/** Reads data from this server. The types are those of the server that the page came from. */
export async function read<Data>(path: string): Promise<Answered<Data>> {
  return answered(() => withSession(path));
}

/** Asks this server to do something. */
export async function send<Data>(path: string, body: unknown = {}): Promise<Answered<Data>> {
  const headers = { "Content-Type": "application/json" };
  return answered(() => withSession(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

/** Sends a request with the session's token; where the session has to be renewed, it is, and the request is sent again. */
export async function withSession(path: string, init: RequestInit = {}): Promise<Response> {
  const sent = () => {
    const headers = new Headers(init.headers);
    headers.set(TOKEN_HEADER, sessionToken() ?? "");
    return fetch(path, { ...init, headers });
  };
  const response = await sent();
  if (response.status !== 401) return response;
  const ways: Partial<LoginWays> = await response.clone().json();
  return ways.renews && (await renewed()) ? sent() : response;
}

let renewing: Promise<boolean> | undefined;

/** Whether the session got another token: once for all requests that need it. */
function renewed(): Promise<boolean> {
  renewing ??= renew().finally(() => {
    renewing = undefined;
  });
  return renewing;
}

async function renew(): Promise<boolean> {
  const answer = await send<OpenedSession>(PATHS.renew);
  if ("data" in answer) keepSession(answer.data.session);
  else if (answer.status === 401) keepSession(undefined);
  return "data" in answer;
}

/** Ends the session, on the server and in this tab. */
export async function logOut(): Promise<void> {
  await send<unknown>(PATHS.logout);
  keepSession(undefined);
  location.reload();
}

/** What was asked for and is not answered yet: who presses a button twice wants it once. */
const underWay = new Set<string>();

/** Does something that a button stands for, and says so, or why it was refused. */
export async function act(path: string, body: unknown, done: string): Promise<boolean> {
  return (await acted<unknown>(path, body, done)) !== undefined;
}

/** The same; gives the answer, and undefined where it was refused, or is under way already. */
export async function acted<Data>(
  path: string,
  body: unknown,
  done: string,
): Promise<{ readonly data: Data } | undefined> {
  const asked = path + JSON.stringify(body);
  if (underWay.has(asked)) return undefined;
  underWay.add(asked);
  outcome.value = "";
  const answer = await send<Data>(path, body);
  underWay.delete(asked);
  outcome.value = "message" in answer ? answer.message : done;
  return "message" in answer ? undefined : answer;
}

/** How long a file stays in memory for the browser to save it, in milliseconds. */
const KEPT_MS = 60_000;

/** Saves a file of this server, which only the session's token opens: so that it is fetched, and saved from memory. */
export async function save(path: string): Promise<void> {
  const failed = (message: string): void => {
    outcome.value = message;
  };
  try {
    const response = await withSession(path);
    if (!response.ok) return failed(messageOf(await response.json(), response.status));
    const [, name = "download"] = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "") ?? [];
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await response.blob());
    link.download = name;
    link.click();
    // Browsers read it a while after the click.
    setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
  } catch (thrown) {
    failed(silence(thrown));
  }
}

async function answered<Data>(request: () => Promise<Response>): Promise<Answered<Data>> {
  try {
    const response = await request();
    const data = await response.json();
    return response.ok ? { data } : { message: messageOf(data, response.status), status: response.status };
  } catch (thrown) {
    return { message: silence(thrown), status: 0 };
  }
}

function silence(thrown: unknown): string {
  return `The server did not answer (${thrown instanceof Error ? thrown.message : thrown}).`;
}

function messageOf(data: unknown, status: number): string {
  const isTold = typeof data === "object" && data !== null && "message" in data && typeof data.message === "string";
  return isTold && "message" in data ? String(data.message) : `The server refused it (${status}).`;
}
