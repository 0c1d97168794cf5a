import { useSignal } from "@preact/signals";
import type { ComponentChildren, TargetedSubmitEvent } from "preact";
import { useEffect, useRef } from "preact/hooks";
import {
  type Hello,
  type IssuerLogin,
  type LoginWays,
  type OpenedSession,
  PATHS,
  type ShownEnvironment,
  type ViewName,
} from "../wire.ts";
import { Approvals } from "./approvals.tsx";
import { Events } from "./events.tsx";
import { Faults, removeAll } from "./faults.tsx";
import { useKeys } from "./keys.ts";
import { Overview } from "./overview.tsx";
import { Empty, Text } from "./parts.tsx";
import { number } from "./plain-words.ts";
import { keepSession, logOut, send, storeLogin } from "./requests.ts";
import { Runs } from "./runs.tsx";
import {
  announced,
  faults,
  hasEnded,
  hello,
  isConnected,
  isSandboxThere,
  link,
  notice,
  openRuns,
  outcome,
  route,
  sandbox,
  set,
  VIEW_TITLES,
} from "./state.ts";
import { Targetings } from "./targetings.tsx";

const VIEWS: Readonly<Record<ViewName, () => ComponentChildren>> = {
  overview: Overview,
  approvals: Approvals,
  runs: Runs,
  targetings: Targetings,
  events: Events,
  faults: Faults,
};
/** CSS classes of special layouts. `panes`: panes fill the window. `full`: list and pane use the full width. */
const LAYOUTS: Readonly<Partial<Record<ViewName, string>>> = { approvals: "panes", events: "full", targetings: "full" };

/** How to open the page again after its server has ended. */
const REOPENING = (
  <>
    Ask your agent to make its change again: the page then opens by itself. To open the page without an agent, run{" "}
    <code>targeting-mcp page</code>.
  </>
);

/** How long the result of an action is shown, in milliseconds: `SHOWN_MS` and `SHOWN_MS_PER_LETTER` for each letter. */
const SHOWN_MS = 5000;
const SHOWN_MS_PER_LETTER = 50;

/** Shows the view in the address, and what all views have: navigation, environment, live region for screen readers. */
export function Frame() {
  useKeys();
  if (link.value.is === "refused") return <Login ways={link.value.ways} />;
  const { view } = route.value;
  const View = view && VIEWS[view];
  const known = hello.value;
  return (
    <div class="app">
      <header class="side">
        <strong class="logo">◎ targeting-mcp</strong>
        {known !== undefined && <Environment of={shownOf(known, view)} isLost={isLost(view)} />}
        <nav aria-label="Views">
          {known?.views.map((name) => (
            <ViewLink key={name} name={name} />
          ))}
        </nav>
        <div class="below">
          {known?.environment.who !== undefined && (
            <span>
              Logged in as <Text of={known.environment.who} most={60} />
            </span>
          )}
          {view !== undefined && <Keys view={view} />}
          {known?.logsOut && (
            <button type="button" onClick={logOut}>
              Log out
            </button>
          )}
        </div>
      </header>
      <div>
        <LiveRegion />
        {isLost(view) ? (
          <p class="banner" role="status">
            The sandbox does not answer. This is what it reported last.
          </p>
        ) : (
          <FaultBanner />
        )}
        <main class={(view && LAYOUTS[view]) ?? ""}>{View === undefined ? <Unopened /> : <View />}</main>
      </div>
    </div>
  );
}

const OF_SANDBOX: ReadonlySet<ViewName> = new Set(["targetings", "events", "faults"]);

/** Returns the environment that a view shows. On a live server with a sandbox, the sandbox's views have their own. */
function shownOf({ environment, sandbox = environment }: Hello, view: ViewName | undefined): ShownEnvironment {
  return view !== undefined && OF_SANDBOX.has(view) ? sandbox : environment;
}

/** Returns whether a view shows a sandbox that does not answer. */
function isLost(view: ViewName | undefined): boolean {
  return view !== undefined && OF_SANDBOX.has(view) && isConnected.value && !isSandboxThere.value;
}

/**
 * Shows the environment, and whether the connection is lost. `isLost`: its sandbox does not answer. Live is red and a
 * sandbox violet, so that people notice which one it is in every view.
 */
function Environment({ of, isLost }: { readonly of: ShownEnvironment; readonly isLost: boolean }) {
  const { kind, project, address } = of;
  return (
    <div class={`environment ${kind}`}>
      <i class="dot" />
      <span>
        <strong>{kind === "live" ? "Live" : "Sandbox"}</strong>
        {project !== undefined && (
          <>
            {" · "}
            <Text of={project} most={60} />
          </>
        )}
        {address !== undefined && (
          <span>
            <Text of={address} most={80} />
          </span>
        )}
        {(isLost || link.value.is !== "live") && (
          <span class="link">{isLost || !isConnected.value ? "Not connected" : "Connecting…"}</span>
        )}
      </span>
    </div>
  );
}

