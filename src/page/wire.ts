// The types that cross the wire between a server and its page; undefined fields stay behind. Times are milliseconds since
// 1970. All texts are plain text: a server cuts very long ones; the page puts them into text nodes, with escapes for
// invisible characters.

/** The views of the page. A sandbox has the last three, all other servers the first two. */
export type ViewName = "approvals" | "runs" | "events" | "targetings" | "faults";

/** What one update of the stream holds: one or several of these, in the order in which they apply. */
export type Message = Hello | NoticeMessage | RunsMessage | EventsMessage | TargetingsMessage | FaultsMessage;

/** The first message of every stream. */
export interface Hello {
  readonly kind: "hello";
  /** The views that this server has, in the order of the navigation. */
  readonly views: readonly ViewName[];
  /** Which server this is, e.g. `sandbox http://127.0.0.1:4010`, or `live, project shop`. */
  readonly about: string;
  /** Whether a page that lost this server waits for it to come back; else it says that the server has ended. */
  readonly returns: boolean;
  /** Whether the settings are read-only: no Approve, Undo, Cancel or Resume run. */
  readonly readOnly?: boolean;
  /** Whether the person logged in, and so can log out. */
  readonly logsOut?: boolean;
}

/** Something that the person has to know about the session, e.g. that its link was tried a second time. */
interface NoticeMessage {
  readonly kind: "notice";
  readonly text: string;
}

/** Runs that are new or have changed since the last update; the first one of a stream has the recent ones. */
export interface RunsMessage {
  readonly kind: "runs";
  /** The runs of this message are all that there are; others are forgotten. */
  readonly whole?: boolean;
  readonly runs: readonly RunRow[];
  /** IDs of runs that are no longer kept. */
  readonly gone?: readonly string[];
}

/** What the page can ask for a run; each is a POST to `/page/runs/{runId}/{action}`. */
export type RunAction = "approve" | "decline" | "cancel" | "undo" | "resume";

/** How the objects of a run stand. */
export type RunCounts = Readonly<
  Record<"items" | "succeeded" | "alreadyDone" | "failed" | "notApplied" | "unknown" | "pending", number>
> & { readonly skipped?: number };

/** What the status of a run can be, as in the results of tools. */
export const RUN_STATUSES = [
  ...(["succeeded", "partial", "failed", "unknown", "running"] as const),
  ...(["interrupted", "cancelled", "planned", "needs_confirmation"] as const),
];

/** A run as the lists show it. */
export interface RunRow {
  readonly runId: string;
  readonly tool: string;
  readonly status: (typeof RUN_STATUSES)[number];
  readonly startedAt: number;
  readonly updatedAt: number;
  readonly counts: RunCounts;
  readonly environment?: "live" | "sandbox";
  /** Who called the tool, e.g. `local` or `token:ci`. */
  readonly caller?: string;
  readonly project?: string | undefined;
  readonly targeting?: { readonly _id?: string; readonly name?: string | undefined } | undefined;
  readonly requests?: Readonly<Record<"planned" | "sent" | "resent" | "waitedMs", number>>;
  /** Who agreed or declined, and where, in words. */
  readonly decided?: string | undefined;
  /** Why nothing happens to a run that is unfinished, and what makes it go on; or that its record is damaged. */
  readonly standsStill?: string | undefined;
  /** Of a run that waits for a yes. */
  readonly waiting?: Waiting | undefined;
  /** The actions that its buttons are for. */
  readonly actions: readonly RunAction[];
  /** Why an action of `actions` cannot be taken now; its button is disabled, and this sentence stands beside it. */
  readonly disabled?: Readonly<Partial<Record<RunAction, string>>> | undefined;
}

