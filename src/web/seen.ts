import { isApproval } from "../approvals/approvals.ts";
import { isChangeRun } from "../changes/change-run.ts";
import type { Run } from "../runs/kind.ts";
import { DamagedRunError, orUnreadable, type RunHeader } from "../runs/store.ts";
import { ulidTime } from "../spec/ulid.ts";
import { callerName, type ToolServices } from "../tools/context.ts";
import { waitingOfAnyKind } from "../tools/write/waiting.ts";
import type { ShownEnvironment } from "./wire.ts";

/** What a person is shown: the runs of one caller, and those of others that they decide on. */
export interface PageScope {
  readonly services: ToolServices;
  /** Whose runs are shown; "" has none. */
  readonly caller: string;
  /** The project that this process could drive runs of; a name to show. */
  readonly project: { readonly id: string; readonly name: string };
  /** The runs of others that are decided on here; absent: there are none. */
  readonly approves?: Approving;
}

/** Which runs of others a person decides on. */
interface Approving {
  /** What could drive a run; undefined where it is not this person's to decide on. */
  readonly of: (run: Pick<RunHeader, "project" | "caller">) => PageScope | undefined;
  /** Whose runs this person does not approve, since they asked for them: the caller's name. */
  readonly except?: string | undefined;
}

/** Where the changes of a server go, as the page shows it: a project is named where it has a name of its own. */
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

/** A run that a person may see, and what could drive it. */
export interface SeenRun {
  readonly run: Run;
  readonly shown: PageScope;
  /** Whether it is one of the caller whose runs are shown: others are only decided on. */
  readonly isOwn: boolean;
}

/** A run of this person, or one that they decide or decided on; undefined where there is none that they may see. */
export async function visibleRun(runId: string, shown: PageScope): Promise<SeenRun | undefined> {
  const run = await shown.services.runs.find(runId);
  if (run === undefined) return undefined;
  if (run.header.caller === shown.caller) return { run, shown, isOwn: true };
  const its = waitedForPerson(run) ? shown.approves?.of(run.header) : undefined;
  return its && { run, shown: its, isOwn: false };
}

/** What `reading` gives; "damaged" where the record of the run is. */
export async function unlessDamaged<T>(reading: Promise<T>): Promise<T | "damaged"> {
  try {
    return await reading;
  } catch (thrown) {
    if (thrown instanceof DamagedRunError) return "damaged";
    throw thrown;
  }
}

/** Whether a run waits, or waited, for a decision outside of the client that asked for it. */
function waitedForPerson(run: Run): boolean {
  if (!(isChangeRun(run) || isApproval(run))) return false;
  const { waits, decided } = run.state.facts;
  return (
    (waits !== undefined && waits.elsewhere === undefined) || decided?.where === "page" || decided?.where === "view"
  );
}

/** What is said where another person has to approve. */
export const OWN_REQUEST = "You asked for this yourself: another person has to approve it.";

/** Why this person may not approve a run; undefined where they may. */
export function notApproved({ header: { caller } }: Pick<Run, "header">, { approves }: PageScope): string | undefined {
  if (approves?.except === undefined || callerName(caller) !== approves.except) return undefined;
  return OWN_REQUEST;
}

/** How long a run that did not wait for a decision is not looked at again, in milliseconds; a new one may be about to. */
const LOOK_AGAIN_MS = 2000;
const NEW_MS = 10_000;

/**
 * Finds the runs of others that wait for this person's decision; they stay among those it gives once they are decided on,
 * so that what becomes of them is seen.
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
      const isWaiting = (await orUnreadable(waitingOfAnyKind(runId, services))) !== undefined;
      if (isWaiting && (await visibleRun(runId, shown))?.isOwn === false) waited.add(runId);
      else if (now - ulidTime(runId) > NEW_MS) others.set(runId, now);
    }
    const seen = await Promise.all([...waited].map((runId) => orUnreadable(visibleRun(runId, shown))));
    return seen.filter((run) => run !== undefined);
  };
}
