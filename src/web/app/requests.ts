import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import {
  type LoginWays,
  type OpenedSession,
  PATHS,
  type RunAction,
  type RunDetail,
  type RunRow,
  TOKEN_HEADER,
} from "../wire.ts";
import { go, outcome, runs } from "./state.ts";

/** The result of a request: the data, or an error message with the HTTP status. Status 0: no answer, or not JSON. */
export type Answered<Data> = { readonly data: Data } | { readonly message: string; readonly status: number };

/** Reads data from this server. Its type is not checked, because the page and the server are of the same version. */
export async function read<Data>(path: string): Promise<Answered<Data>> {
  return answered(() => withSession(path));
}

/** The pause before a list is read again, in milliseconds, so that typing in its search causes few reads. */
export const SEARCH_AFTER_MS = 250;
const AGAIN_MS = 3000;

interface Reading {
  /** A value that differs after each change of the data, so that the data is then read again. */
  readonly version?: unknown;
  readonly afterMs?: number;
  /** Called if the data does not exist. No error is shown then. */
  readonly missing?: () => void;
}

/**
 * Reads data for a component, and again when `path` or `version` changes. Without `path`, reads nothing. Shows an error
 * as the outcome, and tries again if the server fails or does not answer. A late answer never replaces a newer one. The
 * returned signal has the last data, even of an earlier `path`. It is undefined until there is any.
 */
export function useRead<Data>(path: string | undefined, reading: Reading = {}): Signal<Data | undefined> {
  const { version, afterMs = 0, missing } = reading;
  const data = useSignal<Data | undefined>(undefined);
  const now = useRef<{ path?: string | undefined; timer?: number; asked: number; shown: number }>({
    asked: 0,
    shown: 0,
  });
  useEffect(() => {
    const { current } = now;
    current.path = path;
    if (path === undefined) return;
    let failure = "";
    const load = async (): Promise<void> => {
      current.asked += 1;
      const number = current.asked;
      const answer = await read<Data>(path);
      if (current.path !== path || number < current.shown) return;
      current.shown = number;
      if ("data" in answer) {
        data.value = answer.data;
        if (failure !== "" && outcome.peek() === failure) outcome.value = "";
        return;
      }
      const { status, message } = answer;
      if (status === 404 && missing !== undefined) missing();
      else if (failure === "") outcome.value = message;
      failure = message;
      if (number === current.asked && (status === 0 || status >= 500)) loadAfter(AGAIN_MS);
    };
    const loadAfter = (ms: number): void => {
      clearTimeout(current.timer);
      current.timer = window.setTimeout(load, ms);
    };
    loadAfter(data.peek() === undefined ? 0 : afterMs);
    return () => {
      current.path = undefined;
      clearTimeout(current.timer);
    };
  }, [path, version, afterMs, data]);
  return data;
}

