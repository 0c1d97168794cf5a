import * as z from "zod";
import {
  askedTwiceHint,
  changedEffect,
  changedQuestion,
  differingObjects,
  STRICT_REMEDY,
} from "../../answers/approvals.ts";
import { staleText } from "../../answers/message-words.ts";
import { type ApprovalRun, isApproval } from "../../approvals/approvals.ts";
import { type ChangeRun, isChangeRun } from "../../changes/change-run.ts";
import type { ChangeHeader, StartPlanned } from "../../changes/changes.ts";
import type { Plan } from "../../changes/plan/plan.ts";
import type { Decided } from "../../changes/rows/entries.ts";
import { lossDigest, needsConfirmation } from "../../changes/run-rules.ts";
import { parseJson } from "../../platform/json.ts";
import type { Run } from "../../runs/kind.ts";
import { type Asked, ownReason } from "../../runs/outcome.ts";
import type { RunHeader } from "../../runs/store.ts";
import { changesOf } from "../apis.ts";
import { callerName, type ToolContext, type ToolServices } from "../context.ts";
import { type ToolAnswer, ToolError, type ToolOutcome, type ToolQuestion } from "../define-tool.ts";
import { mayDecideInView } from "./confirmation-token.ts";
import { effectOf, waitingAnywhere } from "./waiting.ts";

/** Where a decision comes from. A channel says only who the person is: whether they may decide is checked here. */
type Channel = Decided["where"];

/** A person whom a channel has recognised. */
export interface Person {
  readonly who: string;
  /** The caller whose runs are their own. */
  readonly caller: string;
  /** Whether they decide on runs of other callers; absent: on none. */
  readonly approves?: ((run: Pick<RunHeader, "project" | "caller">) => boolean) | undefined;
  /** The caller whose requests they may not approve, since these are their own; absent: there is none. */
  readonly except?: string | undefined;
}

/** What a person decided, and what exactly they saw. */
export interface Decision {
  readonly answer: "approved" | "declined";
  readonly channel: Channel;
  readonly person: Person;
  /** Whether they saw exactly the effect with this digest. */
  readonly saw: (digest: string) => boolean;
  /** Until when the decision counts, in milliseconds since 1970; absent: as long as the run waits. */
  readonly until?: number;
}

/** A run that a call has just looked at again, and what begins once it is approved. */
export interface Looked {
  readonly run: Pick<Run, "header">;
  /** Of the effect that it would have now. */
  readonly digest: string;
  /** Starts it; undefined where another process did, and "stale" where it would do something else by now. */
  readonly start: (approved: Approved) => Promise<Run | "stale" | undefined>;
}

/** Starts what a person approved beside changes; undefined and "stale" as `Looked` has them. */
type Grant = (approval: ApprovalRun, approved: Approved, services: ToolServices) => Promise<Run | "stale" | undefined>;

export interface Approved {
  readonly asked: Asked;
  readonly decided: Decided;
}

/** Why a person may not decide, or not there. */
export type Refused =
  | "NOT_THEIRS"
  | "READ_ONLY"
  | "NOT_HERE"
  | "VIEWS_NOT_TRUSTED"
  | "NO_TOKENS"
  | "OWN_REQUEST"
  | "ELSEWHERE";

/**
 * What a decision came to. It counts, another one came first, the person saw another effect, the run would do something
 * else by now, it came too late, or the person may not decide.
 */
export type Outcome =
  | { readonly is: "done"; readonly run?: Run }
  | { readonly is: "decided" | "changed" | "stale" | "expired" }
  | { readonly is: "refused"; readonly why: Refused };

type Rights = Pick<ToolServices, "readOnly" | "confirm" | "trustViews" | "environment" | "project" | "page">;

/**
 * Why a person may not decide on a run; undefined where they may. Who declines sends nothing, so that needs no key of
 * the project, and may be done by who asked.
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
 * Decides on a run, once in all processes: the only way to do so. Every right is checked here; what the person saw is
 * compared with what the run would do now; and the decision stands in the run's record or journal before anything is
 * sent. `looked` is what a call has looked at just now; without it the run has to wait, and is planned again. `grant` does
 * what is no change; absent: that is not decided on here. Throws the errors of planning, and an ExecutionRefusedError.
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
    // The client asks about plans, too, which are listed as such.
    const isAsked = waiting !== undefined || channel === "client";
    return isAsked ? declined(run, decided, services) : { is: "decided" };
  }
  const approved = { asked: ASKED[channel], decided };
  if (looked !== undefined) return decision.saw(looked.digest) ? begun(looked, approved, services) : { is: "changed" };
  if (waiting === undefined || waits === undefined) return { is: "decided" };
  if (waits.stale !== undefined) return { is: "stale" };
  if (!decision.saw(waits.digest)) return { is: "changed" };
  if (!isApproval(waiting)) return approvedChange(waiting, approved, services);
  if (grant === undefined) return { is: "refused", why: "ELSEWHERE" };
  return begun({ run: waiting, digest: "", start: (by) => grant(waiting, by, services) }, approved, services);
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

/** A change that is planned just now, for a decision on it. */
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

/**
 * Starts a run that was planned in the background, by the decision that was given before, or where it needs none;
 * undefined where it needs an approval first.
 */
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
  plan.askedBy("not_needed");
  if (services.confirm !== "off" && needsConfirmation(plan)) return undefined;
  return (await start(plan)) ?? changes.runs.lookAt(header.runId);
}

/** Plans a waiting change again, and starts it if it still does what the person saw. */
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
  plan.facts = { ...plan.facts, effect: state.facts.effect ?? "", waits: now };
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

