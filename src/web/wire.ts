import type { EventsMessage, FaultsMessage, SandboxMessage, TargetingsMessage } from "./sandbox-wire.ts";

// The types of the data that a server and its web page exchange. Undefined fields are omitted. Times are milliseconds
// since 1970. Texts are plain text, and the server cuts very long ones. The page must insert them as text nodes, with
// invisible characters escaped.

/**
 * The views of the web page. The page of a sandbox has the last three. Any other server has the first three and, if it
 * has a sandbox, the last three. `faults` is absent if the page may only read the sandbox.
 */
export type ViewName = "overview" | "approvals" | "runs" | "targetings" | "events" | "faults";

/** A message of the stream. An update is a list of messages, which the page applies in order. */
export type Message =
  | Hello
  | NoticeMessage
  | RunsMessage
  | SandboxMessage
  | EventsMessage
  | TargetingsMessage
  | FaultsMessage;

export interface Hello {
  readonly kind: "hello";
  readonly views: readonly ViewName[];
  /** The environment of the runs. Also that of the sandbox's views, if `sandbox` is absent. */
  readonly environment: ShownEnvironment;
  /** The environment of the sandbox's views, if it differs from that of the runs. */
  readonly sandbox?: ShownEnvironment | undefined;
  /** Whether a new server replaces this one when it ends. If not, the page reports the end instead of waiting. */
  readonly returns: boolean;
  /** If true, the page has no buttons that approve, decline, undo, cancel or resume a run. */
  readonly readOnly?: boolean;
  /** Whether the person has logged in and can log out. */
  readonly logsOut?: boolean;
}

export interface ShownEnvironment {
  readonly kind: "live" | "sandbox";
  readonly project?: string | undefined;
  /** The host of the service or of the sandbox, with its port if it has one. */
  readonly address?: string | undefined;
  /** The name of the person who is logged in. Absent if the page needs no login. */
  readonly who?: string | undefined;
}

/** A message for the person about the session, for example that its link was used a second time. */
interface NoticeMessage {
  readonly kind: "notice";
  readonly text: string;
}

/** All runs that the page shows. They are sent whenever one of them has changed. */
interface RunsMessage {
  readonly kind: "runs";
  readonly runs: readonly RunRow[];
}

/** What a person can do with a run. Each action is a POST to `/page/runs/{runId}/{action}`. */
export type RunAction = "approve" | "decline" | "cancel" | "undo" | "resume";

/** How many items of a run have each outcome; `items` is the total. */
export type RunCounts = Readonly<
  Record<"items" | "succeeded" | "alreadyDone" | "failed" | "notApplied" | "unknown" | "pending", number>
> & { readonly skipped?: number };

export const RUN_STATUSES = [
  ...(["succeeded", "partial", "failed", "unknown", "running"] as const),
  ...(["interrupted", "cancelled", "planned", "needs_confirmation"] as const),
];

export type ChangeCounts = Readonly<Record<"created" | "changed" | "deleted", number>>;

export interface RunRow {
  readonly runId: string;
  /** The title without a full stop, for example `Added 3,000 options to Footwear KR`. Long names are cut. */
  readonly title: string;
  readonly tool: string;
  readonly status: (typeof RUN_STATUSES)[number];
  readonly startedAt: number;
  /** When the run was approved, and so began. Absent if it did not wait for approval or if that is unknown. */
  readonly beganAt?: number | undefined;
  readonly updatedAt: number;
  /** When the run ended, if it was undone later. Otherwise it ended at `updatedAt`. */
  readonly endedAt?: number | undefined;
  readonly counts: RunCounts;
  /** The noun for the counted items, in the singular: `row`, `option`, `event`. */
  readonly noun: string;
  readonly environment?: "live" | "sandbox";
  /** What the run changed. Absent for runs that change no objects, such as reads and events. */
  readonly did?: ChangeCounts | undefined;
  /**
   * How the run changed existing objects: how many were renamed or moved, how many now show or hide their sub-options
   * (`exposed`), how many got or lost Context IDs (`extended`, `reduced`), and how many Context IDs were added and
   * removed. `into`: the name of the only group that objects were moved to, or null for the top level. Absent if
   * nothing of this happened, if it is unknown, or while the run is running.
   */
  readonly how?:
    | (Readonly<Partial<Record<"extended" | "reduced", number>>> &
        Readonly<Record<"renamed" | "moved" | "exposed" | "added" | "removed", number>> & {
          readonly into?: string | null | undefined;
        })
    | undefined;
  /** Set if not all objects that the run changes are options: some are groups, or some or all are targetings. */
  readonly has?: "groups" | "targetings" | undefined;
  /** The names of the first two objects that were created, changed and deleted. Renamed ones have the new name. */
  readonly names?: Readonly<Partial<Record<keyof ChangeCounts, readonly string[]>>> | undefined;
  /** How many of the created objects are options of new targetings. */
  readonly optionsInside?: number | undefined;
  /** Set if the run undoes another one. Objects that it creates had been deleted before. */
  readonly isUndo?: true | undefined;
  /** The run that this run undoes. */
  readonly undoes?: string | undefined;
  /** Only in a list: the run that has undone this run completely. Absent if that run was undone itself. */
  readonly undoneBy?: string | undefined;
  readonly caller?: string;
  /** The name that the MCP client gives itself: not verified, at most 40 characters. Shown as the requester. */
  readonly client?: string | undefined;
  /** The person who requested the run on the page, for example `you (ann)`. Absent if an agent requested it. */
  readonly requestedBy?: string | undefined;
  readonly fileName?: string | undefined;
  readonly project?: string | undefined;
  readonly targeting?: { readonly _id?: string; readonly name?: string | undefined } | undefined;
  readonly requests?: Readonly<Record<"planned" | "sent" | "resent" | "waitedMs", number>>;
  /** Who approved or declined the run and where, or that nobody decided in time, as text. */
  readonly decided?: string | undefined;
  readonly isDecidedOnPage?: boolean | undefined;
  readonly isDeclined?: boolean | undefined;
  /** Whether nobody approved or declined the run in time. */
  readonly isExpired?: boolean | undefined;
  readonly undoUntil?: number | undefined;
  /** Why an interrupted run does not continue, often with what to do. For a damaged run: that it is damaged. */
  readonly standsStill?: string | undefined;
  readonly waiting?: Waiting | undefined;
  readonly actions: readonly RunAction[];
  /** The reason for each action that is not possible now. The page disables its button and shows the reason. */
  readonly disabled?: Readonly<Partial<Record<RunAction, string>>> | undefined;
}

