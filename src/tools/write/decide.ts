import * as z from "zod";
import {
  askedTwiceHint,
  changedEffect,
  changedQuestion,
  differingObjects,
  type Effect,
  effectText,
  questionText,
  STRICT_REMEDY,
} from "../../answers/approvals.ts";
import { staleText } from "../../answers/message-words.ts";
import { type ApprovalRun, isApproval } from "../../changes/approvals.ts";
import { lossDigest, needsConfirmation } from "../../changes/change-kinds.ts";
import { type ChangeRun, isChangeRun } from "../../changes/change-run.ts";
import type { ChangeHeader, StartPlanned } from "../../changes/changes.ts";
import type { Plan } from "../../changes/plan/plan.ts";
import type { Decided } from "../../changes/rows/entries.ts";
import { parseJson } from "../../platform/json.ts";
import type { Run } from "../../runs/kind.ts";
import { type Asked, ownReason } from "../../runs/outcome.ts";
import { callerName, type RunHeader } from "../../runs/store.ts";
import { changesOf } from "../apis.ts";
import {
  type ToolAnswer,
  type ToolContext,
  ToolError,
  type ToolOutcome,
  type ToolQuestion,
  type ToolServices,
} from "../define-tool.ts";
import { effectOf, waitingAnywhere } from "./awaiting-decision.ts";
import { mayDecideInView } from "./confirmation-token.ts";

/** Where a person decides. A channel only finds out who the person is; this file checks what they may do. */
type Channel = Decided["where"];

export interface Person {
  readonly who: string;
  readonly caller: string;
  /** Returns whether this person may decide about another caller's run. Absent if only their own runs are allowed. */
  readonly approves?: ((run: Pick<RunHeader, "project" | "caller">) => boolean) | undefined;
  /** The caller name of this person's own requests. Only set if people may not approve their own requests. */
  readonly except?: string | undefined;
}

export interface Decision {
  readonly answer: "approved" | "declined";
  readonly channel: Channel;
  readonly person: Person;
  /** Returns whether the person has seen the effect with this digest. */
  readonly saw: (digest: string) => boolean;
  readonly until?: number;
}

interface Looked {
  readonly run: Pick<Run, "header">;
  readonly digest: string;
  /** Starts the run. Undefined if it was started before by any process. "stale" if its effect has changed. */
  readonly start: (approved: Approved) => Promise<Run | "stale" | undefined>;
}

/**
 * Starts approved work other than a change, such as event tests, or resumes an approved run. Returns undefined if the
 * work was started before. Returns "stale" if the work would no longer do what was approved.
 */
type Grant = (approval: ApprovalRun, approved: Approved, services: ToolServices) => Promise<Run | "stale" | undefined>;

export interface Approved {
  readonly asked: Asked;
  readonly decided: Decided;
}

export type Refused =
  | "NOT_THEIRS"
  | "READ_ONLY"
  | "NOT_HERE"
  | "VIEWS_NOT_TRUSTED"
  | "NO_TOKENS"
  | "OWN_REQUEST"
  | "ELSEWHERE";

/**
 * What became of a decision. "decided": the run does not wait for one. "changed": the person saw another effect than
 * the current one. "stale": planned again, the run has another effect. "expired": the decision came too late.
 */
export type Outcome =
  | { readonly is: "done"; readonly run?: Run }
  | { readonly is: "decided" | "changed" | "stale" | "expired" }
  | { readonly is: "refused"; readonly why: Refused };

type Rights = Pick<ToolServices, "readOnly" | "confirm" | "trustViews" | "environment" | "project" | "page">;

/**
 * Returns why a person may not decide about a run; undefined if they may. A server without the key of the run's project
 * lets people decline the run, but not approve it.
 */
