import { parseJson } from "../../platform/json.ts";
import { isJsonObject } from "./catalogue.ts";

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Reads an event as it was meant: where `items`, or an entry of it, came as a text that holds the JSON of an array or
 * object, that is what it holds. Every other text stays one, also where a number is expected: what the service makes of
 * it is for the verdict to say, and not for us to change.
 */
export function asMeant(event: JsonObject): JsonObject {
  if (!Object.hasOwn(event, "items")) return event;
  const { items } = event;
  const list = typeof items === "string" ? parseJson(items) : items;
  if (!Array.isArray(list)) return event;
  const entries = list.map(entryAsMeant);
  const isAsGiven = list === items && entries.every((entry, place) => entry === list[place]);
  return isAsGiven ? event : { ...event, items: entries };
}

function entryAsMeant(entry: unknown): unknown {
  const held = typeof entry === "string" ? parseJson(entry) : undefined;
  return isJsonObject(held) ? held : entry;
}
