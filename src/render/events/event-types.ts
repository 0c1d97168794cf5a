import type { EventType, EventTypeDetail, ParameterType } from "../../events/event-types.ts";

/** The catalogue in words, one line for each event. */
export function eventTypesText(events: readonly EventType[]): string {
  const lines = events.map(({ eventName, meaning, required, optional }) => {
    const parameters = [...required.map((name) => `${name}*`), ...optional].join(", ");
    return `${eventName} (${meaning})${parameters === "" ? "" : `: ${parameters}`}`;
  });
  return [
    "The supported events; without a parameter marked * the service silently ignores the event. Every event needs uid.",
    ...lines,
  ].join("\n");
}

/** One event in words, with types and limits. */
export function eventTypeText({ eventName, meaning, fields, parameters, itemFields }: EventTypeDetail): string {
  return [
    `${eventName} (${meaning}). Without what is required the service silently ignores the event, or refuses it.`,
    ...[...fields, ...parameters].map(parameterLine),
    ...(itemFields === undefined ? [] : ["Each entry of items:", ...itemFields.map(parameterLine)]),
  ].join("\n");
}

function parameterLine({ name, type, required, maximum }: ParameterType): string {
  const unit = type === "items" ? "entries" : "characters";
  const limit = maximum === undefined ? "" : `, at most ${maximum} ${unit}`;
  return `- ${name}: ${type === "items" ? "array of objects" : type}${required ? ", required" : ""}${limit}`;
}
