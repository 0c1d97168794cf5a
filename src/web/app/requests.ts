import { signal } from "@preact/signals";
import {
  type LoginWays,
  type OpenedSession,
  PATHS,
  type RunAction,
  type RunDetail,
  type RunRow,
  TOKEN_HEADER,
} from "../wire.ts";
import { visible } from "./parts.tsx";
import { go, outcome, runs } from "./state.ts";

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
async function acted<Data>(path: string, body: unknown, done: string): Promise<{ readonly data: Data } | undefined> {
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

// The secret of the session. It lives in this tab of this very origin: no other port of the host can read it, as it could
// a cookie, and it stands in no address.

/** Where a tab keeps its session, and what a login at the authorization server began with. */
const SESSION = "session";
const LOGIN = "login";
const PLACE = "place";

/** What the server wrote into the page. */
export function written<Content>(name: "login" | "session", page: ParentNode = document): Content | undefined {
  const content = page.querySelector<HTMLMetaElement>(`meta[name=${name}]`)?.content;
  return content === undefined ? undefined : JSON.parse(decodeURIComponent(content));
}

/** The token of the session; undefined where there is none. */
export function sessionToken(): string | undefined {
  return sessionStorage.getItem(SESSION) ?? undefined;
}

/** Keeps the token of a session from now on; undefined ends it. */
export function keepSession(token: string | undefined): void {
  if (token === undefined) sessionStorage.removeItem(SESSION);
  else sessionStorage.setItem(SESSION, token);
}

/** Keeps what a login began with, and the view that it began in, until the person is back in this tab. */
export function keepLogin(login: string): void {
  sessionStorage.setItem(LOGIN, login);
  sessionStorage.setItem(PLACE, location.hash);
}

/** The view in which the login of this tab began, once. */
export function takePlace(): string {
  const place = sessionStorage.getItem(PLACE) ?? "";
  sessionStorage.removeItem(PLACE);
  return place;
}

/** What the login of this tab began with, once. */
export function takeLogin(): string {
  const login = sessionStorage.getItem(LOGIN) ?? "";
  sessionStorage.removeItem(LOGIN);
  return login;
}

/** What is known of the run that is shown, beyond its row. */
export const detail = signal<RunDetail | undefined>(undefined);

/** The ID of a run that is neither in the list nor known to the server. */
export const absent = signal("");

/** How often what is beneath the row of a running run is read again. */
const EVERY_MS = 1000;
/** The run whose detail is wanted, and whether a read of one is under way or was a moment ago. */
let wanted: Pick<RunRow, "runId"> | undefined;
let isBusy = false;
/** The row for which it was read last: every update of the stream brings all rows. */
let looked = "";

/** Reads what is beneath the row of a run, and reads it again as the row changes. */
export function look(run: Pick<RunRow, "runId">): void {
  const row = JSON.stringify(run);
  if (row === looked) return;
  looked = row;
  wanted = run;
  if (!isBusy) void readWanted();
}

async function readWanted(): Promise<void> {
  const run = wanted;
  if (run === undefined) return;
  wanted = undefined;
  isBusy = true;
  const answer = await read<RunDetail>(`${PATHS.runs}/${encodeURIComponent(run.runId)}`);
  if ("data" in answer) detail.value = answer.data;
  else if (!runs.peek().has(run.runId)) absent.value = run.runId;
  else {
    outcome.value = answer.message;
    looked = "";
  }
  await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  isBusy = false;
  await readWanted();
}

const DONE = {
  approve: "Approved",
  decline: "Declined",
  cancel: "The run is being cancelled",
  undo: "The undo is planned, and waits for your approval",
  resume: "The run is being resumed",
} as const;

const MOST_LETTERS = 120;

/** Does what a run's button says, and says of which run. An undo leads to its plan, which then waits for an approval. */
export async function actOnRun(run: RunRow, action: RunAction, typed?: string): Promise<void> {
  const { runId, title, waiting } = run;
  const said = { ...(waiting && { digest: waiting.digest }), ...(waiting?.typed !== undefined && { typed }) };
  const body = action === "approve" || action === "decline" ? said : {};
  const path = `${PATHS.runs}/${encodeURIComponent(runId)}/${action}`;
  const done = `${DONE[action]}: ${visible(title.slice(0, MOST_LETTERS))}.`;
  const answer = await acted<{ readonly runId?: string }>(path, body, done);
  const planned = action === "undo" ? answer?.data.runId : undefined;
  if (planned !== undefined) go(`#/approvals/${planned}`, done);
}
