import { batch } from "@preact/signals";
import type { EventsMessage, Message, RunsMessage } from "../wire.ts";
import { coverage, events, faults, hello, MOST_EVENTS, notice, runs, targetings, verdicts } from "./state.ts";

/** Writes what an update says into the state, at once. */
export function applyMessages(messages: readonly Message[]): void {
  batch(() => {
    for (const message of messages) applyMessage(message);
  });
}

function applyMessage(message: Message): void {
  switch (message.kind) {
    case "hello":
      hello.value = message;
      break;
    case "notice":
      notice.value = message.text;
      break;
    case "runs":
      applyRuns(message);
      break;
    case "events":
      applyEvents(message);
      break;
    case "targetings":
      targetings.value = message;
      break;
    case "faults":
      faults.value = message;
      break;
  }
}

function applyRuns({ whole, runs: changed, gone = [] }: RunsMessage): void {
  const all = new Map(whole ? [] : runs.value);
  for (const run of changed) all.set(run.runId, run);
  for (const id of gone) all.delete(id);
  runs.value = all;
}

function applyEvents({ whole, events: arrived, counts, coverage: covered }: EventsMessage): void {
  events.value = [...arrived.toReversed(), ...(whole ? [] : events.value)].slice(0, MOST_EVENTS);
  verdicts.value = counts;
  if (covered !== undefined) coverage.value = covered;
}
