import type { EventsMessage, FaultsMessage, SandboxMessage, TargetingsMessage } from "./sandbox-wire.ts";

// The types of the data between a server and its page. Undefined fields are omitted. Times are milliseconds since 1970.
// All texts are plain text. A server cuts very long texts. The page puts texts into text nodes and escapes invisible
// characters.

/**
 * The views of the page. A sandbox has only the last three. Other servers have the first three, and the views of their
 * sandbox if they have one.
 */
export type ViewName = "overview" | "approvals" | "runs" | "targetings" | "events" | "faults";

/** A message of the stream. An update contains one or several messages, in the order in which they apply. */
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
  /** The views of this server, in the order of the navigation. */
  readonly views: readonly ViewName[];
  /** The environment of the runs; also that of the sandbox's views, if `sandbox` is absent. */
  readonly environment: ShownEnvironment;
  /** The environment of the sandbox's views, if the runs belong to another one. */
  readonly sandbox?: ShownEnvironment | undefined;
  /**
   * Whether a page that lost this server waits for its return. Otherwise the page reports that the server has ended.
   */
  readonly returns: boolean;
  /** Whether the settings are read-only. There are then no buttons Approve, Undo, Cancel and Resume run. */
  readonly readOnly?: boolean;
  /** Whether the person logged in, and so can log out. */
  readonly logsOut?: boolean;
}

/** The environment that changes and events go to. */
export interface ShownEnvironment {
  readonly kind: "live" | "sandbox";
  /** The name of the project, if it has one. */
  readonly project?: string | undefined;
  /** The service's host, or the sandbox's address. */
  readonly address?: string | undefined;
  /** The name under which the person is logged in, if they logged in. */
  readonly who?: string | undefined;
}

/** A notice about the session, e.g. that its link was tried a second time. */
interface NoticeMessage {
  readonly kind: "notice";
  readonly text: string;
}

/** Runs that are new or have changed since the last update. The first message of a stream has the recent runs. */
export interface RunsMessage {
  readonly kind: "runs";
  /** This message contains all runs. The page drops all others. */
  readonly whole?: boolean;
  readonly runs: readonly RunRow[];
  /** IDs of runs that are no longer stored. */
  readonly gone?: readonly string[];
}

/** The actions of the page on a run. Each is a POST to `/page/runs/{runId}/{action}`. */
export type RunAction = "approve" | "decline" | "cancel" | "undo" | "resume";

/** The number of a run's objects by outcome. */
export type RunCounts = Readonly<
  Record<"items" | "succeeded" | "alreadyDone" | "failed" | "notApplied" | "unknown" | "pending", number>
> & { readonly skipped?: number };

/** The statuses of a run, as in the results of tools. */
export const RUN_STATUSES = [
  ...(["succeeded", "partial", "failed", "unknown", "running"] as const),
  ...(["interrupted", "cancelled", "planned", "needs_confirmation"] as const),
];

/** How many objects a run created, changed and deleted. */
export type ChangeCounts = Readonly<Record<"created" | "changed" | "deleted", number>>;

/** A run in a list. */
export interface RunRow {
  readonly runId: string;
  /** The title of the run, without a full stop, e.g. `Added 3,000 options to Footwear KR`. Long names are cut. */
  readonly title: string;
  readonly tool: string;
  readonly status: (typeof RUN_STATUSES)[number];
  readonly startedAt: number;
  /** When it was approved, if known. The time before that was spent waiting. */
  readonly beganAt?: number | undefined;
  readonly updatedAt: number;
  readonly counts: RunCounts;
  readonly environment?: "live" | "sandbox";
  /** What it changed, if runs of its kind change something. */
  readonly did?: ChangeCounts | undefined;
  /** The caller of the tool, e.g. `local` or `token:ci`. */
  readonly caller?: string;
  /** The client's name for itself, which proves nothing; at most 40 characters. */
  readonly client?: string | undefined;
  /** The name of the call's input file. */
  readonly fileName?: string | undefined;
  readonly project?: string | undefined;
  readonly targeting?: { readonly _id?: string; readonly name?: string | undefined } | undefined;
  readonly requests?: Readonly<Record<"planned" | "sent" | "resent" | "waitedMs", number>>;
  /** Who approved or declined, and where, as text. */
  readonly decided?: string | undefined;
  readonly isDeclined?: boolean | undefined;
  /** The time until which its changes can be undone. */
  readonly undoUntil?: number | undefined;
  /** The reason why an unfinished run makes no progress and how to continue it, or that its record is damaged. */
  readonly standsStill?: string | undefined;
  /** Only for a run that waits for an approval. */
  readonly waiting?: Waiting | undefined;
  /** The actions that have buttons. */
  readonly actions: readonly RunAction[];
  /** The reasons why actions in `actions` cannot be taken now. Their buttons are disabled and the reasons are shown. */
  readonly disabled?: Readonly<Partial<Record<RunAction, string>>> | undefined;
}

