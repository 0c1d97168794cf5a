import { useEffect } from "preact/hooks";
import type { ViewName } from "../wire.ts";
import { announced } from "./announce.ts";
import { Login } from "./login.tsx";
import { logOut } from "./requests.ts";
import { route, VIEW_TITLES } from "./route.ts";
import { hello, link, notice, outcome, waitingRuns } from "./state.ts";
import { Approvals } from "./views/approvals.tsx";
import { Events } from "./views/events.tsx";
import { Faults } from "./views/faults.tsx";
import { Runs } from "./views/runs.tsx";
import { Targetings } from "./views/targetings.tsx";

const VIEWS = { approvals: Approvals, runs: Runs, events: Events, targetings: Targetings, faults: Faults } as const;

/** What is said of a server that does not answer. */
const GONE = {
  lost: "The connection is lost. This page comes back by itself.",
  ended: "The server of this page has ended. You can close the page.",
} as const;

/** The page around its views: the navigation, the one live region, and the view that the address names. */
export function Frame() {
  if (link.value.is === "refused") return <Login ways={link.value.ways} />;
  const { view } = route.value;
  const View = view && VIEWS[view];
  return (
    <>
      <header>
        <strong>targeting-mcp</strong>
        <nav aria-label="Views">
          {hello.value?.views.map((name) => (
            <ViewLink key={name} name={name} />
          ))}
        </nav>
        <span class="about">
          {hello.value?.about}
          {hello.value?.readOnly && ", read-only"}
        </span>
        {hello.value?.logsOut && (
          <button type="button" onClick={logOut}>
            Log out
          </button>
        )}
      </header>
      <LiveRegion />
      <main>{View === undefined ? <h1>{link.value.is === "ended" ? "Ended" : "Connecting…"}</h1> : <View />}</main>
    </>
  );
}

function ViewLink({ name }: { readonly name: ViewName }) {
  const isShown = route.value.view === name;
  const waiting = name === "approvals" ? waitingRuns.value.length : 0;
  return (
    <>
      <a href={`#/${name}`} {...(isShown && { "aria-current": "page" as const })}>
        {VIEW_TITLES[name]}
      </a>
      {waiting > 0 && <span class="count">{waiting} waiting</span>}
    </>
  );
}

/** What screen readers are told: counts, the connection, and what came of the last button. */
function LiveRegion() {
  const { view } = route.value;
  useEffect(() => {
    document.title = view === undefined ? "targeting-mcp" : `${VIEW_TITLES[view]} – targeting-mcp`;
  }, [view]);
  const { is } = link.value;
  return (
    <div class="status" aria-live="polite">
      <p>{announced}</p>
      {(is === "lost" || is === "ended") && <p class="warning">{GONE[is]}</p>}
      {notice.value !== "" && <p class="warning">{notice}</p>}
      <p class="outcome">{outcome}</p>
    </div>
  );
}