export async function send<Data>(path: string, body: unknown = {}): Promise<Answered<Data>> {
  const headers = { "Content-Type": "application/json" };
  return answered(() => withSession(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

/** Sends a request with the session's token. If the server wants it renewed, renews it and sends the request again. */
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

/** Renews the session. Requests that need it at the same time share one renewal. Returns false if it fails. */
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

export async function logOut(): Promise<void> {
  const answer = await send<unknown>(PATHS.logout);
  // If the server could not end the session now, this tab keeps it, so that the person can try again.
  if ("message" in answer && (answer.status === 0 || answer.status >= 500)) {
    outcome.value = answer.message;
    return;
  }
  keepSession(undefined);
  location.reload();
}

/** The requests of buttons that are in progress. Pressing such a button again has no effect. */
const underWay = new Set<string>();

/** Sends the request of a button, and shows `done` or the error. Undefined if it failed or is already in progress. */
export async function act<Data>(path: string, body: unknown, done: string): Promise<Data | undefined> {
  const asked = path + JSON.stringify(body);
  if (underWay.has(asked)) return undefined;
  underWay.add(asked);
  outcome.value = "";
  const answer = await send<Data>(path, body);
  underWay.delete(asked);
  outcome.value = "message" in answer ? answer.message : done;
  return "data" in answer ? answer.data : undefined;
}

/** How long a file stays in memory for the browser to save it, in milliseconds. */
const KEPT_MS = 60_000;

/** Saves a file of the server. The file is fetched first, because a plain link cannot send the session's token. */
export async function save(path: string): Promise<void> {
  const failed = (message: string): void => {
    outcome.value = message;
  };
  try {
    const response = await withSession(path);
    if (!response.ok) return failed(messageOf(await response.json(), response.status));
    const header = response.headers.get("content-disposition") ?? "";
    const [, name = "download"] = /filename\*=UTF-8''(\S+)/.exec(header) ?? /filename="([^"]+)"/.exec(header) ?? [];
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await response.blob());
    link.download = decodeURIComponent(name);
    link.click();
    // The file is removed from memory later, because browsers read it some time after the click.
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
  return data instanceof Object && "message" in data
    ? `${data.message}`
    : `The server refused the request (${status}).`;
}

// The token of the session is stored in this browser tab. It is not in a cookie, because the browser would send a
// cookie to other ports of the host, too. It is never part of an address.

/** The keys in the storage of the tab: the session's token, the state of a login, and the view before the login. */
const SESSION = "session";
const LOGIN = "login";
const PLACE = "place";

/** Returns data that the server has written into the HTML. Undefined if the HTML has no data with this name. */
export function written<Content>(name: "login" | "session", page: ParentNode = document): Content | undefined {
  const content = page.querySelector<HTMLMetaElement>(`meta[name=${name}]`)?.content;
  return content === undefined ? undefined : JSON.parse(decodeURIComponent(content));
}

export function sessionToken(): string | undefined {
  return sessionStorage.getItem(SESSION) ?? undefined;
}

export function keepSession(token: string | undefined): void {
  if (token === undefined) sessionStorage.removeItem(SESSION);
  else sessionStorage.setItem(SESSION, token);
}

/** Stores the state of a login and the current view, until the person returns to this tab. */
export function storeLogin(login: string): void {
  sessionStorage.setItem(LOGIN, login);
  sessionStorage.setItem(PLACE, location.hash);
}

/** Removes and returns what `storeLogin` has stored about the login of this tab: its state, or the view (`place`). */
export function popLogin(what: typeof LOGIN | typeof PLACE): string {
  const stored = sessionStorage.getItem(what) ?? "";
  sessionStorage.removeItem(what);
  return stored;
}

/** The pause before the details of a run are read again, in milliseconds, so that quick changes cause only one read. */
const DETAILS_AFTER_MS = 300;

/** Reads the details of a run, and again after each change of its row. `isAbsent`: the server has no such run. */
export function useDetail(runId: string | undefined) {
  const isAbsent = useSignal(false);
  const path = runId === undefined ? undefined : runPath(runId);
  const detail = useRead<RunDetail>(path, {
    version: JSON.stringify(runs.value.get(runId ?? "")),
    afterMs: DETAILS_AFTER_MS,
    missing: () => {
      isAbsent.value = true;
    },
  });
  return { detail: detail.value, isAbsent: isAbsent.value };
}

/** Returns the path of a run's details; with `part`, the path of one of its lists, files or actions. */
export function runPath(runId: string, part?: string): string {
  return `${PATHS.runs}/${encodeURIComponent(runId)}${part === undefined ? "" : `/${part}`}`;
}

const DONE = {
  approve: "Approved",
  decline: "Declined",
  cancel: "The run is being cancelled",
  undo: "The undo is planned and is waiting for your approval",
  resume: "The run is being resumed",
} as const;

/** Executes an action on a run and shows the result. After `undo`, opens the planned undo, which needs approval. */
export async function actOnRun(run: RunRow, action: RunAction, typed?: string): Promise<void> {
  const { runId, waiting } = run;
  const said = { ...(waiting && { digest: waiting.digest }), ...(waiting?.typed !== undefined && { typed }) };
  const isDecision = action === "approve" || action === "decline";
  const body = isDecision ? said : {};
  const done = `${DONE[action]}${isDecision && waiting ? `: ${waiting.act}` : ""}.`;
  const { hash } = location;
  const answer = await act<{ readonly runId?: string }>(runPath(runId, action), body, done);
  const planned = action === "undo" ? answer?.runId : undefined;
  // If the person has left the view meanwhile, the message is enough.
  if (planned !== undefined && location.hash === hash) go(`#/approvals/${planned}`, done);
}