export function refusal(
  { caller, project, environment }: Pick<RunHeader, "caller" | "project" | "environment">,
  elsewhere: "client" | "token" | undefined,
  { answer, channel, person }: Pick<Decision, "answer" | "channel" | "person">,
  services: Rights,
): Refused | undefined {
  if (caller !== person.caller && person.approves?.({ caller, project }) !== true) return "NOT_THEIRS";
  if (services.readOnly) return "READ_ONLY";
  if (channel === "view" && !mayDecideInView(services)) return "VIEWS_NOT_TRUSTED";
  if (answer === "declined") return undefined;
  if (project !== services.project.id || environment !== services.environment) return "NOT_HERE";
  if (channel === "token" && services.confirm === "strict") return "NO_TOKENS";
  if (channel !== "page" && services.page?.needsOther?.() === true) return "OWN_REQUEST";
  if (elsewhere !== undefined && (channel === "page" || channel === "view")) return "ELSEWHERE";
  return person.except !== undefined && callerName(caller) === person.except ? "OWN_REQUEST" : undefined;
}

/**
 * Carries out a person's decision, and only once, even if several processes try. Checks the person's rights and the
 * effect that they saw, and stores the decision before anything is sent. `looked`: the run with its current effect; if
 * it is absent, the run must be waiting for a decision, and a change is planned again.
 */
export async function decide(
  runId: string,
  decision: Decision,
  services: ToolServices,
  { looked, grant }: { readonly looked?: Looked; readonly grant?: Grant } = {},
): Promise<Outcome> {
  const run = looked?.run ?? (await services.runs.find(runId));
  if (run === undefined) return { is: "refused", why: "NOT_THEIRS" };
  const waiting = looked === undefined ? await waitingAnywhere(runId, services) : undefined;
  const { waits } = waiting?.state.facts ?? {};
  const why = refusal(run.header, waits?.elsewhere, decision, services);
  if (why !== undefined) return { is: "refused", why };
  const { answer, channel, person } = decision;
  const at = services.clock.now();
  if (decision.until !== undefined && decision.until < at) return { is: "expired" };
  const decided = { who: person.who, where: channel, at };
  if (answer === "declined") {
    // A person can also be asked through the client about a plan that is not stored as a waiting run. So a decision
    // through the client needs no waiting run.
    const isAsked = waiting !== undefined || channel === "client";
    return isAsked ? declined(run, decided, services) : notWaiting(runId, services);
  }
  const approved = { asked: ASKED[channel], decided };
  if (looked !== undefined) return decision.saw(looked.digest) ? begun(looked, approved, services) : { is: "changed" };
  if (waiting === undefined || waits === undefined) return notWaiting(runId, services);
  if (waits.stale !== undefined) return { is: "stale" };
  if (!decision.saw(waits.digest)) return { is: "changed" };
  if (!isApproval(waiting)) return approvedChange(waiting, approved, services);
  if (grant === undefined) return { is: "refused", why: "ELSEWHERE" };
  return begun({ run: waiting, digest: "", start: (by) => grant(waiting, by, services) }, approved, services);
}

/** Returns "changed" for a run that holds a new plan since a person was asked, and was neither started nor ended. */
async function notWaiting(runId: string, { runs }: ToolServices): Promise<Outcome> {
  return { is: (await runs.isUnstarted(runId)) === true ? "changed" : "decided" };
}

const ASKED = {
  client: "agreed_in_client",
  view: "agreed_in_view",
  page: "agreed_on_page",
  token: "agreed_by_token",
  terminal: "agreed_in_terminal",
} as const satisfies Readonly<Record<Channel, Asked>>;

async function begun({ run, start }: Looked, approved: Approved, services: ToolServices): Promise<Outcome> {
  const begun = await start(approved);
  if (begun === "stale") return { is: "stale" };
  if (begun === undefined) return { is: "decided" };
  note(run, "approved", approved.decided, services);
  return { is: "done", run: begun };
}

export function plannedChange(
  header: ChangeHeader,
  plan: Plan,
  services: ToolServices,
  startPlanned: StartPlanned = (made) => changesOf(services).start(header, made),
): Looked {
  return {
    run: { header },
    digest: lossDigest(plan.losses),
    start({ asked, decided }) {
      plan.facts = { ...plan.facts, asked, decided };
      return startPlanned(plan);
    },
  };
}

