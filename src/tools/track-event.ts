import * as z from "zod";
import { emptyArgumentNotes, repeatedEventWords } from "../answers/event-messages.ts";
import { eventsIn, sourceOfEvents } from "../events/run/source.ts";
import { parseNestedJson } from "../events/spelling.ts";
import { validateEvent } from "../events/validate.ts";
import { EVENTS, ITEM_FIELDS, type Parameter, type ParameterType } from "../spec/events.ts";
import { sendingOf } from "./apis.ts";
import { checkJsonValues, onUnknownArgument, openObject } from "./arguments.ts";
import { type ToolDefinition, ToolError } from "./define-tool.ts";
import { checkNotSentWithoutResult, eventRunReport, planEvents, plannedEventReport } from "./event-report.ts";
import { followRun } from "./write/within-call.ts";
import { dryRunArgument, runOutput } from "./write/write.ts";

type Fields = Readonly<Record<string, z.ZodOptional<z.ZodType>>>;

/**
 * Returns a schema that shows the documented types of the fields but accepts any values. The values are judged by the
 * rules of the service, which give better messages.
 */
function fieldsOf(parameters: Readonly<Record<string, Parameter>>): Fields {
  const schemas: Readonly<Record<ParameterType, () => z.ZodType>> = {
    string: () => z.unknown().meta({ type: "string" }),
    number: () => z.unknown().meta({ type: ["number", "string"] }),
    items: () =>
      z.unknown().meta({ ...z.toJSONSchema(z.array(z.looseObject(fieldsOf(ITEM_FIELDS)))), $schema: undefined }),
  };
  return Object.fromEntries(Object.entries(parameters).map(([name, { type }]) => [name, schemas[type]().optional()]));
}

function eventParameters() {
  const parameters: Record<string, Parameter> = {};
  for (const event of Object.values(EVENTS)) Object.assign(parameters, event.parameters);
  return fieldsOf(parameters);
}

const input = () =>
  z.strictObject({
    uid: z.string().describe("Identifier of the user; hashed by the service, but sent to it unhashed"),
    eventName: z.string().describe(Object.keys(EVENTS).join(", ")),
    platform: z.unknown().meta({ type: "string" }).optional().describe("web, android, ios"),
    ...eventParameters(),
    extra: openObject().optional().describe("Parameters that the catalogue does not have"),
    ...onUnknownArgument(),
    ...dryRunArgument(),
  });

export const trackEvent = {
  name: "track_event",
  title: "Send an event",
  description:
    "Sends and records one user event, with its parameters at the top level. If the service would drop or refuse it, it is not sent; the answer says how to fix it. If an identical event of the last 10 minutes has an unknown result, nothing is sent. The service dates it when it arrives.",
  toolset: "events",
  effect: "adds",
  idempotent: false,
  input,
  output: runOutput,
  async handler({ dryRun, extra, onUnknown, ...given }, context) {
    const { environment } = context;
    const taken = Object.keys(extra ?? {}).filter((name) => Object.hasOwn(given, name));
    if (taken.length > 0)
      throw new ToolError(
        `the argument extra repeats parameters of the event: ${taken.join(", ")}`,
        "Give each parameter once.",
      );
    const event = parseNestedJson({ ...given, ...extra });
    checkJsonValues(event);
    const emptyNotes = emptyArgumentNotes(validateEvent(event).findings);
    if (dryRun) {
      const planned = await planEvents(eventsIn(sourceOfEvents([event])), context);
      return plannedEventReport({ environment, tool: "track_event" }, planned, { ...context, notes: emptyNotes });
    }
    const planned = { tool: "track_event", source: sourceOfEvents([event]), items: 1, onUnknown } as const;
    await checkNotSentWithoutResult(planned, context);
    const { run, repeat } = await sendingOf(context).sendOne(
      { ...planned, requested: context.requested },
      context.caller,
    );
    await run.kept;
    await followRun(run, context);
    const notes = repeat === undefined ? emptyNotes : [repeatedEventWords(repeat, true)];
    return eventRunReport(run, context, { notes }, planned.source);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
