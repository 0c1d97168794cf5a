import type { WriteCall } from "../../src/changes/call.ts";
import { runSchedule } from "./run-schedule.ts";
import type { Schedule } from "./schedule.ts";

/** Runs a schedule. Returns its violations, or the error that it threw. */
export async function violationsOf(schedule: Schedule): Promise<readonly string[]> {
  try {
    return (await runSchedule(schedule)).violations;
  } catch (thrown) {
    return [thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)];
  }
}

/** Removes, one by one, all parts that a schedule does not need to fail. */
export async function shrink(failing: Schedule): Promise<Schedule> {
  let smallest = failing;
  for (let goesOn = true; goesOn; ) {
    goesOn = false;
    for (const smaller of smallerThan(smallest)) {
      if ((await violationsOf(smaller)).length === 0) continue;
      smallest = smaller;
      goesOn = true;
      break;
    }
  }
  return smallest;
}

function* smallerThan(schedule: Schedule): Generator<Schedule> {
  const { faults, others, failingReads, kills, stop } = schedule;
  if (schedule.diskFullAfter !== undefined) yield { ...schedule, diskFullAfter: undefined };
  if (schedule.rival !== undefined) {
    const { rival } = schedule;
    yield { ...schedule, rival: undefined };
    for (const each of withoutOne(rival.faults)) yield { ...schedule, rival: { ...rival, faults: each } };
    for (const call of smallerCalls(rival.call)) yield { ...schedule, rival: { ...rival, call } };
  }
  if (stop !== undefined) yield { ...schedule, stop: undefined };
  for (const each of withoutOne(others)) yield { ...schedule, others: each };
  for (const each of withoutOne(faults)) yield { ...schedule, faults: each };
  for (const each of withoutOne(failingReads)) yield { ...schedule, failingReads: each };
  for (const each of withoutOne(kills)) yield { ...schedule, kills: each };
  for (const call of smallerCalls(schedule.call)) yield { ...schedule, call };
}

function* withoutOne<T>(list: readonly T[]): Generator<readonly T[]> {
  if (list.length > 8) {
    const middle = Math.ceil(list.length / 2);
    yield list.slice(0, middle);
    yield list.slice(middle);
  }
  for (const [position] of list.entries()) yield [...list.slice(0, position), ...list.slice(position + 1)];
}

function* smallerCalls(call: WriteCall): Generator<WriteCall> {
  switch (call.tool) {
    case "create_targetings":
      for (const items of withoutOne(call.input.items)) yield { ...call, input: { items } };
      return;
    case "bulk_add_options":
      for (const items of withoutOne(call.input.items)) yield { ...call, input: { ...call.input, items } };
      return;
    case "rename_targetings":
      for (const items of withoutOne(call.input.items)) yield { ...call, input: { items } };
      return;
    case "update_options":
      for (const items of withoutOne(call.input.items)) yield { ...call, input: { items } };
      return;
    case "update_contexts":
      for (const items of withoutOne(call.input.items)) yield { ...call, input: { ...call.input, items } };
      return;
    case "delete_targeting":
      for (const ids of withoutOne(call.input.ids)) yield { ...call, input: { ids } };
      return;
    case "delete_options":
      for (const ids of withoutOne(call.input.ids ?? [])) yield { ...call, input: { ...call.input, ids } };
  }
}
