import type { EventsMessage, FaultsMessage, SandboxMessage, TargetingsMessage } from "./sandbox-wire.ts";

// The types that cross the wire between a server and its page; undefined fields stay behind. Times are milliseconds since
// 1970. All texts are plain text: a server cuts very long ones; the page puts them into text nodes, with escapes for
// invisible characters.

/** The views of the page. A sandbox alone has the last three; other servers have the first three, and those of their sandbox. */
export type ViewName = "overview" | "approvals" | "runs" | "targetings" | "events" | "faults";

/** What one update of the stream holds: one or several of these, in the order in which they apply. */
export type Message =
  | Hello
  | NoticeMessage
  | RunsMessage
  | SandboxMessage
  | EventsMessage
  | TargetingsMessage
  | FaultsMessage;

/** The first message of every stream. */
export interface Hello {
  readonly kind: "hello";
  /** The views that this server has, in the order of the navigation. */
  readonly views: readonly ViewName[];
  /** What the runs are about, and the sandbox's views where `sandbox` does not say another one. */
  readonly environment: ShownEnvironment;
  /** The sandbox of the views of a sandbox, where the runs are not those of it. */
  readonly sandbox?: ShownEnvironment | undefined;
  /** Whether a page that lost this server waits for it to come back; else it says that the server has ended. */
  readonly returns: boolean;
  /** Whether the settings are read-only: no Approve, Undo, Cancel or Resume run. */
  readonly readOnly?: boolean;
  /** Whether the person logged in, and so can log out. */
  readonly logsOut?: boolean;
}

