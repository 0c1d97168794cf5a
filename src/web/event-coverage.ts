import { nearestName } from "../events/spelling.ts";
import { isJsonObject } from "../platform/json.ts";
import { cutText, thousands } from "../platform/text.ts";
import type { ArrivedEvent } from "../sandbox/logs.ts";
import { EVENTS, type EventSpec } from "../spec/events.ts";
import { joined } from "./corrected-event.ts";
import type { CoverageRow, EventFigures, Words } from "./sandbox-wire.ts";

/** How many unknown event names are counted one by one (`MAX_UNKNOWN`), and how many of them a page gets. */
const MAX_UNKNOWN = 1000;
const UNKNOWN_ROWS = 20;
/** The maximum number of characters of an event name in the statistics. */
export const MAX_LETTERS = 200;

export const EVENT_NAMES = Object.keys(EVENTS);

interface Counted {
  count: number;
  wrong: number;
  misspelt: number;
  readonly parameters: Map<string, Record<"count" | "missing" | "doubtful", number> & { readonly required: boolean }>;
}

/**
 * Counts the events of each documented name (event-tracking-api 2.2), and the names that are not supported. An event
 * with a misspelt name counts for the event that was probably meant.
 */
export function coverageCounter() {
  const counted = new Map<string, Counted>(
    Object.entries<EventSpec>(EVENTS).map(([name, { parameters }]) => {
      const entries = Object.entries(parameters).map(
        ([parameter, { required }]) => [parameter, { required, count: 0, missing: 0, doubtful: 0 }] as const,
      );
      return [name, { count: 0, wrong: 0, misspelt: 0, parameters: new Map(entries) }];
    }),
  );
  const unknown = new Map<string, { readonly meant: string | undefined; count: number }>();
  return {
    add({ eventName, verdict, findings }: ArrivedEvent, body: unknown): void {
      const name = eventName ?? "";
      const entry = counted.get(name);
      if (name === "") return;
      if (entry === undefined) {
        const { meant, count } = unknown.get(name) ?? { meant: nearestName(name, EVENT_NAMES), count: 0 };
        const known = counted.get(meant ?? "");
        if (known !== undefined) known.misspelt += 1;
        if (count > 0 || unknown.size < MAX_UNKNOWN) unknown.set(name, { meant, count: count + 1 });
        return;
      }
      if (!isJsonObject(body)) return;
      entry.count += 1;
      if (verdict !== "recorded") entry.wrong += 1;
      for (const [name, parameter] of entry.parameters) if (Object.hasOwn(body, name)) parameter.count += 1;
      for (const { rule, path } of findings) {
        const parameter = entry.parameters.get(path);
        if (parameter === undefined) continue;
        if (rule === "requiredMissing") parameter.missing += 1;
        else if (rule === "wrongType" || rule === "requiredEmpty") parameter.doubtful += 1;
      }
    },
    /** Returns how many events arrived with this name or a misspelling of it. 0 if the name is not counted. */
    received(name: string): number {
      const entry = counted.get(name);
      return entry === undefined ? (unknown.get(name)?.count ?? 0) : entry.count + entry.misspelt;
    },
    rows(): Pick<EventFigures, "coverage" | "unknownNames"> {
      const names = [...unknown].toSorted(([, one], [, other]) => other.count - one.count);
      const rows = [...counted].map(([name, { parameters, ...counts }]): CoverageRow => {
        const as = names.flatMap(([other, { meant, count }]) => (meant === name ? [[other, count] as const] : []));
        const list = [...parameters].map(([parameter, its]) => ({ name: parameter, ...its }));
        return { name, ...counts, parameters: list, ...(as.length > 0 && { note: misspeltAs(as) }) };
      });
      const others = names.filter(([, { meant }]) => meant === undefined).slice(0, UNKNOWN_ROWS);
      return { coverage: rows, unknownNames: others.map(([name, { count }]) => unknownRow(name, count)) };
    },
  };
}

/** The maximum number of misspellings that a row of the coverage names. */
const MAX_MISSPELLINGS = 3;

/** Says how a name was misspelt, the most frequent first: `misspelt as Purchase (92), puchase (45)`. */
function misspeltAs(names: readonly (readonly [name: string, count: number])[]): Words {
  const shown = names
    .slice(0, MAX_MISSPELLINGS)
    .map(([name, count]): Words => [{ code: cutText(name, MAX_LETTERS) }, ` (${thousands(count)})`]);
  return ["misspelt as ", ...joined(names.length > shown.length ? [...shown, ["…"]] : shown)];
}

function unknownRow(name: string, count: number): CoverageRow {
  const shown = name.slice(0, MAX_LETTERS);
  return { name: shown, count, wrong: count, misspelt: 0, parameters: [], note: ["unknown event name"] };
}
