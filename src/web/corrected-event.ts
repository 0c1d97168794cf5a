import { plain } from "../answers/fence.ts";
import { EVENT_SHAPES, ITEM_SHAPE, type Shape } from "../events/catalogue.ts";
import { arrivedFindings } from "../events/coverage.ts";
import { fixSpelling, nearestName, parseNestedJson } from "../events/spelling.ts";
import { sampleParameters } from "../events/suites/generate.ts";
import { validateEvent } from "../events/validate.ts";
import { isJsonObject, type JsonObject, parseJson } from "../platform/json.ts";
import { cutText, thousands } from "../platform/text.ts";
import type { ArrivedEvent } from "../sandbox/logs.ts";
import { EVENT_FIELDS, type Parameter } from "../spec/events.ts";
import { EVENT_LIMITS } from "../spec/limits.ts";
import type { BodyLine, CorrectedEvent, Words } from "./sandbox-wire.ts";

const SEED = 1;
const MAX_LINES = 400;

/**
 * Returns an event with its mistakes corrected: names are fixed, `items` in a string are parsed, a number as `uid`
 * becomes a text, missing required fields get an example value, and too long values are cut. Returns undefined if the
 * event needs no correction or cannot be corrected.
 */
export function correctedEvent(body: unknown): CorrectedEvent | undefined {
  if (!isJsonObject(body)) return undefined;
  if (["recorded", "uncertain"].includes(validateEvent(body).verdict)) return undefined;
  const { event: named, mended } = fixSpelling(parseNestedJson(body), nearestName);
  if (!isJsonObject(named)) return undefined;
  const examples: string[] = [];
  const event = filled(shortened(named), examples);
  if (!["recorded", "uncertain"].includes(validateEvent(event).verdict)) return undefined;
  const text = JSON.stringify(event, null, 2);
  const lines = diffLines(JSON.stringify(body, null, 2).split("\n"), text.split("\n"));
  return { text, lines, examples, renamed: mended.filter((one) => !one.startsWith("eventName ")) };
}

/** Adds example values for missing required fields, and their paths to `examples`. A numeric `uid` becomes a text. */
function filled(event: JsonObject, examples: string[]): JsonObject {
  const uid = typeof event.uid === "number" ? { uid: String(event.uid) } : {};
  const given: JsonObject = { ...event, ...uid };
  const shape = typeof given.eventName === "string" ? EVENT_SHAPES.get(given.eventName) : undefined;
  const common = filledBy(given, { parameters: EVENT_FIELDS, required: ["uid"] }, { prefix: "", examples });
  if (shape === undefined) return common;
  const whole = filledBy(common, fieldsOf(shape), { prefix: "", examples });
  if (!shape.parameters.has("items") || !Array.isArray(whole.items)) return whole;
  const items = whole.items.map((item: unknown, at) =>
    filledBy(isJsonObject(item) ? item : {}, fieldsOf(ITEM_SHAPE), { prefix: `items[${at}].`, examples }),
  );
  return { ...whole, items };
}

interface Fields {
  readonly parameters: Readonly<Record<string, Parameter>>;
  readonly required: readonly string[];
}

function fieldsOf({ parameters, required }: Shape): Fields {
  return { parameters: Object.fromEntries(parameters), required };
}

function filledBy(
  holder: JsonObject,
  { parameters, required }: Fields,
  { prefix, examples }: { readonly prefix: string; readonly examples: string[] },
): JsonObject {
  const lacking = required.filter((name) => name !== "eventName" && (holder[name] ?? undefined) === undefined);
  if (lacking.length === 0) return holder;
  const samples = { ...sampleParameters(parameters, SEED), uid: "user-1" };
  examples.push(...lacking.map((name) => prefix + name));
  const added = Object.entries(samples).filter(([name]) => lacking.includes(name));
  return { ...holder, ...Object.fromEntries(added) };
}

/** Returns the event with texts and lists cut to the limits of the service (event-tracking-api 8). */
function shortened(event: JsonObject): JsonObject {
  const { items } = event;
  const texts = withShortTexts(event);
  if (!Array.isArray(items)) return texts;
  const list = items.slice(0, EVENT_LIMITS.items.value);
  return { ...texts, items: list.map((item: unknown) => (isJsonObject(item) ? withShortTexts(item) : item)) };
}

function withShortTexts(holder: JsonObject): JsonObject {
  const most = EVENT_LIMITS.stringLength.value;
  const short = Object.entries(holder).map(([name, value]) => {
    const isLong = typeof value === "string" && name !== "eventName" && value.length > most;
    return [name, isLong ? [...value].slice(0, most).join("") : value] as const;
  });
  return Object.fromEntries(short);
}

/**
 * Compares two texts line by line. Returns one list with the lines of both: unchanged, removed, added or partly changed
 * ones. If a text has more than `MAX_LINES` lines, returns the lines of `after` as unchanged.
 */
export function diffLines(before: readonly string[], after: readonly string[]): readonly BodyLine[] {
  if (before.length > MAX_LINES || after.length > MAX_LINES) {
    return after.map((text) => [{ is: "same", text }]);
  }
  const lines: BodyLine[] = [];
  const same = commonLines(before, after);
  let [left, right] = [0, 0];
  for (const [atLeft, atRight] of [...same, [before.length, after.length] as const]) {
    const [removed, added] = [before.slice(left, atLeft), after.slice(right, atRight)];
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1) {
      const [old, now] = [removed[at], added[at]];
      if (old !== undefined && now !== undefined) lines.push(...changedLine(old, now));
      else if (old !== undefined) lines.push([{ is: "removed", text: old }]);
      else if (now !== undefined) lines.push([{ is: "added", text: now }]);
    }
    const text = after[atRight];
    if (text !== undefined) lines.push([{ is: "same", text }]);
    [left, right] = [atLeft + 1, atRight + 1];
  }
  return lines;
}