/** What a person needs to know to approve or decline a run. */
export interface Waiting {
  /** The digest of the effect. A decision must contain it, so that nobody approves another effect than they saw. */
  readonly digest: string;
  readonly act: string;
  readonly counts: ChangeCounts;
  /** How many objects the run deletes or, if none, changes. `whole`: how many options the targeting has, if known. */
  readonly magnitude?: Magnitude | undefined;
  /** How many options are deleted because their targetings are deleted. */
  readonly optionsInside?: number | undefined;
  /** How many Context IDs are removed, including those of deleted options. */
  readonly contextIds?: number | undefined;
  /** For a deletion of groups: what happens to their sub-options. For an undo: that restored objects get new IDs. */
  readonly consequence?: string | undefined;
  /** Which items the run leaves out, and why. */
  readonly stays?: string | undefined;
  /** Set if another waiting run would delete some of the same objects. `what`: for example `The group is also`. */
  readonly also?: { readonly runId: string; readonly what: string } | undefined;
  /** What a deletion means for campaigns, which the API does not show. In a sandbox: that campaigns are not real. */
  readonly check?: string | undefined;
  /** The text to type to approve the deletion of a targeting or of many objects, usually the name of the targeting. */
  readonly typed?: string | undefined;
  /** Facts about the effect that the button, the counts and the parts do not show. Empty if there are none. */
  readonly effect: string;
  /** The affected objects by kind, with names. */
  readonly parts: readonly EffectPart[];
  /**
   * What can be undone and what cannot: a title and further sentences. Absent if nothing in the service changes.
   * `isImpossible`: nothing can be undone.
   */
  readonly undo?:
    | { readonly title: string; readonly notes: readonly string[]; readonly isImpossible?: true }
    | undefined;
  readonly expiresAt: number;
  /** What has changed since the run was planned, one sentence each. If set, the run can no longer be approved. */
  readonly stale?: readonly string[] | undefined;
  /** Where the run must be approved, if that is not possible on this page. It can still be declined here. */
  readonly elsewhere?: "client" | "token" | undefined;
  /** Set if no process can execute the run from this page, for example because the run is of another project. */
  readonly ended?: boolean | undefined;
}

interface Magnitude {
  readonly count: number;
  readonly whole?: number | undefined;
  readonly verb: "deleted" | "changed";
  /** The count with its noun or nouns: `1 group and 2 options`. */
  readonly what: string;
  /** A text to show after `what`: `without options`. Only if the deleted targetings have no options. */
  readonly within?: string | undefined;
}

/** A part of a run's effect: the objects that the run affects in the same way, for example `Options deleted`. */
export interface EffectPart {
  readonly title: string;
  readonly count: number;
  /** The first objects of the part. The page requests the others when it needs them. */
  readonly objects: readonly EffectObject[];
  /**
   * How the run changes the objects. `inside`: it deletes them together with another object that contains them. Absent
   * if the part is not about changes, but for example about objects that cannot be restored.
   */
  readonly kind?: keyof ChangeCounts | "inside" | undefined;
  /** Set if the page lists the part below the changes, because nothing else names all its objects. */
  readonly isNote?: boolean | undefined;
}

