import { render } from "preact";
import { PATHS } from "../paths.ts";
import type { LoginWays, OpenedSession } from "../wire.ts";
import { Frame } from "./frame.tsx";
import { send } from "./requests.ts";
import { noteAddress } from "./route.ts";
import { keepSession, sessionToken, takeLogin, takePlace, written } from "./session.ts";
import { link } from "./state.ts";
import { follow } from "./stream.ts";

const { pathname, search } = location;
render(<Frame />, document.body);
if (pathname.startsWith(PATHS.open)) await openWith(PATHS.redeem, { code: pathname.slice(PATHS.open.length) });
else if (pathname === PATHS.callback) await openWith(PATHS.callback, { query: search.slice(1), login: takeLogin() });
else await start();

/** Opens a session with what brought the person here, which works once and so leaves the address. */
async function openWith(path: string, brought: unknown): Promise<void> {
  const answer = await send<OpenedSession>(path, brought);
  // The address may name the view in which the person is needed.
  const place = takePlace();
  history.replaceState(null, "", PATHS.page + (location.hash || place));
  noteAddress();
  if ("message" in answer) {
    link.value = { is: "refused", ways: { ...written<LoginWays>("login"), message: answer.message } };
    return;
  }
  keepSession(answer.data.session);
  await follow();
}

/** Goes on with the session of this tab, or with the one that a sandbox gives to each page that is loaded. */
async function start(): Promise<void> {
  const given = written<string>("session");
  if (given !== undefined) keepSession(given);
  const ways = written<LoginWays>("login");
  if (sessionToken() === undefined && ways !== undefined) link.value = { is: "refused", ways };
  else await follow();
}