/** Returns a changed line with its differences marked. If little is equal, returns the removed and the added line. */
function changedLine(before: string, after: string): readonly BodyLine[] {
  let start = 0;
  while (start < before.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < Math.min(before.length, after.length) - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  // A difference of only the comma at the end is not shown: it only means that another line follows.
  const isComma = before.replace(/,$/, "") === after.replace(/,$/, "");
  if (isComma) return [[{ is: "same", text: after }]];
  const wordStart = start - (/[\w-]*$/.exec(before.slice(0, start))?.[0].length ?? 0);
  const wordEnd = end - (/^[\w-]*/.exec(before.slice(before.length - end))?.[0].length ?? 0);
  const pieces = [
    { is: "same", text: before.slice(0, wordStart) },
    { is: "removed", text: before.slice(wordStart, before.length - wordEnd) },
    { is: "added", text: after.slice(wordStart, after.length - wordEnd) },
    { is: "same", text: before.slice(before.length - wordEnd) },
  ] as const;
  const kept = (pieces[0].text + pieces[3].text).trim().length;
  if (kept < 4) return [[{ is: "removed", text: before }], [{ is: "added", text: after }]];
  return [pieces.filter(({ text }) => text !== "")];
}

function commonLines(before: readonly string[], after: readonly string[]): readonly (readonly [number, number])[] {
  const width = after.length + 1;
  const longest = new Uint16Array((before.length + 1) * width);
  const at = (left: number, right: number): number => longest[left * width + right] ?? 0;
  for (let left = before.length - 1; left >= 0; left -= 1) {
    for (let right = after.length - 1; right >= 0; right -= 1) {
      longest[left * width + right] =
        before[left] === after[right]
          ? at(left + 1, right + 1) + 1
          : Math.max(at(left + 1, right), at(left, right + 1));
    }
  }
  const pairs: (readonly [number, number])[] = [];
  let [left, right] = [0, 0];
  while (left < before.length && right < after.length) {
    if (before[left] === after[right]) {
      pairs.push([left, right]);
      [left, right] = [left + 1, right + 1];
    } else if (at(left + 1, right) >= at(left, right + 1)) left += 1;
    else right += 1;
  }
  return pairs;
}

/** The maximum numbers of renamed or added fields in a fix, of other corrections in it, and of characters in a name. */
const MAX_NAMES = 6;
const MAX_OTHERS = 2;
const MAX_LETTERS = 200;

/** Returns in one line how to fix an event: `rename transaction_id to tx_id, add method`. */
export function fixOf({ text, isJson, findings }: Pick<ArrivedEvent, "text" | "isJson" | "findings">): Words {
  const body = isJson ? parseJson(text) : undefined;
  const { event, mended } = fixSpelling(isJsonObject(body) ? parseNestedJson(body) : body, nearestName);
  const shape = isJsonObject(event) ? EVENT_SHAPES.get(String(event.eventName)) : undefined;
  const names = new Set(mended.map(withoutPositions));
  const renamed = [...names].filter(
    (one) => one.startsWith(EVENT_NAME) || isRequired(one.split(ARROW)[1] ?? "", shape),
  );
  const left = arrivedFindings({ body: event, findings, ...(body === undefined && { text }) });
  const deciding = left.filter(({ isDecisive }) => isDecisive);
  const added = deciding.filter(({ fix }) => fix.startsWith("add "));
  const others = deciding.filter((one) => !added.includes(one));
  const paths = [...new Set(added.map(({ path }) => withoutPositions(path)))];
  return joined([
    ...renamed.slice(0, MAX_NAMES).map((one): Words => {
      const [from = "", to = ""] = one.replace(EVENT_NAME, "").split(ARROW);
      return ["rename ", name(from), " to ", name(to)];
    }),
    ...(paths.length > 0 ? [["add ", ...joined(paths.slice(0, MAX_NAMES).map((path) => [name(path)]))]] : []),
    ...others.slice(0, MAX_OTHERS).map(({ fix, path }): Words => {
      const rest = fix.replaceAll(/\d{4,}/g, (digits) => thousands(Number(digits)));
      if (rest === "send a value") return [`${rest} for `, name(withoutPositions(path))];
      return rest.startsWith(SHORTEN) ? ["shorten ", name(path), rest.slice(SHORTEN.length)] : [plain(rest)];
    }),
  ]);
}

const EVENT_NAME = "eventName ";
const ARROW = " → ";
const SHORTEN = "shorten it";

function isRequired(path: string, shape: Shape | undefined): boolean {
  return path === "uid" || (shape?.required.includes(path) ?? false) || path === "item_id";
}

function withoutPositions(path: string): string {
  return path.replaceAll(/\[\d+\]/g, "[]");
}

function name(text: string) {
  return { code: cutText(text, MAX_LETTERS) };
}

export function joined(parts: readonly Words[], separator = ", "): Words {
  return parts.flatMap((part, at) => (at === 0 ? part : [separator, ...part]));
}
