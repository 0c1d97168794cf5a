import * as z from "zod";
import { undoCounts } from "../answers/plan-answers.ts";
import { requestFailure } from "../answers/request-messages.ts";
import { isApiError } from "../api/errors.ts";
import { FileError } from "../platform/files.ts";
import { ExecutionRefusedError, type Run } from "../runs/kind.ts";
import { callerContext, grant, resumeFor } from "../tools/decide-run.ts";
import { ToolError, type ToolServices } from "../tools/define-tool.ts";
import { checkApplicable } from "../tools/kept-plan.ts";
import { decide, type Outcome, type Person, type Refused } from "../tools/write/decide.ts";
import { keepWaiting } from "../tools/write/on-page.ts";
import { waitingAnywhere } from "../tools/write/waiting.ts";
import { RefusedRequest } from "./page.ts";
import { canBeDriven, DAMAGED, ENDED, STALE, targetingOf } from "./rows.ts";
import { OWN_REQUEST, type PageScope, unlessDamaged, visibleRun } from "./seen.ts";
import { isTyped, textToType } from "./waiting.ts";

const DECIDED = "This change was already approved or declined.";
const ELSEWHERE = "This change can be approved only in the agent's client, not on this page.";
const UNKNOWN = "There is no such run.";
const ONLY_READS = "This server is read-only. To change that, start it without TARGETING_MCP_READ_ONLY.";
const NOT_TYPED = "Nothing was approved: the typed name differs from the name that this change asks for.";
const CHANGED =
  "The effect of this change is different from what the page showed. Read the new effect, then decide again.";

/**
 * The body of an Approve or Decline request: the digest of the effect that the page showed, and the name that the
 * person typed.
 */
const decision = z.object({ digest: z.string().optional(), typed: z.string().optional() });

interface PageAction {
  readonly runId: string;
  readonly action: string;
  readonly data: unknown;
  readonly who: string;
}

/** What an action returns. `runId` is the ID of the new run that waits for approval: a planned undo. */
interface Acted {
  readonly runId?: string;
}

/** Executes a person's action on a run. Throws a RefusedRequest if it is not executed. */
export async function actOn({ runId, action, data, who }: PageAction, shown: PageScope): Promise<Acted> {
  const seen = await unlessDamaged(visibleRun(runId, shown));
  if (seen === "damaged") throw new RefusedRequest(409, DAMAGED);
  // The person may only decide about the runs of other callers.
  if (seen === undefined || !(seen.isOwn || isDecision(action))) throw new RefusedRequest(404, UNKNOWN);
  const { run } = seen;
  const { services } = seen.shown;
  if (services.readOnly) throw new RefusedRequest(403, ONLY_READS);
  if (action === "cancel") {
    await services.runs.cancel(runId);
    return {};
  }
  // Declining sends nothing to the service, so a process without the project's key may record it.
  if (action !== "decline" && !(await canBeDriven(run, seen.shown))) throw new RefusedRequest(409, ENDED);
  try {
    if (action === "undo") return await undo(run, who, services);
    if (action === "resume") {
      await resumeFor(run, personOf(who, shown), services);
      return {};
    }
    if (!isDecision(action)) throw new RefusedRequest(404, "There is nothing at this address.");
    const answer = action === "approve" ? "approved" : "declined";
    const { digest, typed } = decision.safeParse(data).data ?? {};
    const wanted = answer === "approved" ? await requiredTextOf(runId, seen.shown) : undefined;
    if (wanted !== undefined && !isTyped(typed, wanted)) throw new RefusedRequest(409, NOT_TYPED);
    const saw = (seen: string): boolean => seen === digest;
    const person = personOf(who, shown);
    checkDecided(await decide(runId, { answer, channel: "page", person, saw }, services, { grant }));
    return {};
  } catch (thrown) {
    if (isApiError(thrown)) throw new RefusedRequest(502, requestFailure(thrown).message);
    if (thrown instanceof ExecutionRefusedError) throw new RefusedRequest(403, `${thrown.message}. ${thrown.remedy}`);
    if (!(thrown instanceof ToolError || thrown instanceof FileError)) throw thrown;
    throw new RefusedRequest(409, `${thrown.message}.`);
  }
}

/**
 * Returns the text that a person must type to approve a run; undefined if none is required or the run does not wait.
 */
async function requiredTextOf(runId: string, shown: PageScope): Promise<string | undefined> {
  const run = await waitingAnywhere(runId, shown.services);
  const { parts } = run?.state.facts.waits ?? {};
  if (run === undefined || parts === undefined) return undefined;
  return textToType(parts, await targetingOf(run, shown));
}

function isDecision(action: string): action is "approve" | "decline" {
  return action === "approve" || action === "decline";
}

/** Returns the person who decides, with the runs that they may approve or decline. */
function personOf(who: string, { caller, approves }: PageScope): Person {
  return { who, caller, approves: approves && ((run) => approves.of(run) !== undefined), except: approves?.except };
}

function checkDecided(outcome: Outcome): void {
  if (outcome.is === "done") return;
  const [status, message] = outcome.is === "refused" ? REFUSED[outcome.why] : ([409, TOO_LATE[outcome.is]] as const);
  throw new RefusedRequest(status, message);
}

const TOO_LATE: Readonly<Record<Exclude<Outcome["is"], "done" | "refused">, string>> = {
  stale: `${STALE} Ask the agent to plan it again.`,
  changed: CHANGED,
  decided: DECIDED,
  expired: DECIDED,
};

const REFUSED: Readonly<Record<Refused, readonly [status: number, message: string]>> = {
  NOT_THEIRS: [404, UNKNOWN],
  READ_ONLY: [403, ONLY_READS],
  NOT_HERE: [409, ENDED],
  ELSEWHERE: [409, ELSEWHERE],
  OWN_REQUEST: [403, OWN_REQUEST],
  // The web page is not a view and takes no tokens, so these reasons do not occur here.
  VIEWS_NOT_TRUSTED: [403, UNKNOWN],
  NO_TOKENS: [403, UNKNOWN],
};

/** Plans the undo of a run, as `who` requested on the page. The new run then waits for a decision. Throws a ToolError if the run cannot be undone. */
async function undo(run: Run, who: string, services: ToolServices): Promise<Acted> {
  const { runId } = run.header;
  // Imported only when needed, because few runs are undone.
  const { keepUndoPlan } = await import("../tools/undo-run.ts");
  const { rows, already, kept } = await keepUndoPlan(runId, {
    ...callerContext(run, services),
    requested: { person: who },
  });
  if (kept === undefined) throw new RefusedRequest(409, `Nothing can be undone: ${undoCounts(rows, already)}.`);
  const { header, plan, document } = kept;
  checkApplicable(document, services);
  await keepWaiting(header, plan, services);
  return { runId: header.runId };
}
