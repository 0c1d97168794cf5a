import type { ByteSource } from "../../platform/held-folder.ts";
import { canonicalJson } from "../../platform/json.ts";
import type { Run } from "../../runs/kind.ts";
import { SAME_CALL_MS } from "../../runs/kind-runs.ts";
import type { ReportedObject } from "../../runs/outcome.ts";
import { type EventCall, type EventRunState, leftOf, resendsUnknown, SAME_EVENT_MS } from "./run-state.ts";
import { type EventSource, eventsIn, objectOf, type SourceEvent } from "./source.ts";

type EventRun = Run<EventCall, EventRunState>;

/** A run that a call would continue. `resends`: whether it would then send events with an unknown result again. */
export interface ContinuedRun {
  readonly run: EventRun;
  readonly resends: boolean;
}

/** An earlier run that sent some of the events of a call, with an unknown result. */
export interface SentWithoutResult {
  readonly runId: string;
  readonly events: readonly SourceEvent[];
}

/** Returns the first of the runs of identical calls that a call would continue or return. `now`: in ms since 1970. */
export function continuedRun(
  runs: readonly EventRun[],
  now: number,
  onUnknown: EventCall["input"]["onUnknown"] = "report",
): ContinuedRun | undefined {
  for (const run of runs) {
    const { header, state } = run;
    const status = run.status();
    const isCancelled = status === "cancelled" && now - state.updatedAt < SAME_CALL_MS;
    if (status === "running" || status === "interrupted" || (isCancelled && leftOf(header.call, state) > 0)) {
      return { run, resends: resendsUnknown(header.call, state) };
    }
    const isUnknown = state.counts().unknown > 0 && now - header.createdAt < SAME_EVENT_MS;
    if (isUnknown) return { run, resends: onUnknown === "resend" };
  }
  return undefined;
}

/**
 * Finds the first of these runs that sent some events of a call with an unknown result. Undefined if none did. The
 * stored events of a run are read only if the call has events with the same user and name.
 */
export async function findSentBefore(
  runs: readonly EventRun[],
  source: EventSource,
  inputOf: (runId: string) => ByteSource,
): Promise<SentWithoutResult | undefined> {
  for (const { header, state } of runs) {
    const { runId, call } = header;
    const unknown = state.objects.filter(({ index }) => state.standing(index) === "unknown");
    const events = await eventsLike(unknown, source);
    if (events.size === 0) continue;
    const found: SourceEvent[] = [];
    let left = unknown.length;
    for await (const batch of eventsIn({ kept: call.input.events, bytes: inputOf(runId) })) {
      for (const { index, event } of batch) {
        if (state.standing(index) !== "unknown") continue;
        left -= 1;
        found.push(...(events.get(canonicalJson(event)) ?? []));
        events.delete(canonicalJson(event));
      }
      if (left === 0 || events.size === 0) break;
    }
    if (found.length > 0) return { runId, events: found.sort((one, other) => one.index - other.index) };
  }
  return undefined;
}

/** Returns the events of a call, by their JSON, that have the user and the name of one of the given objects. */
async function eventsLike(
  objects: readonly ReportedObject[],
  source: EventSource,
): Promise<Map<string, readonly SourceEvent[]>> {
  const keyOf = ({ uid = "", name = "" }: ReportedObject): string => `${uid} ${name}`;
  const keys = new Set(objects.map(keyOf));
  const found = new Map<string, readonly SourceEvent[]>();
  for await (const batch of objects.length === 0 ? [] : eventsIn(source)) {
    for (const one of batch) {
      if (!keys.has(keyOf(objectOf(one)))) continue;
      const json = canonicalJson(one.event);
      found.set(json, [...(found.get(json) ?? []), one]);
    }
  }
  return found;
}
