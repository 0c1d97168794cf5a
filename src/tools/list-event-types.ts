import * as z from "zod";
import { eventTypesInFull, eventTypesText } from "../answers/arrived-events.ts";
import { describeEventType, listEventTypes } from "../events/event-types.ts";
import { type ToolDefinition, ToolError } from "./define-tool.ts";

const MAX_IN_FULL = 6;

const input = () =>
  z.strictObject({
    eventNames: z
      .array(z.string())
      .min(1)
      .optional()
      .describe(`Only these events, with types and limits; at most ${MAX_IN_FULL}`),
    eventName: z.string().optional().describe("Or one event"),
  });

export const listEventTypesTool = {
  name: "list_event_types",
  title: "List event types",
  description: "Lists the supported events with their required and optional parameters, or some events in full.",
  toolset: "events",
  effect: "reads",
  idempotent: true,
  input,
  output: () => z.looseObject({ environment: z.string(), events: z.array(z.looseObject({})).optional() }),
  async handler({ eventNames = [], eventName }, { environment }) {
    const wanted = [...new Set([...eventNames, ...(eventName === undefined ? [] : [eventName])])];
    if (wanted.length > MAX_IN_FULL) {
      throw new ToolError(
        `${wanted.length} events in full are too many for one answer`,
        `Give at most ${MAX_IN_FULL} names at a time. Without eventNames, all events are listed in short.`,
      );
    }
    if (wanted.length === 0) {
      const events = listEventTypes();
      return { structured: { environment, events }, text: eventTypesText(events), isError: false };
    }
    const events = wanted.map(describeEventType);
    return { structured: { environment, events }, text: eventTypesInFull(events), isError: false };
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