/** The facts that a person needs to decide on a run. */
export interface Waiting {
  /** The digest of the effect. A decision names the digest that the person saw. */
  readonly digest: string;
  /** The label of the button, e.g. `Delete 260 options`. */
  readonly act: string;
  readonly counts: ChangeCounts;
  /** How many options it deletes or changes, and the total if known. */
  readonly magnitude?: Magnitude | undefined;
  /** How many options are deleted together with their targetings. */
  readonly optionsInside?: number | undefined;
  /** How many Context IDs are deleted or removed. */
  readonly contextIds?: number | undefined;
  /** The text that a person must type to approve a large deletion, usually the targeting's name. */
  readonly typed?: string | undefined;
  /** The facts about the effect that the label, the figures and the parts do not show; empty if there are none. */
  readonly effect: string;
  /** The effect by kind and name. */
  readonly parts: readonly EffectPart[];
  /** What can be undone, and what cannot: a title, and one sentence each. Absent if nothing in the service changes. */
  readonly undo?: { readonly title: string; readonly notes: readonly string[] } | undefined;
  readonly expiresAt: number;
  /** What has changed since it was planned, one sentence each. If present, the run cannot be approved. */
  readonly stale?: readonly string[] | undefined;
  /** Where it is approved instead of here. Declining is still possible here. */
  readonly elsewhere?: "client" | "token" | undefined;
  /** The server that requested this has ended, and no process can execute the run. */
  readonly ended?: boolean | undefined;
}

/** How large a change is in relation to its targeting. */
interface Magnitude {
  readonly count: number;
  readonly whole?: number | undefined;
  readonly verb: "deleted" | "changed";
  /** The rest of the sentence if whole targetings are deleted. */
  readonly within?: string | undefined;
}

/** The effect of a run on the objects of one kind, e.g. `Options deleted`. */
export interface EffectPart {
  readonly title: string;
  readonly count: number;
  /** The first objects. */
  readonly objects: readonly EffectObject[];
  /**
   * What happens to the objects; `inside`: they are deleted with the object of another part. Absent: the part is a note
   * about objects, e.g. that they cannot be restored.
   */
  readonly kind?: keyof ChangeCounts | "inside" | undefined;
}

/** An object with a note, e.g. `12 Context IDs`. */
interface EffectObject {
  readonly name: string;
  readonly says?: string;
}

/** The answer of `GET /page/runs/{runId}/effect?part=N&search=TEXT&from=N`: a page of the matching objects. */
export interface EffectObjects {
  readonly objects: readonly EffectObject[];
  readonly total: number;
}

/** A step in the history of a run. The page adds the status of the run as the last step. */
export interface StoryStep {
  readonly title: string;
  readonly at?: number | undefined;
  readonly tone: "good" | "bad" | "idle";
}

/** The answer of `GET /page/runs/{runId}/changes?kind=…&search=…&from=N&limit=N`: a page of the changes of a run. */
export interface ChangeList {
  readonly rows: readonly ChangeRow[];
  /** How many rows match the search and kind. */
  readonly total: number;
  readonly counts: ChangeCounts;
  /** How many options of the targeting stay unchanged, if known. */
  readonly unchanged?: number | undefined;
  /** How many Context IDs are deleted with their options, or removed. */
  readonly removed?: number | undefined;
  /** The names and Context IDs of deleted objects are still being read. Request the list again. */
  readonly isReading?: boolean;
  /** Some of the removed Context IDs are not known, so a search finds only names. */
  readonly findsNames?: boolean;
}

/**
 * The change of one object, in the order of the targeting. `before` is absent if it is new, `after` if it is deleted.
 */
export interface ChangeRow {
  readonly kind: keyof ChangeCounts;
  /** The group that it is in afterwards; null: the top level; absent: unknown, or the object is a targeting. */
  readonly group?: string | null | undefined;
  readonly before?: ChangeSide | undefined;
  readonly after?: ChangeSide | undefined;
}

/** An object before or after a change. */
export interface ChangeSide {
  readonly name: string;
  readonly isGroup?: boolean | undefined;
  /** Only if it is moved: its group on this side; null: the top level. */
  readonly within?: string | null | undefined;
  /** How many Context IDs it has, loses or gets, and the first of them. */
  readonly count?: number | undefined;
  readonly contextIds?: readonly string[] | undefined;
  /** A further note, e.g. `shows its sub-options`. */
  readonly says?: string | undefined;
}

/**
 * The answer of `GET /page/runs/{runId}/failures?of=…&from=N`: a page of the rows or items that did not succeed, with an
 * unknown result or not.
 */
export interface ProblemList {
  readonly rows: readonly ProblemRow[];
  readonly total: number;
}

