import { isJsonObject, type JsonObject } from "../platform/json.ts";
import { EVENT_NAMES, EVENT_SHAPES, ITEM_SHAPE, type Shape } from "./catalogue.ts";
import { closestSpelling, type NearestName, synonymOf } from "./spelling.ts";

/** `mended` describes each correction, such as `eventName addToCart → add_to_cart`. */
interface EventCorrection {
  readonly event: unknown;
  readonly mended: readonly string[];
}

/** Corrects misspelt names, and other systems' names for required parameters (event-tracking-api 2.2, 2.3). */
export function fixSpelling(event: unknown, spelt: NearestName = closestSpelling): EventCorrection {
  if (!isJsonObject(event)) return { event, mended: [] };
  const mended: string[] = [];
  const named = correctEventName(event, spelt, mended);
  const { eventName } = named;
  const shape = typeof eventName === "string" ? EVENT_SHAPES.get(eventName) : undefined;
  if (shape === undefined) return { event: named, mended };
  const whole = correctParameterNames(named, shape, "", { spelt, mended });
  if (!shape.parameters.has("items") || !Array.isArray(whole.items)) return { event: whole, mended };
  const items = whole.items.map((item, position) =>
    isJsonObject(item) ? correctParameterNames(item, ITEM_SHAPE, `items[${position}].`, { spelt, mended }) : item,
  );
  return { event: { ...whole, items }, mended };
}

function correctEventName(event: JsonObject, spelt: NearestName, mended: string[]): JsonObject {
  const { eventName } = event;
  if (typeof eventName !== "string" || EVENT_SHAPES.has(eventName)) return event;
  const right = spelt(eventName, EVENT_NAMES);
  if (right === undefined) return event;
  mended.push(`eventName ${eventName} → ${right}`);
  return { ...event, eventName: right };
}

function correctParameterNames(
  holder: JsonObject,
  { parameters, names, required }: Shape,
  prefix: string,
  { spelt, mended }: { readonly spelt: NearestName; readonly mended: string[] },
): JsonObject {
  const rights = new Map<string, string>();
  for (const name of Object.keys(holder)) {
    const right = parameters.has(name) ? undefined : (spelt(name, names) ?? synonymOf(name, required));
    if (right === undefined || Object.hasOwn(holder, right)) continue;
    // If two names have the same correction, it is unknown which one was meant, so only the first is corrected.
    rights.set(name, [...rights.values()].includes(right) ? name : right);
  }
  if (rights.size === 0) return holder;
  const entries = Object.entries(holder).map(([name, value]) => {
    const right = rights.get(name) ?? name;
    if (right !== name) mended.push(`${prefix}${name} → ${right}`);
    return [right, value] as const;
  });
  return Object.fromEntries(entries);
}
