import { computed, signal } from "@preact/signals";
import { render } from "preact";
import type { RunAction, RunDetail, RunRow } from "../wire.ts";
import { callTool, connectToHost, type ToolResult } from "./bridge.ts";
import { Done, Effects, PlanRows } from "./effects.tsx";
import { Guarded } from "./guarded.tsx";
import { SCROLLS, visibleLines } from "./parts.tsx";
import { STATUSES, Status, Title } from "./run-words.tsx";
import { outcome } from "./state.ts";

/** How often a running run is looked at, and how long one look waits for a decision that is made elsewhere. */
const EVERY_MS = 1000;
const WAIT_MS = 20_000;
/** The most that is shown of what was said instead of a run. */
const MOST_SAID = 4000;

/** The run that the host shows, and what was said instead of one. */
const detail = signal<RunDetail | undefined>(undefined);
const said = signal("Working on it…");
/** With which the person decides. It is sent once, for one run. */
const decision = signal<{ readonly runId: string; readonly secret: string } | undefined>(undefined);
/** A person decides once; they may cancel a run as soon as it runs. */
let isDeciding = false;
let isOver = false;

/** The run with the buttons that do something here. */
const shownRun = computed(() => {
  const run = detail.value?.run;
  const mayDecide = decision.value?.runId === run?.runId;
  return run && { ...run, actions: run.actions.filter((one) => one === "cancel" || (mayDecide && DECIDES[one])) };
});
const DECIDES: Readonly<Record<string, boolean>> = { approve: true, decline: true };

/** Shows the run that the host hands over, for as long as the host shows this view. */
export async function startView(): Promise<void> {
  render(<RunView />, document.body);
  await connectToHost({
    "ui/notifications/tool-result": (result) => {
      take(result);
      void follow();
    },
    "ui/notifications/tool-cancelled": () => {
      said.value = "The call was cancelled.";
    },
    "ui/notifications/host-context-changed": ({ theme }) => {
      if (theme !== undefined) document.documentElement.style.colorScheme = theme;
    },
    "ui/resource-teardown": () => {
      isOver = true;
    },
  });
}

/** Takes over what a result holds of its run. The types are those of the server that the view came from. */
function take({ _meta = {}, content = [] }: ToolResult): void {
  const held: Held = _meta;
  const { "targeting-mcp/run": run, "targeting-mcp/decision": given } = held;
  if (given !== undefined) decision.value = given;
  if (run === undefined) said.value = content.map(({ text = "" }) => text).join("\n");
  // An answer may arrive after a later one.
  else if (run.run.updatedAt >= (detail.value?.run.updatedAt ?? 0)) detail.value = run;
}

interface Held {
  readonly "targeting-mcp/run"?: RunDetail;
  readonly "targeting-mcp/decision"?: { readonly runId: string; readonly secret: string };
}

/** Which look is the last one: each begins where another one may still wait for a decision that is made elsewhere. */
let lastLook = 0;

/** Looks at the run until it rests, in place of those that look at it already. */
async function follow(): Promise<void> {
  const look = ++lastLook;
  for (let run = detail.value?.run; run !== undefined && !isOver; run = detail.value?.run) {
    const isWaiting = run.status === "needs_confirmation";
    if (run.status !== "running" && !isWaiting) break;
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    if (look !== lastLook) return;
    await asked("get_run", { runId: run.runId, limit: 1, ...(isWaiting && { waitMs: WAIT_MS }) });
    if (look !== lastLook) return;
  }
  const status = detail.value?.run.status;
  if (outcome.value !== "" && status !== undefined) {
    outcome.value = `The run has ended: ${STATUSES[status][0].toLowerCase()}.`;
  }
}

/** Calls a tool, and shows what it says of the run; false where it was refused, which is shown. */
async function asked(tool: string, args: object): Promise<boolean> {
  try {
    const result = await callTool(tool, args);
    take(result);
    if (result.isError !== true) return true;
    outcome.value = (result.content ?? []).map(({ text = "" }) => text).join("\n");
  } catch (thrown) {
    outcome.value = `The host did not carry it out (${thrown instanceof Error ? thrown.message : thrown}).`;
  }
  return false;
}