interface EffectObject {
  readonly name: string;
  readonly says?: string;
}

/** The answer of `GET /page/runs/{runId}/effect?part=N&search=TEXT&from=N`: one page of the matching objects. */
export interface EffectObjects {
  readonly objects: readonly EffectObject[];
  readonly total: number;
}

/** A step in the history of a run. The page adds the run's status as the last step. */
export interface StoryStep {
  readonly title: string;
  readonly at?: number | undefined;
  readonly tone: "good" | "bad" | "idle";
}

/** The answer of `GET /page/runs/{runId}/changes?kind=…&search=…&from=N&limit=N`: one page of a run's changes. */
export interface ChangeList {
  readonly rows: readonly ChangeRow[];
  readonly total: number;
  readonly counts: ChangeCounts;
  readonly unchanged?: number | undefined;
  /** The sub-options that move to the top level because their group is deleted, and the names of the first, if read. */
  readonly freed?: { readonly count: number; readonly names: readonly string[] } | undefined;
  /** How many Context IDs are removed, and how many of them with deleted objects (`lost`). */
  readonly removed?: number | undefined;
  readonly lost?: number | undefined;
  /**
   * How many options a waiting deletion removes from each group, the largest first. `name` null: top level. `more`: the
   * number of further groups that are counted together.
   */
  readonly groups?:
    | readonly { readonly name?: string | null; readonly more?: number; readonly count: number }[]
    | undefined;
  /** Set if some objects are still being read from the service. The page must then request the list again. */
  readonly isReading?: boolean;
  /** Set if some of the removed or added Context IDs are unknown. The search then compares only names. */
  readonly findsNames?: boolean;
}

/** The change of one object. `before` is absent if the object is new, `after` if it is deleted. */
export interface ChangeRow {
  readonly isHead?: true | undefined;
  readonly kind: keyof ChangeCounts;
  /** Its group after the change, or before a deletion. Null: top level. Absent: unknown, or it is a targeting. */
  readonly group?: string | null | undefined;
  readonly before?: ChangeSide | undefined;
  readonly after?: ChangeSide | undefined;
}

export interface ChangeSide {
  readonly name: string;
  readonly isGroup?: boolean | undefined;
  /** Only if the object moves: its group before or after the change. Null: top level. */
  readonly within?: string | null | undefined;
  /** How many Context IDs the object has, loses or gets, and some of them: those that match a search come first. */
  readonly count?: number | undefined;
  readonly contextIds?: readonly string[] | undefined;
  /** A further note, for example `shows its sub-options`. */
  readonly says?: string | undefined;
}

/**
 * The answer of `GET /page/runs/{runId}/failures?of=…&from=N`: one page of the rows or items that did not succeed.
 * `of=unknown` selects those with an unknown result, any other value those that failed, were skipped or not applied.
 */
export interface ProblemList {
  readonly rows: readonly ProblemRow[];
  readonly total: number;
  /** If several rows of a file can be one option: how many options and rows the list has. */
  readonly note?: string | undefined;
}

export interface ProblemRow {
  readonly outcome: FailureRow["outcome"];
  readonly place: string;
  /** The name or ID of the object, or the wrong value of an object without a name. */
  readonly value: string;
  readonly problem: string;
  readonly suggestion: string;
}

/** The answer of `GET /page/runs/{runId}/requests?from=N`: one page of the requests that the run sent, in order. */
export interface RequestList {
  readonly rows: readonly RequestRow[];
  readonly total: number;
}

export interface RequestRow {
  readonly at: number;
  /** What the request does, and with how many items: `add options: 50 items`. */
  readonly what: string;
  readonly result: string;
}

/** The answer of `GET /page/runs/{runId}`: a run with all its details. */
export interface RunDetail {
  readonly run: RunRow;
  readonly story: readonly StoryStep[];
  /** How the file of the run was read, for example its encoding, ignored columns and filled cells. */
  readonly reading?: readonly string[];
  readonly failures: readonly FailureRow[];
  /** A text to give to an agent, so that it fixes the failures. Absent if there are none. */
  readonly forAgent?: string | undefined;
  readonly plan?: PlanView;
  /** For a run that is not started, or was not approved: its first changes, deletions first. */
  readonly changes?: ChangeList | undefined;
  /** What an undo would do: `Undo restores 332 of 344 as they were and 12 under new IDs`. Absent if unknown. */
  readonly undo?: string | undefined;
  /** Only for a run that was undone: by which run, if that is known. */
  readonly undone?: UndoneRun | undefined;
  /** The files of the run. Each can be downloaded from `/page/runs/{runId}/{file}`. */
  readonly downloads: readonly RunFile[];
  /** For a run that saved a file on the server's machine: the path, and what the file contains. */
  readonly saved?: { readonly path: string; readonly says: string } | undefined;
}

