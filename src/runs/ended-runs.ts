import type { Clock } from "../platform/clock.ts";
import { filesOf, inShort } from "./driving.ts";
import { type KeptRun, readBack } from "./kept-runs.ts";
import type { Ending, RunKind, RunsContext, RunView, ToolCall } from "./kind.ts";
import { ownReason } from "./reasons.ts";
import { restingStatus } from "./report.ts";
import type { RunStore } from "./store.ts";
import type { Lease } from "./turn.ts";

type World = Pick<RunsContext, "store" | "clock">;

/** How a run ends that is cancelled before it was started. */
export const WITHDRAWN: Ending = { cause: "cancelled", reason: ownReason("WITHDRAWN") };
const CANCELLED: Ending = { cause: "cancelled", reason: ownReason("CANCELLED") };

/** Ends a run that was not started, so that nobody can start it any more: false where another driver has. */
export async function withdraw<Call extends ToolCall, Entry, State extends RunView<Entry>, Given>(
  kind: RunKind<Call, Entry, State, Given>,
  world: World,
  runId: string,
  ending: Ending,
): Promise<boolean> {
  if ((await world.store.read(runId))?.started !== false) return false;
  const found = await readBack(kind, world, runId);
  if (found === undefined) return false;
  const lease = await startedBy(world, runId);
  if (lease === undefined) return false;
  try {
    await end(kind, world, found, { ending, lease });
    await world.store.summarise(runId, inShort(kind, found.header, found.state));
  } finally {
    await lease.release();
  }
  return true;
}

/** Ends a run as cancelled that was cut short, and that nobody drives: to be called with its lease. */
export async function cancelInterrupted<Call extends ToolCall, Entry, State extends RunView<Entry>, Given>(
  kind: RunKind<Call, Entry, State, Given>,
  world: World,
  runId: string,
  lease: Lease,
): Promise<void> {
  const found = await readBack(kind, world, runId, true);
  if (found === undefined) return;
  const lost = kind.lost?.(found.state) ?? [];
  for (const entry of lost) found.state.apply(entry);
  if (restingStatus(found.state) !== "interrupted") return;
  await end(kind, world, found, { ending: CANCELLED, lease, lost });
  await bringToRest(kind, world, found);
}

/** Brings a run to rest that nobody drives, where another process left it behind at a crash. */
export async function tidyLeft<Call extends ToolCall, Entry, State extends RunView<Entry>, Given>(
  kind: RunKind<Call, Entry, State, Given>,
  world: World,
  runId: string,
): Promise<void> {
  const { store } = world;
  const told = await store.summary(runId);
  if (told !== undefined && !(told.open && kind.tools.includes(told.tool))) return;
  const seen = await readBack(kind, world, runId);
  if (seen === undefined || told?.updatedAt === seen.state.updatedAt) return;
  const lease = await store.lease(runId);
  if (lease === undefined) return;
  try {
    const found = await readBack(kind, world, runId, true);
    if (found === undefined) return;
    // What was never started is removed after a while, but of this one there is something left to do.
    await store.start(runId);
    for (const entry of kind.lost?.(found.state) ?? []) found.state.apply(entry);
    await bringToRest(kind, world, found);
  } finally {
    await lease.release();
  }
}

async function bringToRest<Call extends ToolCall, Entry, State extends RunView<Entry>, Given>(
  kind: RunKind<Call, Entry, State, Given>,
  { store }: World,
  { header, state }: KeptRun<Call, Entry, State>,
): Promise<void> {
  await kind.finish(filesOf(store, header, state));
  await store.summarise(header.runId, inShort(kind, header, state));
}

/** How a run is ended: `lost` is what a crash left in doubt, which its state knows already. */
interface EndedBy<Entry> {
  readonly ending: Ending;
  readonly lease: Lease;
  readonly lost?: readonly Entry[];
}

/** Ends a run in its journal and its state. What it was only to do so far is in the journal, too, then. */
async function end<Call extends ToolCall, Entry, State extends RunView<Entry>, Given>(
  kind: RunKind<Call, Entry, State, Given>,
  { store, clock }: World,
  { header, state, first = [], lacking }: KeptRun<Call, Entry, State>,
  { ending, lease, lost = [] }: EndedBy<Entry>,
): Promise<void> {
  const journal = await store.journal(header.runId, lease);
  const append = (entry: Entry): void => journal.append(kind.line(entry));
  try {
    for (const entry of first) append(entry);
    for await (const entry of lacking?.() ?? []) append(entry);
    for (const entry of lost) append(entry);
    const stop = kind.stop(ending, clock.now());
    append(stop);
    state.apply(stop);
  } finally {
    await journal.close();
  }
}

/** How often a process looks again whether another one has started a run, in milliseconds. */
const LOOK_AGAIN_MS = 20;

/**
 * Starts a run for the one caller who may drive it first; undefined where somebody else has started it. The lease comes
 * first: so a run that is started and not driven was cut short.
 */
export async function startedBy(
  { store, clock }: { readonly store: Pick<RunStore, "lease" | "start" | "read">; readonly clock: Clock },
  runId: string,
): Promise<Lease | undefined> {
  for (;;) {
    const lease = await store.lease(runId);
    if (lease !== undefined) {
      if (await store.start(runId)) return lease;
      await lease.release();
      return undefined;
    }
    if ((await store.read(runId))?.started !== false) return undefined;
    await clock.sleep(LOOK_AGAIN_MS);
  }
}
