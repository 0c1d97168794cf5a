import { render } from "preact";
import { PATHS } from "../paths.ts";
import { Frame } from "./frame.tsx";
import { startView } from "./host/run-view.tsx";
import { send } from "./requests.ts";
import { link } from "./state.ts";
import { follow } from "./stream.ts";

const { pathname } = location;
const login = document.querySelector<HTMLMetaElement>("meta[name=login]")?.content;
// The same script shows a run within a host (MCP Apps): the document that the host is given says so.
const isView = "view" in document.documentElement.dataset;
if (!isView) render(<Frame />, document.body);
if (isView) await startView();
else if (pathname.startsWith(PATHS.open)) await redeem(pathname.slice(PATHS.open.length));
else if (login !== undefined) link.value = { is: "refused", ways: JSON.parse(decodeURIComponent(login)) };
else if (pathname === PATHS.callback) location.replace(PATHS.page);
else await follow();

/** Turns the code of a link, which works once, into a session, and goes on to the page. */
async function redeem(code: string): Promise<void> {
  const answer = await send<unknown>(PATHS.redeem, { code });
  if ("message" in answer) link.value = { is: "refused", ways: { message: answer.message } };
  else location.replace(PATHS.page);
}
