import { EVENT_FIELDS, EVENTS, type EventSpec, ITEM_FIELDS, type Parameter } from "../../spec/events.ts";

/** A set of named parameters, laid out for fast checks. */
export interface Shape {
  readonly parameters: ReadonlyMap<string, Parameter>;
  readonly required: readonly string[];
  readonly names: readonly string[];
}

function shapeOf(parameters: Readonly<Record<string, Parameter>>): Shape {
  const entries = Object.entries(parameters);
  return {
    parameters: new Map(entries),
    required: entries.filter(([, { required }]) => required).map(([name]) => name),
    names: entries.map(([name]) => name),
  };
}

const entries: readonly (readonly [string, EventSpec])[] = Object.entries(EVENTS);

/** The names of the supported events, in the order of the document (event-tracking-api 2.2). */
export const EVENT_NAMES: readonly string[] = entries.map(([name]) => name);

/** Every supported event with its fields, those of 2.1 last (event-tracking-api 2.1, 2.2). */
export const EVENT_SHAPES: ReadonlyMap<string, Shape> = new Map(
  entries.map(([name, { parameters }]) => [name, shapeOf({ ...parameters, ...EVENT_FIELDS })]),
);

/** The fields of an entry of `items` (event-tracking-api 2.3). */
export const ITEM_SHAPE: Shape = shapeOf(ITEM_FIELDS);

/** The fields that any event may have, whatever its name (event-tracking-api 2.1). */
export const COMMON_SHAPE: Shape = shapeOf(EVENT_FIELDS);

/** Whether a value is a JSON object: no array, not null. */
export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
