import * as z from "zod";
import { eventsIn } from "../events/event-rows.ts";
import { eventRunsOf } from "./apis.ts";
import { type ToolDefinition, ToolError } from "./definition.ts";
import { eventReport, plannedEventReport } from "./event-answer.ts";
import { followRun } from "./follow-run.ts";
import { fileArguments, openedFile } from "./input-file.ts";
import { checkJsonValues } from "./json-values.ts";
import { dryRunArgument, runOutput } from "./write.ts";

const input = () =>
  z.strictObject({
    events: z
      .array(z.looseObject({}))
      .optional()
      .describe("Each with uid, eventName, platform?, and the event's own parameters at its top level"),
    ...fileArguments("uid, eventName, parameters"),
    onUnknown: z
      .enum(["report", "resend"])
      .default("report")
      .describe("When an answer is lost: report it as unknown, or send again at the risk of recording it twice"),
    ...dryRunArgument(),
  });

/** Sends many events, unless the service would silently ignore or refuse them. */
export const trackEvents = {
  name: "track_events",
  title: "Send events",
  description:
    "Sends any number of events, those of one uid in their order. An event that the service would silently ignore or " +
    "refuse is not sent: failures say, grouped, which rule is broken and how to mend it.",
  toolset: "events",
  effect: "adds",
  idempotent: false,
  input,
  output: runOutput,
  async handler({ events: given, file, encoding, onUnknown, dryRun }, context) {
    const { environment } = context;
    const opened = await openedFile({ file, encoding }, { events: given }, context);
    const events = opened === undefined ? (given ?? []) : await eventsIn(opened);
    if (events.length === 0) throw new ToolError("there are no events to send", "Give events, or a file with rows.");
    for (const [index, event] of events.entries()) checkJsonValues(event, `event ${index}`);
    if (dryRun) return plannedEventReport({ environment, tool: "track_events", events });
    const run = eventRunsOf(context).start({ tool: "track_events", input: { events, onUnknown } }, context.caller);
    await followRun(run, context);
    const { runId } = run.header;
    return eventReport({ environment, tool: "track_events", runId, status: run.status(), state: run.state });
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