const decide: Decide = async ({ runId }, action) => {
  if (action !== "cancel" && isDeciding) return;
  outcome.value = "";
  if (action === "cancel") {
    if (await asked("cancel_run", { runId })) outcome.value = "The run is being cancelled.";
  } else {
    isDeciding = true;
    const { secret } = decision.value ?? {};
    if (await asked("decide_run", { runId, decision: action, secret })) {
      decision.value = undefined;
      outcome.value = action === "approve" ? "Approved." : "Declined.";
    }
    isDeciding = false;
  }
  await follow();
};

/** The act, how much of how much, the names, what can be undone, and the buttons: never higher than 300 pixels. */
function RunView() {
  const [run, known] = [shownRun.value, detail.value];
  if (run === undefined || known === undefined) {
    return (
      <main class="view">
        <h1 class="spoken">Run</h1>
        <p class="said scroll" {...SCROLLS}>
          {visibleLines(said.value.slice(0, MOST_SAID))}
        </p>
      </main>
    );
  }
  const isWaiting = run.status === "needs_confirmation";
  return (
    <main class="view">
      <div class="row">
        <h1>
          <Title run={run} end={isWaiting ? "?" : ""} />
        </h1>
        {!isWaiting && <Status of={run} />}
      </div>
      <section class="scroll" aria-label="Details" {...SCROLLS}>
        <p class="small status" aria-live="polite">
          {outcome}
        </p>
        <Body run={run} known={known} isWaiting={isWaiting} />
      </section>
      <ActButtons run={run} decide={decide} />
    </main>
  );
}

function Body({
  run,
  known,
  isWaiting,
}: {
  readonly run: RunRow;
  readonly known: RunDetail;
  readonly isWaiting: boolean;
}) {
  if (isWaiting && run.waiting !== undefined) return <Effects waiting={run.waiting} plan={known.plan} />;
  if (run.status === "planned") return known.plan === undefined ? null : <PlanRows plan={known.plan} />;
  return <Done run={run} failures={known.failures} />;
}

/** What a button of the view does with its run. */
type Decide = (run: RunRow, action: RunAction) => void;

const WHY = "why";

/** The buttons that decide, named by the act, and Cancel while the run runs. */
function ActButtons({ run, decide }: { readonly run: RunRow; readonly decide: Decide }) {
  const { actions, disabled = {}, waiting } = run;
  if (actions.length === 0) return null;
  const isStale = waiting?.ended === true || waiting?.stale !== undefined;
  const reasons = isStale ? [] : [...new Set(actions.flatMap((action) => disabled[action] ?? []))];
  const isOff = (action: RunAction): boolean => disabled[action] !== undefined || (action === "approve" && isStale);
  return (
    <div class="row view-foot">
      {reasons.length > 0 && (
        <span id={WHY} class="small quiet">
          {reasons.join(" ")}
        </span>
      )}
      <span class="push" />
      {actions.includes("cancel") && (
        <button type="button" data-action="cancel" disabled={isOff("cancel")} onClick={() => decide(run, "cancel")}>
          Cancel
        </button>
      )}
      {actions.includes("decline") && (
        <Guarded
          action="decline"
          run={run}
          isOff={isOff("decline")}
          describedBy={WHY}
          press={() => decide(run, "decline")}
        >
          Decline
        </Guarded>
      )}
      {actions.includes("approve") && (
        <Guarded
          action="approve"
          run={run}
          isOff={isOff("approve")}
          describedBy={WHY}
          className={waiting?.magnitude?.verb === "deleted" ? "danger" : "primary"}
          press={() => decide(run, "approve")}
        >
          {waiting?.act ?? "Approve"}
        </Guarded>
      )}
    </div>
  );
}
