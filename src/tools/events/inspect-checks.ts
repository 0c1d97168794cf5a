import type { SandboxEvent } from "../../api/events.ts";
import { type ArrivedEvent, checkExpectations, checkOrder, checkTook } from "../../events/expectations.ts";
import { thousands } from "../../platform/text.ts";
import type { CheckRow, ExpectationRow } from "../../render/arrived-events.ts";
import type { InspectInput } from "./inspect-input.ts";

/** What came of each check that was asked for; order and time are absent where they were not. */
export interface Checks {
  readonly expectations: readonly ExpectationRow[];
  readonly order?: readonly CheckRow[];
  readonly within?: readonly CheckRow[];
  readonly notes: readonly string[];
}

/** Makes each check that was asked for: with `uids` for the events of each of these users by themselves. */
export function checksOf(arrived: readonly SandboxEvent[], given: InspectInput): Checks {
  const { expect = [], inOrder = false, withinMs, uids } = given;
  const parts = uids === undefined ? [{ events: arrived }] : byUser(arrived, new Set(uids));
  const expectations: ExpectationRow[] = [];
  const order: CheckRow[] = [];
  const within: CheckRow[] = [];
  for (const part of parts) {
    const events = part.events.map(arrivedEvent);
    const of = "uid" in part ? { uid: part.uid } : {};
    for (const [index, result] of checkExpectations(events, expect, given).entries()) {
      expectations.push({ ...of, ...("uid" in of && { index }), ...result });
    }
    if (inOrder) order.push({ ...of, ...checkOrder(events, expect) });
    if (withinMs !== undefined) {
      const took = checkTook(events, expect, { inOrder, withinMs });
      within.push({ ...of, ...took, ...(!took.met && { reason: whyLate(took.tookMs, withinMs) }) });
    }
  }
  const isNothingExpected = expect.length === 0 && (inOrder || withinMs !== undefined);
  return {
    expectations,
    ...(inOrder && expect.length > 0 && { order }),
    ...(withinMs !== undefined && expect.length > 0 && { within }),
    notes: isNothingExpected
      ? ["inOrder and withinMs check the events that expect names: none was named, so nothing was checked."]
      : [],
  };
}

function byUser(arrived: readonly SandboxEvent[], uids: ReadonlySet<string>) {
  const events = new Map([...uids].map((uid): readonly [string, SandboxEvent[]] => [uid, []]));
  for (const event of arrived) if (event.uid !== null) events.get(event.uid)?.push(event);
  return [...events].map(([uid, own]) => ({ uid, events: own }));
}

function whyLate(tookMs: number | undefined, withinMs: number): string {
  const allowed = `${thousands(withinMs)} allowed`;
  return tookMs === undefined ? "not all of the expected events came" : `${thousands(tookMs)} ms, ${allowed}`;
}

/** An event as the checks look at it. */
export function arrivedEvent({ body, verdict, at }: SandboxEvent): ArrivedEvent {
  return { body, verdict, arrivedAt: Date.parse(at) };
}