/**
 * Starts a change that its call has planned just now: by the decision that was given, or where there is none since it
 * needs none. Gives the run, also where another process started it.
 */
export async function startDecided(
  header: ChangeHeader,
  plan: Plan,
  decision: Decision | undefined,
  services: ToolServices,
): Promise<ChangeRun | undefined> {
  const changes = changesOf(services);
  if (decision === undefined) {
    plan.askedBy("not_needed");
    return changes.startOrFind(header, plan);
  }
  const outcome = await decide(header.runId, decision, services, { looked: plannedChange(header, plan, services) });
  if (outcome.is === "refused") throw refusedError();
  return changes.runs.find(header.runId);
}

/** An approval that came through the client of a call, of what it was compared with before if `saw` is not given. */
export function inClient(context: Pick<ToolContext, "person" | "caller">, saw: Decision["saw"] = () => true): Decision {
  return { answer: "approved", channel: "client", person: personOf(context), saw };
}

/** The refusal of an approval that does not count any more by the settings or rights as they are now. */
export function refusedError(): ToolError {
  return new ToolError(
    "by the settings and rights as they are now this approval does not count; nothing was sent",
    "Make the call again: its answer says who has to approve it.",
  );
}

/** The person who answers through the client of a call, or with its token. */
export function personOf({ person, caller }: Pick<ToolContext, "person" | "caller">): Person {
  return { who: person ?? caller, caller };
}

interface ApprovalRequest<R> {
  readonly needsApproval: boolean;
  /** What exactly a person agrees to: an approval of anything else counts for nothing. */
  readonly digest: string;
  readonly message: string;
  /** The same in a sentence, by which a later question tells what has changed. */
  readonly effect: string;
  /** Says how the effect differs from the one that a person was asked about before. */
  readonly changedFrom?: (effect: string) => string;
  readonly undecided?: ToolQuestion["ask"]["undecided"];
  /** Lets a person decide on the page where they closed the question; absent where `undecided` does that. */
  readonly closed?: (() => Promise<ToolAnswer>) | undefined;
  /** Goes ahead; `hints` are for the answer. */
  readonly start: (asked: Asked, hints: readonly string[]) => Promise<R>;
  readonly declined: () => Promise<R> | R;
  /** Lets a person decide in a view or on the page; absent where this cannot be decided there. */
  readonly onPage?: () => Promise<R>;
  /** Answers with a token that means a later approval. */
  readonly token: () => Promise<R>;
  /** What would happen, for an agent whose client cannot ask, where a token is not enough. */
  readonly described: () => string;
}

type NextStep = "start" | "ask" | "page" | "token" | "refuse";

/** Whether a person decides outside of the call, in a view of their client or on the page. */
export function isDecidedElsewhere({ page, inView }: Pick<ToolContext, "page" | "inView">): boolean {
  return inView === true || page?.isOffered() === true;
}

/** Which channel decides: the first that is there. `strict` gives no token. */
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

/**
 * Goes ahead with a wish, or asks a person first: in the client, and when the server calls again with the reply acts on
 * it. Where something changed since they were asked they are asked again. Throws a ToolError where nobody can be asked.
 */
export async function decided<R>(
  wish: ApprovalRequest<R>,
  context: Pick<ToolContext, "confirm" | "canAsk" | "page" | "inView" | "reply">,
): Promise<R | Extract<ToolOutcome, ToolQuestion>> {
  const { reply } = context;
  // What cannot be decided on the page goes on to the next channel.
  const { page, inView, ...others } = context;
  switch (chooseChannel(wish.needsApproval, wish.onPage === undefined ? others : context)) {
    case "start":
      return wish.start("not_needed", []);
    case "token":
      return wish.token();
    case "page":
      if (wish.onPage !== undefined) return wish.onPage();
      throw cannotAsk(wish, context);
    case "refuse":
      throw cannotAsk(wish, context);
    case "ask": {
      if (reply === undefined) return question(wish);
      if (!reply.accepted) return wish.declined();
      const asked = readQuestion(reply.token);
      // What they agreed to is not what would happen now.
      if (asked?.digest !== wish.digest) return question(wish, wish.changedFrom?.(asked?.effect ?? ""));
      return wish.start("agreed_in_client", asked.changed === undefined ? [] : [askedTwiceHint(asked.changed)]);
    }
  }
}

function cannotAsk(
  { described }: Pick<ApprovalRequest<unknown>, "described">,
  { page }: Pick<ToolContext, "page">,
): ToolError {
  return new ToolError(
    `this needs approval, and this client cannot ask a person. ${described()}`,
    page?.remedy ?? STRICT_REMEDY,
  );
}

function question<R>(
  { digest, effect, message, undecided, closed }: ApprovalRequest<R>,
  changed?: string,
): ToolQuestion {
  return {
    ask: {
      message: changed === undefined ? message : changedQuestion(changed, message),
      token: writeQuestion({ digest, effect, ...(changed !== undefined && { changed }) }),
      ...(undecided && { undecided }),
      ...(closed && { onPage: closed }),
    },
  };
}

const askedForm = z.object({ digest: z.string(), effect: z.string(), changed: z.string().exactOptional() });

type Question = Readonly<z.output<typeof askedForm>>;

function writeQuestion(asked: Question): string {
  return JSON.stringify(asked);
}

/** What a reply is about; undefined where it is about something else. */
export function readQuestion(token: string): Question | undefined {
  return askedForm.safeParse(parseJson(token)).data;
}
