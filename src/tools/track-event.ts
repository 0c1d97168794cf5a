import * as z from "zod";
import { isApiError } from "../api/errors.ts";
import { countsOf, settledStatus } from "../bulk/report.ts";
import { asMeant } from "../events/as-meant.ts";
import { EventRunState, settledEntry } from "../events/event-run-state.ts";
import { eventsIn, objectOf, sourceOfEvents } from "../events/event-source.ts";
import { observerOf } from "../events/observe.ts";
import type { Verdict } from "../events/rules.ts";
import { sendEvents } from "../events/send.ts";
import type { Settlement } from "../events/settlement.ts";
import { EVENTS, ITEM_FIELDS, type Parameter, type ParameterType } from "../spec/events.ts";
import { eventsOf } from "./apis.ts";
import { type ToolContext, timeLeft } from "./context.ts";
import { type ToolDefinition, ToolError } from "./definition.ts";
import { eventReport, plannedEventReport } from "./event-answer.ts";
import { checkJsonValues, openObject } from "./json-values.ts";
import { dryRunArgument, runOutput } from "./write.ts";

type Fields = Readonly<Record<string, z.ZodOptional<z.ZodType>>>;

/**
 * The documented type of each parameter, as it is advertised. Whatever comes is taken and judged as the service would:
 * a text stays a text where a number is expected, as in track_events.
 */
function fieldsOf(parameters: Readonly<Record<string, Parameter>>): Fields {
  const schemas: Readonly<Record<ParameterType, () => z.ZodType>> = {
    string: () => z.unknown().meta({ type: "string" }),
    number: () => z.unknown().meta({ type: ["number", "string"], description: "a number; a text is sent as text" }),
    items: () =>
      z.unknown().meta({ ...z.toJSONSchema(z.array(z.looseObject(fieldsOf(ITEM_FIELDS)))), $schema: undefined }),
  };
  return Object.fromEntries(Object.entries(parameters).map(([name, { type }]) => [name, schemas[type]().optional()]));
}

/** Every parameter of every event, once (event-tracking-api 2.2). */
function eventParameters() {
  const parameters: Record<string, Parameter> = {};
  for (const event of Object.values(EVENTS)) Object.assign(parameters, event.parameters);
  return fieldsOf(parameters);
}

const input = () =>
  z.strictObject({
    uid: z.string().describe("Identifier of the user; hashed by the service, but it travels in clear"),
    eventName: z.string().describe(Object.keys(EVENTS).join(", ")),
    platform: z.unknown().meta({ type: "string" }).optional().describe("web, android, ios"),
    ...eventParameters(),
    extra: openObject().optional().describe("Parameters that the catalogue does not have"),
    ...dryRunArgument(),
  });

/** Sends one event, unless the service would silently ignore or refuse it. */
export const trackEvent = {
  name: "track_event",
  title: "Send an event",
  description:
    "Sends one user event, with the event's own parameters at the top level. An event that the service would silently " +
    "ignore or refuse is not sent: the answer says which rule it breaks and how to mend it.",
  toolset: "events",
  effect: "adds",
  idempotent: false,
  input,
  output: runOutput,
  async handler({ dryRun, extra, ...given }, context) {
    const { environment } = context;
    const taken = Object.keys(extra ?? {}).filter((name) => Object.hasOwn(given, name));
    if (taken.length > 0) throw new ToolError(`extra repeats ${taken.join(", ")}`, "Give each parameter once.");
    const event = asMeant({ ...given, ...extra });
    checkJsonValues(event);
    if (dryRun) return plannedEventReport({ environment, tool: "track_event" }, eventsIn(sourceOfEvents([event])));
    const state = new EventRunState();
    state.apply({ t: "begin", items: 1, at: 0 });
    state.apply({ t: "events", objects: [objectOf({ index: 0, event })], at: 0 });
    const { counts } = await sendEvents([{ index: 0, event }], {
      api: eventsOf(context),
      clock: context.clock,
      signal: context.signal,
      retryBudgetMs: timeLeft(context),
      onSettled: async (index, settlement) => {
        const observed = settlement.observed ?? (await observedIn(context, event, settlement));
        state.apply(settledEntry(index, { ...settlement, ...(observed && { observed }) }, context.clock.now()));
      },
    });
    state.requests.waitedMs = counts.waitedMs;
    return eventReport({ environment, tool: "track_event", status: settledStatus(countsOf(state)), state });
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

/** What a sandbox kept of an event that it accepted; undefined where it cannot tell, or there is none. */
async function observedIn(
  { environment, sandbox, signal }: ToolContext,
  event: Readonly<Record<string, unknown>>,
  { outcome }: Settlement,
): Promise<Verdict | undefined> {
  if (environment !== "sandbox" || sandbox === undefined || outcome !== "succeeded") return undefined;
  try {
    return await observerOf(sandbox)(event);
  } catch (thrown) {
    // The event is sent, and that is to be told, whether or not it could be looked at.
    if (isApiError(thrown) || signal.aborted) return undefined;
    throw thrown;
  }
}
