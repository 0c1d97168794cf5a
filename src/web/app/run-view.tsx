import { computed, signal } from "@preact/signals";
import { render } from "preact";
import type { RunAction, RunDetail, RunRow } from "../wire.ts";
import { callTool, connectToHost, type ToolResult } from "./bridge.ts";
import { Done, Effects, PlanRows } from "./effects.tsx";
import { DecisionButtons } from "./guarded.tsx";
import { SCROLLS, Text, visibleLines } from "./parts.tsx";
import { Status, statusWords, Title } from "./run-words.tsx";
import { outcome, set } from "./state.ts";

/**
 * The pause between two reads of the run (`EVERY_MS`), in milliseconds. If the run waits for approval, the server
 * answers a read when it was decided, here or elsewhere, and has ended, but at the latest after `WAIT_MS`.
 */
const EVERY_MS = 1000;
const WAIT_MS = 20_000;
/** The maximum length of a text that is shown if there is no run. */
const MAX_SAID = 4000;

/** The run that the view shows, and the text that it shows instead if there is no run (`said`). */
const detail = signal<RunDetail | undefined>(undefined);
const said = signal("Working on it…");
/** The secret that is sent with the person's decision. It works once, for one run. */
const decision = signal<{ readonly runId: string; readonly secret: string } | undefined>(undefined);
/** Whether a decision is being sent. Until it is answered, the run can only be cancelled. */
let isDeciding = false;
let isOver = false;

/** The run to show, with only the actions that are possible in this view. */
const shown = computed(() => {
  if (detail.value === undefined) return undefined;
  const { run } = detail.value;
  const actions: readonly RunAction[] =
    decision.value?.runId === run.runId ? ["cancel", "approve", "decline"] : ["cancel"];
  return { ...detail.value, run: { ...run, actions: run.actions.filter((one) => actions.includes(one)) } };
});

/** Connects to the host, and shows the run of each tool result until the host closes the view. */
export async function startView(): Promise<void> {
  render(<RunView />, document.body);
  await connectToHost({
    "ui/notifications/tool-result": (result) => {
      take(result);
      void follow();
    },
    "ui/notifications/tool-cancelled": () => set(said, "The call was cancelled."),
    "ui/notifications/host-context-changed": ({ theme }) => {
      if (theme !== undefined) document.documentElement.style.colorScheme = theme;
    },
    "ui/resource-teardown": () => {
      isOver = true;
    },
  });
}

/** Takes the run from a tool result. Its type is not checked: the view and the server are of the same version. */
function take({ _meta = {}, content = [] }: ToolResult): void {
  const held: Held = _meta;
  const { "targeting-mcp/run": run, "targeting-mcp/decision": given } = held;
  if (given !== undefined) decision.value = given;
  if (run === undefined) said.value = content.map(({ text = "" }) => text).join("\n");
  // Results can arrive in another order than they were sent. An older one is ignored.
  else if (run.run.updatedAt >= (detail.value?.run.updatedAt ?? 0)) detail.value = run;
}

interface Held {
  readonly "targeting-mcp/run"?: RunDetail;
  readonly "targeting-mcp/decision"?: { readonly runId: string; readonly secret: string };
}

/** The number of the newest loop in `follow`. An older loop ends after its current pause or read. */
let lastLook = 0;

/**
 * Reads the run repeatedly while it is running or waits for approval. A new call ends the loop of an earlier one. At
 * the end, the status of the run replaces the shown message, if there is one.
 */
async function follow(): Promise<void> {
  const look = ++lastLook;
  for (let run = detail.value?.run; run !== undefined && !isOver; run = detail.value?.run) {
    const isWaiting = run.status === "needs_confirmation";
    if (run.status !== "running" && !isWaiting) break;
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    if (look !== lastLook) return;
    await callAndShow("get_run", { runId: run.runId, limit: 1, ...(isWaiting && { waitMs: WAIT_MS }) });
    if (look !== lastLook) return;
  }
  const run = detail.value?.run;
  if (outcome.value !== "" && run !== undefined)
    outcome.value = `The run has ended: ${statusWords(run).toLowerCase()}.`;
}

/** Calls a tool and shows the run of its result. If the call fails, shows the error and returns false. */
async function callAndShow(tool: string, args: object): Promise<boolean> {
  try {
    const result = await callTool(tool, args);
    take(result);
    if (result.isError !== true) return true;
    outcome.value = (result.content ?? []).map(({ text = "" }) => text).join("\n");
  } catch (thrown) {
    outcome.value = `The host refused the call (${thrown instanceof Error ? thrown.message : thrown}).`;
  }
  return false;
}

const decide: Decide = async ({ runId }, action) => {
  if (action !== "cancel" && isDeciding) return;
  outcome.value = "";
  if (action === "cancel") {
    if (await callAndShow("cancel_run", { runId })) outcome.value = "The run is being cancelled.";
  } else {
    isDeciding = true;
    const { secret } = decision.value ?? {};
    if (await callAndShow("decide_run", { runId, decision: action, secret })) {
      decision.value = undefined;
      outcome.value = action === "approve" ? "Approved." : "Declined.";
    }
    isDeciding = false;
  }
  await follow();
};

/** Shows what a run does, within 300 pixels of height: action, size, names, what can be undone, and the buttons. */
function RunView() {
  const known = shown.value;
  if (known === undefined) {
    return (
      <main class="view">
        <h1 class="spoken">Run</h1>
        <p class="said scroll" {...SCROLLS}>
          {visibleLines(said.value.slice(0, MAX_SAID))}
        </p>
      </main>
    );
  }
  const { run } = known;
  const isWaiting = run.status === "needs_confirmation";
  return (
    <main class="view">
      <div class="row">
        <h1>
          <Title run={run} end={isWaiting ? "?" : ""} />
        </h1>
        {run.environment !== undefined && (
          <span class={`pill ${run.environment === "live" ? "bad" : "idle"}`}>
            {run.environment === "live" ? "Live" : "Sandbox"}
            {run.environment === "live" && run.project !== undefined && (
              <>
                {" · "}
                <Text of={run.project} most={40} />
              </>
            )}
          </span>
        )}
        {!isWaiting && <Status of={run} />}
      </div>
      <section class="scroll" aria-label="Details" {...SCROLLS}>
        <p class="small status" aria-live="polite">
          {outcome}
        </p>
        <Body detail={known} />
      </section>
      <ActButtons run={run} decide={decide} />
    </main>
  );
}

function Body({ detail }: { readonly detail: RunDetail }) {
  const { run, plan, changes } = detail;
  if (run.status === "needs_confirmation") return <Effects detail={detail} />;
  if (run.status === "planned") return plan && <PlanRows plan={plan} changes={changes} isUndo={run.isUndo} />;
  return <Done detail={detail} />;
}

type Decide = (run: RunRow, action: RunAction) => void;

const WHY = "why";

/** Shows the buttons that approve or decline a run, or cancel a running one. */
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
      <DecisionButtons run={run} isOff={isOff} describedBy={WHY} press={(action) => decide(run, action)} />
    </div>
  );
}