/** Starts a run that was planned in the background. Undefined if a person must approve it first. */
export async function beginPlanned(
  header: ChangeHeader,
  plan: Plan,
  { decision, start }: { readonly decision: Decision | undefined; readonly start: StartPlanned },
  services: ToolServices,
): Promise<ChangeRun | undefined> {
  const changes = changesOf(services);
  if (decision !== undefined) {
    const looked = plannedChange(header, plan, services, start);
    const outcome = await decide(header.runId, decision, services, { looked });
    if (outcome.is === "done" && outcome.run !== undefined && isChangeRun(outcome.run)) return outcome.run;
    if (outcome.is === "decided") return changes.runs.lookAt(header.runId);
  }
  plan.note({ asked: "not_needed" });
  if (services.confirm !== "off" && needsConfirmation(plan)) return undefined;
  return (await start(plan)) ?? changes.runs.lookAt(header.runId);
}

async function approvedChange(run: ChangeRun, approved: Approved, services: ToolServices): Promise<Outcome> {
  const changes = changesOf(services);
  const { header, state } = run;
  const { runId, call } = header;
  await services.runs.checkExecutable(run);
  const plan = await changes.plan(call, services.stopping, services.runs.part(runId, "input"));
  if ((await services.runs.isUnstarted(runId)) !== true) return { is: "decided" };
  const { waits } = state.facts;
  const gone = plan.facts.stale;
  const looked = plannedChange(header, plan, services);
  if (waits === undefined || (gone === undefined && looked.digest === waits.digest)) {
    return begun(looked, approved, services);
  }
  const effect = gone === undefined ? await effectOf(header, plan, services) : undefined;
  const stale = effect === undefined ? staleText(gone ?? []) : changedEffect(state.facts.effect ?? "", effect);
  const differs = effect && differingObjects(waits.parts, effect.parts);
  const now = { ...waits, stale, ...(differs && differs.length > 0 && { differs }) };
  const { shown } = state.facts;
  plan.facts = { ...plan.facts, ...(shown && { shown }), effect: state.facts.effect ?? "", waits: now };
  return { is: (await changes.propose(header, plan)) ? "stale" : "decided" };
}

async function declined(run: Pick<Run, "header">, decided: Decided, services: ToolServices): Promise<Outcome> {
  const ending = { cause: "cancelled", reason: ownReason("DECLINED", { ...decided }) } as const;
  if ((await services.runs.withdraw(run.header.runId, ending)) === undefined) return { is: "decided" };
  note(run, "declined", decided, services);
  return { is: "done" };
}

function note(
  { header: { runId, caller, project } }: Pick<Run, "header">,
  decision: Decision["answer"],
  { who, where, at }: Decided,
  { noteDecision }: ToolServices,
): void {
  noteDecision?.({ at: new Date(at).toISOString(), runId, decision, where, who, caller, project });
}

/** Starts a change that was just planned. `decision` is undefined only if no approval is required. */
export async function startDecided(
  header: ChangeHeader,
  plan: Plan,
  decision: Decision | undefined,
  services: ToolServices,
): Promise<ChangeRun | undefined> {
  const changes = changesOf(services);
  if (decision === undefined) {
    plan.note({ asked: "not_needed" });
    return changes.startOrFind(header, plan);
  }
  const outcome = await decide(header.runId, decision, services, { looked: plannedChange(header, plan, services) });
  if (outcome.is === "refused") throw refusedError();
  return changes.runs.find(header.runId);
}

/**
 * Returns an approval that was given in the client. By default, it is valid for any effect, because the calling code
 * has already compared the current effect with the one that the person saw.
 */
export function inClient(context: Pick<ToolContext, "person" | "caller">, saw: Decision["saw"] = () => true): Decision {
  return { answer: "approved", channel: "client", person: personOf(context), saw };
}