/** Where changes and events go. */
export interface ShownEnvironment {
  readonly kind: "live" | "sandbox";
  /** The project by its name, where it has one. */
  readonly project?: string | undefined;
  /** The service's host, or the sandbox's address. */
  readonly address?: string | undefined;
  /** As whom the person is logged in, where they logged in. */
  readonly who?: string | undefined;
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

/** How many things a run created, changed and deleted. */
export type DidCounts = Readonly<Record<"created" | "changed" | "deleted", number>>;

/** A run as the lists show it. */
export interface RunRow {
  readonly runId: string;
  /** The run as a sentence without its end, e.g. `Added 3,000 options to Footwear KR`; long names are cut. */
  readonly title: string;
  readonly tool: string;
  readonly status: (typeof RUN_STATUSES)[number];
  readonly startedAt: number;
  /** When it was approved, where that is known: what comes before was waiting. */
  readonly beganAt?: number | undefined;
  readonly updatedAt: number;
  readonly counts: RunCounts;
  readonly environment?: "live" | "sandbox";
  /** What it did, where runs of its kind change something. */
  readonly did?: DidCounts | undefined;
  /** Who called the tool, e.g. `local` or `token:ci`. */
  readonly caller?: string;
  /** What the client of the caller calls itself: at most 40 letters, and proof of nothing. */
  readonly client?: string | undefined;
  /** The name of the file that the call was given. */
  readonly fileName?: string | undefined;
  readonly project?: string | undefined;
  readonly targeting?: { readonly _id?: string; readonly name?: string | undefined } | undefined;
  readonly requests?: Readonly<Record<"planned" | "sent" | "resent" | "waitedMs", number>>;
  /** Who agreed or declined, and where, in words. */
  readonly decided?: string | undefined;
  /** Until when what it did can be undone. */
  readonly undoUntil?: number | undefined;
  /** Why nothing happens to a run that is unfinished, and what makes it go on; or that its record is damaged. */
  readonly standsStill?: string | undefined;
  /** Of a run that waits for an approval. */
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
  /** What the button does, in words: `Delete 260 options`. */
  readonly act: string;
  readonly counts: DidCounts;
  /** How many options it deletes or takes Context IDs from, and of how many, where that is known. */
  readonly magnitude?: Magnitude | undefined;
  /** How many Context IDs go with what is deleted or taken away. */
  readonly contextIds?: number | undefined;
  /** What a person has to type to approve it, since it is large: the targeting's name. */
  readonly typed?: string | undefined;
  /** The exact effect in a sentence. */
  readonly effect: string;
  /** The same by kind and by name. */
  readonly parts: readonly EffectPart[];
  /** What is lost, and what can be undone, one sentence each. */
  readonly lost: readonly string[];
  readonly undoable: readonly string[];
  /** For how many days it can be undone. */
  readonly undoDays?: number | undefined;
  readonly expiresAt: number;
  /** What has changed since it was planned, one sentence each; it cannot be approved then. */
  readonly stale?: readonly string[] | undefined;
  /** Where it is approved instead of here; it goes when that ends. */
  readonly elsewhere?: "client" | "token" | undefined;
  /** The server that asked has ended: nothing could drive the run. */
  readonly ended?: boolean | undefined;
}

/** How much of a whole is concerned. */
interface Magnitude {
  readonly count: number;
  readonly whole?: number | undefined;
  readonly verb: "deleted" | "changed";
  /** What goes with it, where whole targetings are deleted. */
  readonly within?: string | undefined;
}

/** What a run does to the objects of one kind, e.g. `Options deleted`. */
export interface EffectPart {
  readonly title: string;
  readonly count: number;
  /** The first ones. */
  readonly objects: readonly EffectObject[];
  /** It says what becomes of objects beside the changes themselves, e.g. what does not come back. */
  readonly isBeside?: true | undefined;
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

/** A step in the story of a run. */
export interface StoryStep {
  readonly title: string;
  readonly at?: number | undefined;
  /** What is said beside it, e.g. `5 of 5`, or `3 requests, 1 retried`. */
  readonly says?: string | undefined;
  readonly tone: "good" | "warn" | "bad" | "idle";
}

/** The answer of `GET /page/runs/{runId}/changes?kind=…&search=…&from=N&limit=N`: a page of what a run changes or changed. */
export interface ChangeList {
  readonly rows: readonly ChangeRow[];
  /** How many rows fit the search and kind. */
  readonly total: number;
  readonly counts: DidCounts;
  /** How many options of the targeting stay as they are, where that is known. */
  readonly unchanged?: number | undefined;
  /** How many Context IDs go with what is deleted, or are taken away. */
  readonly removed?: number | undefined;
  /** The names and Context IDs of what is deleted are being read: ask again. */
  readonly isReading?: boolean;
  /** Context IDs that go are not known: a search finds names alone. */
  readonly findsNames?: boolean;
}

/** What becomes of one object, in the order of the targeting: `before` is absent where it is new, `after` where it goes. */
export interface ChangeRow {
  readonly kind: keyof DidCounts;
  /** The group that it stands in, afterwards; null: the top level; absent: not known, or it is a targeting. */
  readonly group?: string | null | undefined;
  readonly before?: ChangeSide | undefined;
  readonly after?: ChangeSide | undefined;
}

/** An object before or after a change. */
export interface ChangeSide {
  readonly name: string;
  readonly isGroup?: boolean | undefined;
  /** Of one that is moved: the group that it is in; null: the top level. */
  readonly within?: string | null | undefined;
  /** How many Context IDs it has, loses or gets, and the first of them. */
  readonly count?: number | undefined;
  readonly contextIds?: readonly string[] | undefined;
  /** What else is to be said, e.g. `shows its sub-options`. */
  readonly says?: string | undefined;
}

/** The answer of `GET /page/runs/{runId}/failures?from=N`: a page of what did not succeed, each by itself. */
export interface ProblemList {
  readonly rows: readonly ProblemRow[];
  readonly total: number;
}

/** One row or item that did not succeed. */
export interface ProblemRow {
  readonly outcome: FailureRow["outcome"];
  /** Which one, in words: `line 3`, `item 4`. */
  readonly place: string;
  readonly value: string;
  readonly problem: string;
  readonly suggestion: string;
}

/** One run with everything beneath its row: the answer of `GET /page/runs/{runId}`. */
export interface RunDetail {
  readonly run: RunRow;
  readonly story: readonly StoryStep[];
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

/** The paths of the page, on the server that it came from. */
export const PATHS = {
  page: "/",
  script: "/page/page.js",
  style: "/page/page.css",
  /** The event stream of Messages. */
  stream: "/page/stream",
  /** `/page/runs/{runId}` is a RunDetail, `/page/runs/{runId}/{file}` a download, and a POST to `…/{action}` acts. */
  runs: "/page/runs",
  /** `/open/{code}` serves the page, whose script redeems the code by a POST of `{code}` to `redeem`. */
  open: "/open/",
  redeem: "/page/redeem",
  /** A POST of `{token}` logs in, and one to `logout` ends the session. */
  login: "/login",
  logout: "/page/logout",
  /** A POST gives what is needed to go to the authorization server, which leads back to `callback`. */
  issuer: "/login/issuer",
  /** Serves the page, whose script sends the query with which the person came back by a POST to the same path. */
  callback: "/callback",
  /** A POST has the person's rights looked at again, and gives the token with which the session goes on. */
  renew: "/page/renew",
  events: "/page/events",
  /** Tests for what has not arrived, as a file. */
  eventTests: "/page/events/tests",
  targetings: "/page/targetings",
  faults: "/page/faults",
  reset: "/page/reset",
} as const;

/** The header of every request for data, and of every POST, that holds the session's token. */
export const TOKEN_HEADER = "X-Page-Token";
