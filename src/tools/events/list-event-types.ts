import * as z from "zod";
import { describeEventType, listEventTypes } from "../../events/check/event-types.ts";
import { eventTypesText, eventTypeText } from "../../render/events/event-types.ts";
import type { ToolDefinition } from "../definition.ts";

const input = () =>
  z.strictObject({
    eventName: z.string().optional().describe("Only this event, with types and limits"),
  });

/** Tells which events the service supports, and what each needs. */
export const listEventTypesTool = {
  name: "list_event_types",
  title: "List event types",
  description: "Lists the supported events with their required and optional parameters, or one event in full.",
  toolset: "events",
  effect: "reads",
  idempotent: true,
  input,
  output: () => z.looseObject({ environment: z.string(), events: z.array(z.looseObject({})).optional() }),
  async handler({ eventName }, { environment }) {
    if (eventName === undefined) {
      const { events } = listEventTypes();
      return { structured: { environment, events }, text: eventTypesText(events), isError: false };
    }
    const event = describeEventType(eventName);
    return { structured: { environment, events: [event] }, text: eventTypeText(event), isError: false };
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
