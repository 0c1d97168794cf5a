import { batch } from "@preact/signals";
import { render } from "preact";
import type { EventsMessage } from "../sandbox-wire.ts";
import { type LoginWays, type Message, type OpenedSession, PATHS } from "../wire.ts";
import { Frame } from "./frame.tsx";
import { keepSession, popLogin, send, sessionToken, withSession, written } from "./requests.ts";
import {
  clockAhead,
  events,
  eventsAge,
  faults,
  hello,
  link,
  MAX_EVENTS,
  metrics,
  noteAddress,
  notice,
  runs,
  sandbox,
  targetings,
  verdicts,
} from "./state.ts";

/**
 * Opens a session with the code of a one-time link or the query of a login, and follows the stream. If it cannot,
 * shows the login. Removes these secrets from the address.
 */
async function openSessionWith(path: string, brought: unknown): Promise<void> {
  const answer = await send<OpenedSession>(path, brought);
  // The address may name a view or contain a code. The view is shown afterwards; the code is removed.
  const place = popLogin("place");
  history.replaceState(null, "", PATHS.page + (location.hash || place));
  noteAddress();
  if ("message" in answer) {
    link.value = { is: "refused", ways: { ...written<LoginWays>("login"), message: answer.message } };
    return;
  }
  keepSession(answer.data.session);
  await follow();
}

/** Continues the session of this browser tab. The page of a sandbox already contains the token of a new session. */
async function start(): Promise<void> {
  const given = written<string>("session");
  if (given !== undefined) keepSession(given);
  const ways = written<LoginWays>("login");
  if (sessionToken() === undefined && ways !== undefined) link.value = { is: "refused", ways };
  else await follow();
}

const PAUSE_MS = 1000;
/** After this many failed attempts to reconnect, the server counts as ended, unless another one will replace it. */
const TRIES = 3;
/** A stream without data for this many milliseconds counts as broken. Servers send a comment every 10 seconds. */
const SILENCE_MS = 25_000;

/** Reads the server's stream until the server ends or refuses the session. Stores the connection's state in `link`. */
export async function follow(): Promise<void> {
  let position: string | undefined;
  for (let failures = 0; ; failures += 1) {
    const answer = await opened(position);
    if (answer?.ok) {
      failures = 0;
      link.value = { is: "live" };
      position = await readUpdates(answer, position);
    } else if (answer?.status === 401 && !(await resumeSession(answer))) {
      return;
    }
    if (failures >= TRIES && hello.value?.returns !== true) {
      link.value = { is: "ended" };
      return;
    }
    if (link.value.is === "live") link.value = { is: "lost" };
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** Opens the stream. Returns undefined if the server does not answer. */
async function opened(position: string | undefined): Promise<Response | undefined> {
  try {
    return await withSession(PATHS.stream, { headers: position === undefined ? {} : { "Last-Event-ID": position } });
  } catch (thrown) {
    if (thrown instanceof TypeError) return undefined;
    throw thrown;
  }
}

/**
 * Called when the server has refused the session. Returns whether to connect again: with the same session if it may
 * still be renewed, or with a new one if the server is a sandbox. Otherwise removes the session and shows the login.
 */
async function resumeSession(answer: Response): Promise<boolean> {
  const ways: LoginWays = await answer.json();
  if (ways.renews && sessionToken() !== undefined) return true;
  keepSession(undefined);
  if (written("session") !== undefined) {
    const page = await (await fetch(PATHS.page)).text();
    keepSession(written("session", new DOMParser().parseFromString(page, "text/html")));
    return true;
  }
  link.value = { is: "refused", ways };
  return false;
}

/** Applies the updates of a stream until it ends or breaks. Returns the position of the last one, otherwise `from`. */
async function readUpdates(answer: Response, from: string | undefined): Promise<string | undefined> {
  let position = from;
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  while (reader !== undefined) {
    const timer = setTimeout(() => reader.cancel(), SILENCE_MS);
    const text = await reader.read().then(
      ({ value }) => value,
      () => undefined,
    );
    clearTimeout(timer);
    if (text === undefined) break;
    const parts = (pending + text).split("\n\n");
    pending = parts.pop() ?? "";
    for (const part of parts) position = applyUpdate(part) ?? position;
  }
  return position;
}

/** Applies an update of the stream to the state, in one step. Returns the position of the update, if it has one. */
function applyUpdate(text: string): string | undefined {
  const fields = new Map(
    text.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
  );
  const data = fields.get("data");
  if (data === undefined) return undefined;
  const messages: readonly Message[] = JSON.parse(data);
  batch(() => {
    for (const message of messages) applyMessage(message);
  });
  return fields.get("id");
}

function applyMessage(message: Message): void {
  switch (message.kind) {
    case "hello":
      hello.value = message;
      break;
    case "notice":
      notice.value = message.text;
      break;
    case "runs":
      runs.value = new Map(message.runs.map((run) => [run.runId, run]));
      break;
    case "sandbox":
      sandbox.value = message;
      break;
    case "events":
      applyEvents(message);
      break;
    case "targetings":
      targetings.value = message;
      break;
    case "faults":
      faults.value = message;
      break;
  }
}

function applyEvents(message: EventsMessage): void {
  const { whole, events: arrived, counts, histogram } = message;
  events.value = [...arrived.toReversed(), ...(whole ? [] : events.value)].slice(0, MAX_EVENTS);
  if (whole) eventsAge.value += 1;
  verdicts.value = counts;
  metrics.value = message;
  clockAhead.value = histogram.now - Date.now();
}

// The page starts here. This is at the end of the file, because it uses constants of the whole file.
const { pathname, search } = location;
render(<Frame />, document.body);
if (pathname.startsWith(PATHS.open)) await openSessionWith(PATHS.redeem, { code: pathname.slice(PATHS.open.length) });
else if (pathname === PATHS.callback)
  await openSessionWith(PATHS.callback, { query: search.slice(1), login: popLogin("login") });
else await start();