/** What a person has to know to decide on a run. */
export interface Waiting {
  /** Of the effect: a decision names the one that the person saw. */
  readonly digest: string;
  /** The exact effect, as the model is told it. */
  readonly effect: string;
  /** The same by kind and by name. */
  readonly parts: readonly EffectPart[];
  /** What is lost, and what can be undone, one sentence each. */
  readonly lost: readonly string[];
  readonly undoable: readonly string[];
  readonly expiresAt: number;
  /** What has changed since it was planned, one sentence each; it cannot be approved then. */
  readonly stale?: readonly string[] | undefined;
  /** Where it is approved instead of here; it goes when that ends. */
  readonly elsewhere?: "client" | "token" | undefined;
  /** The server that asked has ended: nothing could drive the run. */
  readonly ended?: boolean | undefined;
}

/** What a run does to the objects of one kind, e.g. `Options deleted`. */
export interface EffectPart {
  readonly title: string;
  readonly count: number;
  /** The first ones. */
  readonly objects: readonly EffectObject[];
}

/** An object, and what is said about it, e.g. `12 Context IDs`. */
interface EffectObject {
  readonly name: string;
  readonly says?: string;
}

/** The answer of `GET /page/runs/{runId}/effect?part=N&search=TEXT&from=N`: a page of the objects that fit, of all. */
export interface EffectObjects {
  readonly objects: readonly EffectObject[];
  readonly total: number;
}

/** One run with everything beneath its row: the answer of `GET /page/runs/{runId}`. */
export interface RunDetail {
  readonly run: RunRow;
  readonly failures: readonly FailureRow[];
  readonly failuresOmitted?: number;
  readonly plan?: PlanView;
  /** What can be downloaded, each at `/page/runs/{runId}/{file}`. */
  readonly downloads: readonly RunFile[];
  readonly nextSteps?: readonly string[];
}

export type RunFile = "sheet" | "results" | "rejects" | "removed" | "plan";

/** Objects that did not succeed for one reason. */
export interface FailureRow {
  readonly outcome: "skipped" | "failed" | "notApplied" | "unknown";
  readonly count: number;
  /** Which ones, in words: `items 1-50`, `line 3`. */
  readonly places: string;
  readonly message: string;
  readonly remedy: string;
}

/** The diff of a plan; lists hold the first ones, `omitted` says how many more there are of each kind. */
export interface PlanView {
  readonly targeting: Readonly<Partial<Record<"_id" | "name" | "rename", string | undefined>>>;
  readonly changes: readonly PlanChange[];
  readonly conflicts: readonly PlanDifference[];
  readonly drift: readonly PlanDifference[];
  /** Limits that would be exceeded and other reasons for which it cannot be applied, one sentence each. */
  readonly refused?: readonly string[];
  /** Of a way back: what does not come back as it was, or not at all, one sentence each. */
  readonly differs?: readonly string[];
  readonly omitted?: Readonly<Partial<Record<PlanChange["kind"] | "conflicts" | "drift" | "differs", number>>>;
}

/** The value of a field: of parents the name (null: top level), of Context IDs their number. */
export type ShownValue = string | number | boolean | null;

/** One change of one object. */
export interface PlanChange {
  readonly kind: "created" | "renamed" | "moved" | "contexts" | "settings" | "deleted" | "adopted";
  readonly name: string;
  readonly _id?: string | undefined;
  /** The name of the group in which it is, or will be; absent at the top level. */
  readonly group?: string | undefined;
  readonly from?: ShownValue | undefined;
  readonly to?: ShownValue | undefined;
  readonly added?: number | undefined;
  readonly removed?: number | undefined;
  /** The targeting itself is meant. */
  readonly isTargeting?: boolean | undefined;
}

/** What differs between the base, the file and the service. */
export interface PlanDifference {
  readonly name: string;
  readonly _id?: string | undefined;
  readonly field: string;
  readonly base?: ShownValue | undefined;
  readonly file?: ShownValue | undefined;
  readonly service?: ShownValue | undefined;
}

/** Events that arrived at a sandbox since the last update, and what all of them amount to. */
export interface EventsMessage {
  readonly kind: "events";
  /** Earlier ones are forgotten: the log was reset, or this is the first message of a stream. */
  readonly whole?: boolean;
  /** The newest ones that are not on the page yet, oldest first, at most 100. */
  readonly events: readonly EventRow[];
  readonly counts: Readonly<Record<Verdict, number>>;
  /** Absent where it did not change. */
  readonly coverage?: readonly CoverageRow[];
}