export interface UndoneRun {
  readonly by?: string | undefined;
  /** How much was undone: `4 of 5 changes undone`. Absent if unknown. */
  readonly says?: string | undefined;
  /** What was not undone, and why: `1 was kept since it was changed later`. */
  readonly rest?: string | undefined;
}

export type RunFile = "sheet" | "results" | "rejects" | "removed" | "plan";

/** The objects that did not succeed for the same reason. */
export interface FailureRow {
  readonly outcome: "skipped" | "failed" | "notApplied" | "unknown";
  /** Set if the objects are events that were deliberately not sent, because they would not count. */
  readonly isHeldBack?: true;
  readonly count: number;
  /** The positions of the objects in the input, as text: `items 1-50`, `line 3`, `lines 3, 9-12 and 8 more`. */
  readonly places: string;
  /** The names or wrong values of the first objects. `areAll`: no object has another one. */
  readonly examples: readonly string[];
  readonly areAll?: boolean | undefined;
  /** The cause in a few words. Absent if there are no such words: the page then shows the message. */
  readonly cause?: string | undefined;
  readonly message: string;
  readonly remedy: string;
}

/** Why a plan cannot be applied, and what it leaves unchanged. `omitted`: how many entries were left out. */
export interface PlanView {
  readonly conflicts: readonly PlanDifference[];
  /** What others have changed and the plan leaves as it is. `says` continues the name to a sentence. */
  readonly drift: readonly { readonly name: string; readonly says: string }[];
  /** Why the plan cannot be applied, for example because of exceeded limits. One sentence each. */
  readonly refused?: readonly string[];
  /** Only for undo plans: what is not restored, or restored with differences. One sentence each. */
  readonly differs?: readonly string[];
  readonly omitted?: Readonly<Partial<Record<"conflicts" | "drift" | "differs", number>>>;
}

/** The value of a field. A parent is shown by its name (null: top level), Context IDs by their number. */
export type ShownValue = string | number | boolean | null;

export interface PlanDifference {
  readonly name: string;
  readonly _id?: string | undefined;
  readonly field: string;
  readonly base?: ShownValue | undefined;
  readonly file?: ShownValue | undefined;
  readonly service?: ShownValue | undefined;
}

/** The body of every response that refuses a request: the reason. */
export interface Refusal {
  readonly message: string;
}

/** The body of every 401 response: how to log in. Without `token` and `issuer`, only a one-time link opens the page. */
export interface LoginWays {
  readonly message: string;
  /** A person can log in with an access token, in a POST of `{"token": …}` to `/login`. */
  readonly token?: boolean;
  /** The path for a POST that starts a login at the authorization server. Its answer is an IssuerLogin. */
  readonly issuer?: string;
  /** Set if the page must renew its session with a POST to `/page/renew`, which returns a new token. */
  readonly renews?: boolean;
}

/** The answer to a request that opens or renews a session. The page must send the token in all later requests. */
export interface OpenedSession {
  readonly session: string;
}

export interface IssuerLogin {
  readonly location: string;
  /**
   * The encrypted state of the login. The page stores it until the authorization server has sent the person back, and
   * then sends it to this server with the query of the address.
   */
  readonly login: string;
}

export const PATHS = {
  page: "/",
  script: "/page/page.js",
  style: "/page/page.css",
  /** Returns the event stream of Messages. */
  stream: "/page/stream",
  /**
   * `/page/runs/{runId}` returns a RunDetail, `/page/runs/{runId}/{file}` a download, and `…/list` all changes as a CSV
   * file. A POST to `/page/runs/{runId}/{action}` executes the action.
   */
  runs: "/page/runs",
  /** `/open/{code}` returns the page. The page's script redeems the code with a POST of `{code}` to `redeem`. */
  open: "/open/",
  redeem: "/page/redeem",
  /** A POST of `{token}` to `login` opens a session, and a POST to `logout` ends it. */
  login: "/login",
  logout: "/page/logout",
  /** A POST returns the authorization server's address for the login, after which the person returns to `callback`. */
  issuer: "/login/issuer",
  /** The path to which the authorization server redirects the browser. A POST of the query of that address logs in. */
  callback: "/callback",
  /** A POST checks the person's rights again and returns a new token for the session. */
  renew: "/page/renew",
  events: "/page/events",
  /** Returns a file with tests for events and parameters that have not arrived. */
  eventTests: "/page/events/tests",
  targetings: "/page/targetings",
  faults: "/page/faults",
  reset: "/page/reset",
} as const;

/** The header with the session's token. Every request for data needs it, and every POST except those that log in. */
export const TOKEN_HEADER = "X-Page-Token";