export function refusedError(): ToolError {
  return new ToolError(
    "this approval does not count under the current settings and rights; nothing was sent",
    "Make the call again. Its answer says who has to approve it.",
  );
}

/** Returns the person behind a call, who decides in the client, in a view or with a confirmation token. */
export function personOf({ person, caller }: Pick<ToolContext, "person" | "caller">): Person {
  return { who: person ?? caller, caller };
}

export interface ApprovalRequest<R> {
  readonly needsApproval: boolean;
  readonly digest: string;
  /** Returns the effect. Called only if approval is required, because it takes long for a large plan. */
  readonly effect: () => Effect;
  readonly undecided?: ToolQuestion["ask"]["undecided"];
  /** Asks on the web page after the client closed the question. Absent without a page, or if `undecided` does it. */
  readonly closed?: (() => Promise<ToolAnswer>) | undefined;
  readonly start: (asked: Asked, hints: readonly string[]) => Promise<R>;
  readonly declined: () => Promise<R> | R;
  readonly onPage: () => Promise<R>;
  readonly token: () => Promise<R>;
}

type NextStep = "start" | "ask" | "page" | "token" | "refuse";

/** Returns whether a person can decide in a view of the client or on the web page. */
export function isDecidedElsewhere({ page, inView }: Pick<ToolContext, "page" | "inView">): boolean {
  return inView === true || page?.isOffered() === true;
}

/** Returns how a request goes on: it starts, or the first available channel asks. Strict mode allows no tokens. */
export function chooseChannel(
  needsApproval: boolean,
  context: Pick<ToolContext, "confirm" | "canAsk" | "page" | "inView">,
): NextStep {
  const { confirm, canAsk } = context;
  if (!needsApproval || confirm === "off") return "start";
  if (canAsk()) return "ask";
  if (isDecidedElsewhere(context)) return "page";
  return confirm === "strict" ? "refuse" : "token";
}

/** Starts a request, asks a person first, or acts on the reply. Asks again if the effect has changed since. */
export async function decided<R>(
  wish: ApprovalRequest<R>,
  context: Pick<ToolContext, "confirm" | "canAsk" | "page" | "inView" | "reply">,
): Promise<R | Extract<ToolOutcome, ToolQuestion>> {
  const { reply } = context;
  switch (chooseChannel(wish.needsApproval, context)) {
    case "start":
      return wish.start("not_needed", []);
    case "token":
      return wish.token();
    case "page":
      return wish.onPage();
    case "refuse":
      throw new ToolError(
        `this needs approval, and this client cannot ask a person. ${effectText(wish.effect())}`,
        context.page?.remedy ?? STRICT_REMEDY,
      );
    case "ask": {
      if (reply === undefined) return question(wish);
      if (!reply.accepted) return wish.declined();
      const asked = readQuestion(reply.token);
      if (asked?.digest !== wish.digest) return question(wish, changedEffect(asked?.effect ?? "", wish.effect()));
      return wish.start("agreed_in_client", asked.changed === undefined ? [] : [askedTwiceHint(asked.changed)]);
    }
  }
}

function question<R>(
  { digest, effect: effectOfWish, undecided, closed }: ApprovalRequest<R>,
  changed?: string,
): ToolQuestion {
  const effect = effectOfWish();
  const message = questionText(effect);
  return {
    ask: {
      message: changed === undefined ? message : changedQuestion(changed, message),
      token: JSON.stringify({ digest, effect: effect.sentence, changed }),
      ...(undecided && { undecided }),
      ...(closed && { onPage: closed }),
    },
  };
}

const askedForm = z.object({ digest: z.string(), effect: z.string(), changed: z.string().exactOptional() });

type Question = Readonly<z.output<typeof askedForm>>;

/** Parses the token of a question, which the client's reply returns. Undefined if it has another form. */
export function readQuestion(token: string): Question | undefined {
  return askedForm.safeParse(parseJson(token)).data;
}