function ViewLink({ name }: { readonly name: ViewName }) {
  const isShown = route.value.view === name;
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    // On a very narrow screen, the navigation scrolls. This makes the link of the shown view visible.
    if (isShown) link.current?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [isShown]);
  const waiting = name === "approvals" && !hasEnded.value ? openRuns.value.length : 0;
  return (
    <a ref={link} href={`#/${name}`} {...(isShown && { "aria-current": "page" as const })}>
      {VIEW_TITLES[name]}
      {waiting > 0 && (
        <>
          {" "}
          <span class="count">
            {number(waiting)}
            <span class="spoken"> waiting</span>
          </span>
        </>
      )}
    </a>
  );
}

/** Shows the keyboard shortcuts of a view, except those of targetings and faults. */
function Keys({ view }: { readonly view: ViewName }) {
  if (view === "faults" || view === "targetings") return null;
  return (
    <span>
      Keys: <kbd>J</kbd> <kbd>K</kbd> next, previous{view !== "overview" && ", "}
      {view === "approvals" && !hello.value?.readOnly && (
        <>
          <kbd>A</kbd> approve, <kbd>D</kbd> decline,{" "}
        </>
      )}
      {view !== "overview" && (
        <>
          <kbd>/</kbd> search
        </>
      )}
    </span>
  );
}

/** Shows what screen readers announce: hidden counts, banners, and the last result. Also sets the page's title. */
function LiveRegion() {
  const { view } = route.value;
  const waiting = hasEnded.value ? 0 : openRuns.value.length;
  useEffect(() => {
    const title = view === undefined ? "targeting-mcp" : `${VIEW_TITLES[view]} – targeting-mcp`;
    document.title = waiting > 0 ? `(${waiting}) ${title}` : title;
  }, [view, waiting]);
  return (
    <div aria-live="polite">
      <p class="spoken">{announced}</p>
      {link.value.is === "lost" && (
        <p class="banner">The connection to the server is lost. This page reconnects by itself.</p>
      )}
      {hasEnded.value && (
        <p class="banner">The server of this page is no longer running. Nothing can be decided here. {REOPENING}</p>
      )}
      {hello.value?.readOnly && (
        <p class="banner idle">
          This server is read-only: nothing can be decided or undone here. To change that, start it without{" "}
          <code>TARGETING_MCP_READ_ONLY</code> (<code>--read-only</code>).
        </p>
      )}
      {notice.value !== "" && <p class="banner">{notice}</p>}
      <Outcome />
    </div>
  );
}

/** Shows the result of the last action until the person has had time to read it, or closes it. */
function Outcome() {
  const text = outcome.value;
  const close = (): void => set(outcome, "");
  useEffect(() => {
    const timer = setTimeout(close, SHOWN_MS + SHOWN_MS_PER_LETTER * text.length);
    return () => clearTimeout(timer);
  }, [text]);
  if (text === "") return null;
  return (
    <div class="outcome">
      <span>{text}</span>
      <button type="button" class="plain" onClick={close}>
        Close
      </button>
    </div>
  );
}

/** Shows a banner while faults are active: in every view, unless it is of a sandbox that does not answer. */
function FaultBanner() {
  const { length } = faults.value.faults;
  if (length === 0) return null;
  return (
    <section class="banner sandbox" aria-label="Active faults">
      {length === 1 ? "1 fault is" : `${number(length)} faults are`} active: the sandbox fails on purpose.{" "}
      {sandbox.value?.readOnly !== true && (
        <>
          <a href="#/faults">Show</a>{" "}
          <button type="button" disabled={!isSandboxThere.value} onClick={removeAll}>
            {length === 1 ? "Remove it" : "Remove them"}
          </button>
        </>
      )}
    </section>
  );
}

function Unopened() {
  if (!hasEnded.value) return <h1>Connecting…</h1>;
  return <Empty title="This server is no longer running">{REOPENING}</Empty>;
}

/** Shows the ways to log in, if there are any, with the reason why a login or a link is needed. */
function Login({ ways }: { readonly ways: LoginWays }) {
  const refusal = useSignal("");
  const isPossible = ways.token === true || ways.issuer !== undefined;
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const token = new FormData(event.currentTarget).get("token");
    const answer = await send<OpenedSession>(PATHS.login, { token });
    if ("message" in answer) {
      refusal.value = answer.message;
      return;
    }
    keepSession(answer.data.session);
    // Reloading keeps the address, so the person sees the view or run that they wanted before the login.
    location.reload();
  };
  const goToIssuer = async (event: Event) => {
    event.preventDefault();
    const answer = await send<IssuerLogin>(ways.issuer ?? "");
    if ("message" in answer) {
      refusal.value = answer.message;
      return;
    }
    storeLogin(answer.data.login);
    location.assign(answer.data.location);
  };
  return (
    <main class="alone">
      <p>
        <strong>◎ targeting-mcp</strong>
      </p>
      <h1>{isPossible ? "Log in" : "This page needs a link"}</h1>
      <p>{ways.message}</p>
      {ways.token && (
        <form class="row" onSubmit={submit}>
          <label>
            Token <input name="token" type="password" autocomplete="off" required />
          </label>
          <button type="submit" class="primary">
            Log in
          </button>
        </form>
      )}
      {ways.issuer !== undefined && (
        <p>
          <a class="button" href={ways.issuer} onClick={goToIssuer}>
            Log in through the authorization server
          </a>
        </p>
      )}
      <p aria-live="polite">{refusal}</p>
    </main>
  );
}
