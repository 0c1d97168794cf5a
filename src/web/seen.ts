import { isApproval } from "../changes/approvals.ts";
import { isChangeRun } from "../changes/change-run.ts";
import type { Run } from "../runs/kind.ts";
import { callerName, DamagedRunError, type RunHeader, undefinedIfUnreadable } from "../runs/store.ts";
import { ulidTime } from "../spec/names-and-contexts.ts";
import type { ToolServices } from "../tools/define-tool.ts";
import { waitingAnywhere, waitingOfAnyKind } from "../tools/write/awaiting-decision.ts";
import type { ShownEnvironment } from "./wire.ts";

/** What a person may see on the page: the runs of one caller, and the runs of others that this person may approve. */
export interface PageScope {
  readonly services: ToolServices;
  /** The caller whose runs are shown. Empty if this person calls no tools. */
  readonly caller: string;
  /** The project whose runs this process can execute, with its name on the page. */
  readonly project: { readonly id: string; readonly name: string };
  /** Set if this person approves runs of other callers. */
  readonly approves?: ApproverScope;
}

interface ApproverScope {
  /** Returns the scope with whose services a run can be executed. Undefined if this person may not approve the run. */
  readonly of: (run: Pick<RunHeader, "project" | "caller">) => PageScope | undefined;
  /** The name under which this person calls tools. Another person must approve the runs of this name. */
  readonly except?: string | undefined;
}

/** Returns the environment of a server as the page shows it. The project is omitted if it has no name of its own. */
export function shownEnvironment(
  { environment, apiUrl }: Pick<ToolServices, "environment" | "apiUrl">,
  { id, name }: PageScope["project"],
): ShownEnvironment {
  return {
    kind: environment,
    project: name === id || name === "" ? undefined : name,
    address: URL.canParse(apiUrl) ? new URL(apiUrl).host : undefined,
  };
}

export interface SeenRun {
  readonly run: Run;
  readonly shown: PageScope;
  /** Whether the run belongs to the caller of the scope. This person can only approve or decline other runs. */
  readonly isOwn: boolean;
}

/** Returns a run if this person may see it: an own run, or one that they may approve here, even after its decision. */
export async function visibleRun(runId: string, shown: PageScope): Promise<SeenRun | undefined> {
  const run = await shown.services.runs.find(runId);
  if (run === undefined) return undefined;
  if (run.header.caller === shown.caller) return { run, shown, isOwn: true };
  const its = isDecidedOnPage(run) ? shown.approves?.of(run.header) : undefined;
  return its && { run, shown: its, isOwn: false };
}

/** Returns the runs of this person's own caller that wait for approval. */
export async function ownWaitingRuns({ services, caller }: PageScope): Promise<readonly Run[]> {
  const waits: Run[] = [];
  for (const runId of await services.runs.open()) {
    const run = await undefinedIfUnreadable(waitingAnywhere(runId, services));
    if (run?.header.caller === caller) waits.push(run);
  }
  return waits;
}

/** Returns the result of a read, or "damaged" if the stored run cannot be read. */
export async function unlessDamaged<T>(reading: Promise<T>): Promise<T | "damaged"> {
  try {
    return await reading;
  } catch (thrown) {
    if (thrown instanceof DamagedRunError) return "damaged";
    throw thrown;
  }
}

/** Returns whether a person decides, or has decided, about a run on the page or in a view, not in the client itself. */
function isDecidedOnPage(run: Run): boolean {
  if (!(isChangeRun(run) || isApproval(run))) return false;
  const { waits, decided } = run.state.facts;
  return (
    (waits !== undefined && waits.elsewhere === undefined) || decided?.where === "page" || decided?.where === "view"
  );
}

export const OWN_REQUEST = "You requested this change yourself, so another person must approve it.";

/** Returns why this person may not approve a run. Undefined if they may. */
export function whyNotApprovable(
  { header: { caller } }: Pick<Run, "header">,
  { approves }: PageScope,
): string | undefined {
  if (approves?.except === undefined || callerName(caller) !== approves.except) return undefined;
  return OWN_REQUEST;
}

/**
 * If a run is this person's own or does not wait for their approval, it is not read again for this many milliseconds. A
 * run that was requested less than `NEW_MS` ago is always read, because it may soon need approval.
 */
const LOOK_AGAIN_MS = 2000;
const NEW_MS = 10_000;

/**
 * Returns a function that returns the runs of other callers that wait for this person's approval. It still returns a
 * run after it was decided, so that the person sees the outcome.
 */
export function runsOfOthers(shown: PageScope): () => Promise<readonly SeenRun[]> {
  const waited = new Set<string>();
  const others = new Map<string, number>();
  const { services } = shown;
  return async () => {
    if (shown.approves === undefined) return [];
    const now = services.clock.now();
    for (const [runId, at] of others) if (now - at > LOOK_AGAIN_MS) others.delete(runId);
    for (const runId of await services.runs.open()) {
      if (waited.has(runId) || others.has(runId)) continue;
      const isWaiting = (await undefinedIfUnreadable(waitingOfAnyKind(runId, services))) !== undefined;
      if (isWaiting && (await visibleRun(runId, shown))?.isOwn === false) waited.add(runId);
      else if (now - ulidTime(runId) > NEW_MS) others.set(runId, now);
    }
    const seen = await Promise.all([...waited].map((runId) => undefinedIfUnreadable(visibleRun(runId, shown))));
    return seen.filter((run) => run !== undefined);
  };
}
