import * as z from "zod";
import {
  describeEventType,
  type EventType,
  type EventTypeDetail,
  listEventTypes,
  type ParameterType,
} from "../events/event-types.ts";
import { EVENT_LIMITS } from "../spec/limits.ts";
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

function eventTypesText(events: readonly EventType[]): string {
  const lines = events.map(({ eventName, meaning, required, optional }) => {
    const parameters = [...required.map((name) => `${name}*`), ...optional].join(", ");
    return `${eventName} (${meaning})${parameters === "" ? "" : `: ${parameters}`}`;
  });
  return [
    "The supported events. * marks required parameters: without one, the service drops the event and answers ok. Every event needs uid.",
    ...lines,
  ].join("\n");
}

/** Returns a reference of events as text, with the types and limits of their parameters. */
function eventTypesInFull(events: readonly EventTypeDetail[]): string {
  return [
    `* marks required parameters: without one, the service drops or refuses the event. Types are text of at most ${TEXT_LIMIT} characters, or as in brackets.`,
    ...events.map(({ eventName, meaning, fields, parameters, itemFields }) => {
      const entry =
        itemFields === undefined ? "" : `; each entry of items: ${itemFields.map(parameterWords).join(", ")}`;
      return `${eventName} (${meaning}): ${[...fields, ...parameters].map(parameterWords).join(", ")}${entry}`;
    }),
  ].join("\n");
}

const TEXT_LIMIT = EVENT_LIMITS.stringLength.value;

function parameterWords({ name, type, required, maximum }: ParameterType): string {
  const kind =
    type === "items"
      ? ` (array of${maximum === undefined ? "" : ` at most ${maximum}`} objects)`
      : type === "string"
        ? maximum === TEXT_LIMIT
          ? ""
          : ` (at most ${maximum} characters)`
        : ` (${type})`;
  return `${name}${required ? "*" : ""}${kind}`;
}
