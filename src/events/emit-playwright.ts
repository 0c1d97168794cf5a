import { EVENT_FIELDS, EVENTS, type EventSpec, ITEM_FIELDS } from "../spec/events.ts";
import { EVENT_LIMITS } from "../spec/limits.ts";
import { EMITTED_ENVIRONMENT, EVENT_PATH, emittedHeader } from "./emit-frame.ts";
import { type EventSuite, eventsOf } from "./suite.ts";

/**
 * Writes a Playwright test that opens a page and checks every event that the page sends to the event endpoint against
 * the catalogue (event-tracking-api 2, 7, 8). The events that the suite is about are those that may be asked for.
 */
export function emitPlaywright(suite: EventSuite): string {
  const { address } = EMITTED_ENVIRONMENT;
  const header = emittedHeader(suite, "Run it with: PAGE_URL=https://… npx playwright test <this file>");
  return `${header.map((line) => `// ${line}\n`).join("")}// EXPECTED_EVENTS lists the events that the page must send, separated by commas; PAGE_WAIT_MS is how long it has.
import { expect, test } from "@playwright/test";

const baseUrl = (process.env.${address.variable} ?? ${JSON.stringify(address.fallback)}).replace(/\\/+$/, "");
const pageUrl = process.env.PAGE_URL;
const expected = (process.env.EXPECTED_EVENTS ?? "").split(",").filter((name) => name !== "");
const wait = Number(process.env.PAGE_WAIT_MS ?? 5000);

const fields = ${JSON.stringify(EVENT_FIELDS)};
const itemFields = ${JSON.stringify(ITEM_FIELDS)};
const limits = ${JSON.stringify(limitValues())};
const catalogue = {
${parametersOf(suite)}};

${CHECKS}
test("the page sends its events as the event API records them", async ({ page }) => {
  expect(pageUrl, "PAGE_URL names the page to open").toBeTruthy();
  const events = [];
  page.on("request", (request) => {
    if (request.method() === "POST" && request.url().split("?")[0] === baseUrl + ${JSON.stringify(EVENT_PATH)}) {
      events.push(request.postDataJSON());
    }
  });
  await page.goto(pageUrl, { waitUntil: "networkidle" });
  const missing = () => expected.filter((name) => !events.some((event) => event?.eventName === name));
  const deadline = Date.now() + wait;
  while ((events.length === 0 || missing().length > 0) && Date.now() < deadline) await page.waitForTimeout(50);
  expect(events.length, "the page sent no event to " + baseUrl).toBeGreaterThan(0);
  expect(missing(), "expected events that the page did not send").toEqual([]);
  expect(events.flatMap((event, index) => problemsOf(event).map((problem) => "event " + index + ": " + problem))).toEqual([]);
});
`;
}

/** The parameters of the events that the suite sends, one event per line. */
function parametersOf({ cases }: EventSuite): string {
  const names = new Set(cases.flatMap((one) => eventsOf(one)).map(({ eventName }) => eventName));
  return Object.entries<EventSpec>(EVENTS)
    .filter(([name]) => names.has(name))
    .map(([name, { parameters }]) => `  ${name}: ${JSON.stringify(parameters)},\n`)
    .join("");
}

function limitValues(): Record<string, number> {
  return Object.fromEntries(Object.entries(EVENT_LIMITS).map(([name, { value }]) => [name, value]));
}

const CHECKS = `function problemsOf(event) {
  if (typeof event !== "object" || event === null || Array.isArray(event)) return ["the body is no JSON object"];
  const { eventName } = event;
  if (!Object.hasOwn(catalogue, eventName)) return [JSON.stringify(eventName) + " is no event of this suite"];
  const parameters = { ...fields, ...catalogue[eventName] };
  return [...new Set([...Object.keys(parameters), ...Object.keys(event)])].flatMap((name) =>
    problemsWith(eventName + "." + name, event[name], Object.hasOwn(parameters, name) ? parameters[name] : undefined),
  );
}

function problemsWith(path, value, parameter) {
  if (parameter === undefined) return [path + " is no parameter of this event"];
  if (value === undefined || value === null) return parameter.required ? [path + " is missing"] : [];
  if (parameter.type === "items") return problemsWithItems(path, value);
  if (typeof value !== parameter.type) return [path + " is no " + parameter.type];
  if (value === "" && parameter.required) return [path + " is empty"];
  const tooLong = typeof value === "string" && [...value].length > limits.stringLength;
  return tooLong ? [path + " is longer than " + limits.stringLength + " characters"] : [];
}

function problemsWithItems(path, items) {
  if (!Array.isArray(items)) return [path + " is no array"];
  const tooMany = items.length > limits.items ? [path + " has more than " + limits.items + " entries"] : [];
  const problems = items.flatMap((item, index) =>
    [...new Set([...Object.keys(itemFields), ...Object.keys(item ?? {})])].flatMap((name) =>
      problemsWith(path + "[" + index + "]." + name, item?.[name], Object.hasOwn(itemFields, name) ? itemFields[name] : undefined),
    ),
  );
  return [...tooMany, ...problems];
}
`;