type Verdict = "recorded" | "ignored" | "rejected";

/** An event that arrived; its body is at `GET /page/events/{seq}`. */
export interface EventRow {
  /** Counts from 1 on, in the order of arrival. */
  readonly seq: number;
  readonly at: number;
  readonly verdict: Verdict;
  readonly uid: string | null;
  readonly name: string | null;
  /** What is wrong with it, and what mends it, one sentence each. */
  readonly says: readonly string[];
}

/** The answer of `GET /page/events?filter=…&before=SEQ`: the newest 100 that match, oldest first. */
export interface EventList {
  readonly events: readonly EventRow[];
  readonly older: boolean;
}

/** The answer of `GET /page/events/{seq}`. */
export interface EventBody {
  readonly text: string;
  /** What the real endpoint answered, where events are passed on to one. */
  readonly forwarded?: { readonly status: number; readonly message: string };
}

/** What arrived of one of the events of the documents: how often, and how often with each parameter. */
export interface CoverageRow {
  readonly name: string;
  readonly count: number;
  /** How many of them were not recorded. */
  readonly wrong: number;
  readonly parameters: Readonly<Record<string, number>>;
}

/** The targetings of a sandbox. */
export interface TargetingsMessage {
  readonly kind: "targetings";
  readonly targetings: readonly TargetingRow[];
  /** Changes with every change of any targeting: what was read below one is read again. */
  readonly version: number;
}

/** A targeting with its counts; its options are at `GET /page/targetings/{_id}`. */
export interface TargetingRow {
  readonly _id: string;
  readonly name: string;
  readonly project: string;
  readonly options: number;
}

/**
 * An option or group with its counts. `GET /page/targetings/{_id}?parent=…&search=…&from=N` answers an OptionList:
 * the options of the top level, of a group, or all whose name or Context ID fits.
 */
export interface OptionRow {
  readonly _id: string;
  readonly name: string;
  readonly isGroup: boolean;
  readonly contexts: number;
  readonly children: number;
  /** The group's name, in the answer of a search. */
  readonly group?: string;
}

export interface OptionList {
  readonly options: readonly OptionRow[];
  readonly total: number;
}

/** What the sandbox is told to do wrong. `POST /page/faults` adds a NewFault, `/page/faults/{id}/remove` removes one. */
export interface FaultsMessage {
  readonly kind: "faults";
  readonly faults: readonly FaultRow[];
  /** The operations that a fault can name, and the kinds of faults. */
  readonly operations: readonly string[];
  readonly kinds: readonly string[];
}

export interface FaultRow {
  readonly id: number;
  readonly operation: string;
  readonly kind: string;
  readonly times: string;
  /** How many requests it has counted, and how many of them it has struck. */
  readonly met: number;
  readonly struck: number;
}

export interface NewFault {
  readonly operation: string;
  readonly kind: string;
  readonly times: number;
}

/** The answer to every POST that is not carried out, with its status 4xx: why, in one sentence. */
export interface Refusal {
  readonly message: string;
}

/** The body of each `401`: how a person can log in here; with neither there is no way in but a link. */
export interface LoginWays {
  readonly message: string;
  /** `POST /login` takes `{"token": …}`. */
  readonly token?: boolean;
  /** Path to which a POST begins the login at the authorization server: it answers an IssuerLogin. */
  readonly issuer?: string;
  /** The session goes on once a POST to `/page/renew` has given it another token. */
  readonly renews?: boolean;
}

/** The answer to what opens or renews a session: the token that each request of the page carries from then on. */
export interface OpenedSession {
  readonly session: string;
}

/** What a login at the authorization server begins with. */
export interface IssuerLogin {
  /** Where the person goes. */
  readonly location: string;
  /** What the page keeps until they are back, and sends then together with the query. */
  readonly login: string;
}