/** One row or item that did not succeed. */
export interface ProblemRow {
  readonly outcome: FailureRow["outcome"];
  /** Its position as text: `line 3`, `item 4`. */
  readonly place: string;
  readonly value: string;
  readonly problem: string;
  readonly suggestion: string;
}

/** A run with all its details: the answer of `GET /page/runs/{runId}`. */
export interface RunDetail {
  readonly run: RunRow;
  readonly story: readonly StoryStep[];
  readonly failures: readonly FailureRow[];
  readonly plan?: PlanView;
  /** The first changes of a run that has not begun, deletions first. */
  readonly changes?: ChangeList | undefined;
  /** What an undo restores, if its changes can be undone: `332 exactly, 12 under new IDs`. */
  readonly undo?: string | undefined;
  /** The files that can be downloaded, each at `/page/runs/{runId}/{file}`. */
  readonly downloads: readonly RunFile[];
  /** For a run that saved a file where its server runs: the path, and what the file contains. */
  readonly saved?: { readonly path: string; readonly says: string } | undefined;
}

export type RunFile = "sheet" | "results" | "rejects" | "removed" | "plan";

/** Objects that did not succeed for the same reason. */
export interface FailureRow {
  readonly outcome: "skipped" | "failed" | "notApplied" | "unknown";
  readonly count: number;
  /** Their positions as text: `items 1-50`, `line 3`. */
  readonly places: string;
  readonly message: string;
  readonly remedy: string;
}

/** What a plan does not change, and why. Lists contain the first entries; `omitted` is the number of further entries. */
export interface PlanView {
  readonly conflicts: readonly PlanDifference[];
  readonly drift: readonly PlanDifference[];
  /** Exceeded limits and other reasons why it cannot be applied, one sentence each. */
  readonly refused?: readonly string[];
  /** Only for an undo plan: what is not restored, or is restored with differences, one sentence each. */
  readonly differs?: readonly string[];
  readonly omitted?: Readonly<Partial<Record<"conflicts" | "drift" | "differs", number>>>;
}

/** The value of a field: for parents the name (null: top level), for Context IDs their number. */
export type ShownValue = string | number | boolean | null;

/** A difference between the base, the file and the service. */
export interface PlanDifference {
  readonly name: string;
  readonly _id?: string | undefined;
  readonly field: string;
  readonly base?: ShownValue | undefined;
  readonly file?: ShownValue | undefined;
  readonly service?: ShownValue | undefined;
}

/** The answer to every POST that is refused, with a status of 4xx and the reason in one sentence. */
export interface Refusal {
  readonly message: string;
}

/** The body of each `401`: the ways to log in. If there are none, the page can only be opened with a link. */
export interface LoginWays {
  readonly message: string;
  /** `POST /login` accepts `{"token": …}`. */
  readonly token?: boolean;
  /** The path for a POST that starts the login at the authorization server. Its answer is an IssuerLogin. */
  readonly issuer?: string;
  /** The session continues after a POST to `/page/renew`, which returns another token. */
  readonly renews?: boolean;
}

/** The answer to requests that open or renew a session: the token that all later requests of the page must contain. */
export interface OpenedSession {
  readonly session: string;
}

/** The start of a login at the authorization server. */
export interface IssuerLogin {
  /** The address that the person is sent to. */
  readonly location: string;
  /** The state that the page stores until the person returns, and then sends together with the query. */
  readonly login: string;
}

/** The paths of the page on its server. */
export const PATHS = {
  page: "/",
  script: "/page/page.js",
  style: "/page/page.css",
  /** The event stream of Messages. */
  stream: "/page/stream",
  /**
   * `/page/runs/{runId}` returns a RunDetail, `/page/runs/{runId}/{file}` a download, and `…/list` all its changes as a
   * CSV file. A POST to `…/{action}` executes it.
   */
  runs: "/page/runs",
  /** `/open/{code}` serves the page. Its script redeems the code with a POST of `{code}` to `redeem`. */
  open: "/open/",
  redeem: "/page/redeem",
  /** A POST of `{token}` logs in, and one to `logout` ends the session. */
  login: "/login",
  logout: "/page/logout",
  /** A POST returns the address of the authorization server, which later redirects the person to `callback`. */
  issuer: "/login/issuer",
  /** Serves the page. Its script sends the query of the redirect in a POST to the same path. */
  callback: "/callback",
  /** A POST checks the person's rights again, and returns a new token for the session. */
  renew: "/page/renew",
  events: "/page/events",
  /** Tests for events and parameters that have not arrived, as a file. */
  eventTests: "/page/events/tests",
  targetings: "/page/targetings",
  faults: "/page/faults",
  reset: "/page/reset",
} as const;

/** The header with the session's token, in every request for data and every POST. */
export const TOKEN_HEADER = "X-Page-Token";
