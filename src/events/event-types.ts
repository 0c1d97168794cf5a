import { EVENT_FIELDS, EVENTS, type EventSpec, ITEM_FIELDS, isEventName, type Parameter } from "../spec/events.ts";
import { EVENT_LIMITS } from "../spec/limits.ts";
import { EVENT_NAMES } from "./catalogue.ts";
import { nearestName } from "./spelling.ts";

const LONGEST_NAME = EVENT_LIMITS.eventNameLength.value;

/** The type of a parameter. `maximum` is the most characters of a string, or the most entries of `items`. */
export interface ParameterType {
  readonly name: string;
  readonly type: Parameter["type"];
  readonly required: boolean;
  readonly maximum?: number;
}

/** A supported event with its parameters, without `uid` and `platform`, which all events can have. */
export type EventType = ReturnType<typeof summaryAtRest>;
export type EventTypeDetail = ReturnType<typeof describeEventType>;

/** Lists the supported events in the order of the document (event-tracking-api 2.2). */
export function listEventTypes(): readonly EventType[] {
  return Object.entries<EventSpec>(EVENTS).map(([eventName, spec]) => summaryAtRest(eventName, spec));
}

/** Returns one event with types and limits (event-tracking-api 2.1 to 2.3, 8). Throws an UnsupportedEventError. */
export function describeEventType(eventName: string) {
  if (!isEventName(eventName)) throw new UnsupportedEventError(eventName);
  const spec: EventSpec = EVENTS[eventName];
  return {
    ...summaryAtRest(eventName, spec),
    fields: parameterTypes(EVENT_FIELDS),
    parameters: parameterTypes(spec.parameters),
    ...(spec.parameters.items && { itemFields: parameterTypes(ITEM_FIELDS) }),
  };
}

/** Thrown for an event name that is not supported. The message suggests the nearest name, or lists all names. */
export class UnsupportedEventError extends RangeError {
  constructor(eventName: string) {
    const near = nearestName(eventName, EVENT_NAMES);
    const hint = near === undefined ? `the events are ${EVENT_NAMES.join(", ")}` : `did you mean "${near}"?`;
    super(`${JSON.stringify(eventName.slice(0, LONGEST_NAME))} is not a supported event; ${hint}`);
  }
}

function summaryAtRest(eventName: string, { meaning, parameters }: EventSpec) {
  const namesThat = (required: boolean): readonly string[] =>
    Object.keys(parameters).filter((name) => parameters[name]?.required === required);
  return { eventName, meaning, required: namesThat(true), optional: namesThat(false) };
}

function parameterTypes(parameters: Readonly<Record<string, Parameter>>): readonly ParameterType[] {
  return Object.entries(parameters).map(([name, { type, required }]) => {
    const maximum = maximumOf(name, type);
    return { name, type, required, ...(maximum !== undefined && { maximum }) };
  });
}

function maximumOf(name: string, type: Parameter["type"]): number | undefined {
  if (name === "eventName") return EVENT_LIMITS.eventNameLength.value;
  if (type === "items") return EVENT_LIMITS.items.value;
  return type === "string" ? EVENT_LIMITS.stringLength.value : undefined;
}
