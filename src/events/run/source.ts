import { createHash, hash } from "node:crypto";
import { plainHeading } from "../../files/columns.ts";
import { damageIn } from "../../files/damage.ts";
import { BYTE_ORDER_MARK, csvLine } from "../../files/delimited.ts";
import { withDetectedForm } from "../../files/detected-form.ts";
import { isLikeNumber, type NumberForm, numberForm, numberIn } from "../../files/numbers.ts";
import {
  invalidJson,
  invalidRow,
  ndjsonTexts,
  type OpenedFile,
  originalText,
  placeOf,
  type RowShape,
  rowsOf,
} from "../../files/rows.ts";
import type { SheetHeader } from "../../files/sheet-rows.ts";
import { jsonFault } from "../../platform/exact-json.ts";
import { FileError } from "../../platform/files.ts";
import type { ByteSource } from "../../platform/held-folder.ts";
import { isJsonObject, parseJson } from "../../platform/json.ts";
import type { Reason, ReportedObject } from "../../runs/outcome.ts";
import { EVENT_FIELDS, EVENTS, ITEM_FIELDS, type Parameter } from "../../spec/events.ts";
import { closestSpelling, fixSpelling, nearestName, parseNestedJson, remembering, synonymOf } from "../spelling.ts";
import { validateEvent } from "../validate.ts";
import type { EventCall } from "./run-state.ts";

/** The events of a call: how to read them, and the bytes that are stored with the run. */
export interface EventSource {
  readonly kept: KeptEvents;
  readonly bytes: ByteSource;
  readonly size?: number;
  /** Resolves to the counts of the events. Set only if they are still being counted. */
  readonly counting?: Promise<EventCounts>;
}

export interface EventCounts {
  readonly items: number;
  readonly skipped?: number | undefined;
  readonly repeatedPurchases?: RepeatedPurchases;
}

/** How to read the stored events: in the form of the caller's file, or as one JSON text per line. */
type KeptEvents = EventCall["input"]["events"];

export interface SourceEvent {
  readonly index: number;
  readonly line?: number;
  readonly event: unknown;
  readonly text?: string;
  readonly reason?: Reason;
  /** What a row contains that was refused while it was read. It has no event. */
  readonly row?: unknown;
  /** How many empty rows were skipped right before this event. For the last event, those after it count as well. */
  readonly skipped?: number;
  readonly mended?: readonly string[];
}

const EVENTS_PER_CHUNK = 500;

export function sourceOfEvents(events: readonly object[], autocorrect = false): EventSource {
  const hash = createHash("sha256");
  const chunks: Uint8Array[] = [];
  for (let from = 0; from < events.length; from += EVENTS_PER_CHUNK) {
    const lines = events.slice(from, from + EVENTS_PER_CHUNK).map((event) => `${JSON.stringify(event)}\n`);
    const chunk = Buffer.from(lines.join(""));
    hash.update(chunk);
    chunks.push(chunk);
  }
  const size = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  const bytes = async function* (): AsyncGenerator<Uint8Array> {
    yield* chunks;
  };
  return { kept: { digest: hash.digest("hex"), ...(autocorrect && CORRECTING) }, bytes, size };
}

export function sourceOfFile({ file, bytes, size }: OpenedFile, autocorrect = false): EventSource {
  return { kept: { digest: file.digest, file, ...(autocorrect && CORRECTING) }, bytes, size };
}

const CORRECTING = { mend: true } as const;

/** Yields the events in batches, their names corrected with autocorrect. Throws a FileError for an unreadable file. */
export async function* eventsIn(source: EventSource): AsyncGenerator<readonly SourceEvent[]> {
  if (!source.kept.mend) {
    yield* readUncorrected(source);
    return;
  }
  const spelt = remembering(closestSpelling);
  for await (const batch of readUncorrected(source)) {
    yield batch.map((given) => {
      const { event, mended } = fixSpelling(given.event, spelt);
      if (mended.length === 0) return given;
      const { text: _, ...rest } = given;
      return { ...rest, event, mended: [...(given.mended ?? []), ...mended] };
    });
  }
}

export function rowsOfEvents({ mend }: Pick<KeptEvents, "mend">): RowShape<EventRow> {
  return mend ? correctingEventRows : eventRows;
}

/** Yields the events in batches. Corrects no names, except those of columns if autocorrect is on. */
export async function* readUncorrected({ kept, bytes }: EventSource): AsyncGenerator<readonly SourceEvent[]> {
  if (kept.file !== undefined) {
    const shape = rowsOfEvents(kept);
    let corrected: readonly CorrectedColumn[] = [];
    let headings: readonly string[] = [];
    const rows = rowsOf(bytes, kept.file, shape, (header) => {
      headings = header.cells;
      const chosen = kept.file?.given?.columns ?? {};
      corrected = correctedColumns(header).filter(({ right }) => !Object.hasOwn(chosen, right));
    });
    for await (const batch of rows) {
      yield batch.map(({ content, skipped, raw, ...row }) => {
        const place = { ...placeOf(row), ...(skipped !== undefined && { skipped }) };
        if (!("item" in content)) {
          return { ...place, event: null, reason: content.reason, row: cellsByHeading(raw, headings) };
        }
        const mended = corrected.filter(({ right }) => Object.hasOwn(content.item, right)).map(({ words }) => words);
        return { ...place, event: content.item, ...(mended.length > 0 && { mended }) };
      });
    }
    return;
  }
  let index = 0;
  for await (const lines of ndjsonTexts(bytes, "utf-8")) {
    yield lines.map(({ text }) => ({ index: index++, event: JSON.parse(text), text }));
  }
}

function cellsByHeading(row: readonly string[] | string, headings: readonly string[]): unknown {
  if (typeof row === "string") return originalText(row);
  const cells = row.map((cell, at) => [headings[at] ?? `column ${at + 1}`, cell] as const);
  return Object.fromEntries(cells.filter(([, cell]) => cell !== ""));
}

interface CorrectedColumn {
  readonly right: string;
  readonly words: string;
}

function correctedColumns({ names, cells }: SheetHeader): readonly CorrectedColumn[] {
  return names.flatMap((right, at) => {
    const wrong = cells[at]?.trim() ?? right;
    return right === "" || plainHeading(right) === plainHeading(wrong) ? [] : [{ right, words: `${wrong} → ${right}` }];
  });
}

/** Returns what reports show of an event. A hash replaces the user's identifier, as in the service. */
export function objectOf({ index, line, event, mended }: SourceEvent): ReportedObject {
  const corrections = mended?.slice(0, MAX_STORED_CORRECTIONS).map((one) => one.slice(0, MAX_CORRECTION_LENGTH));
  const place = { index, ...(line !== undefined && { line }), ...(corrections && { mended: corrections }) };
  if (!isJsonObject(event)) return place;
  const { eventName, uid } = event;
  return {
    ...place,
    ...(typeof eventName === "string" && { name: eventName.slice(0, LONGEST_NAME) }),
    ...(typeof uid === "string" && { uid: hash("sha256", uid, "hex") }),
  };
}

const LONGEST_NAME = 100;
const MAX_STORED_CORRECTIONS = 10;
const MAX_CORRECTION_LENGTH = 160;

/** Replaces an event that is removed from the stored copy, so that the other events keep their indexes. */
const GONE = { cells: ["-"], text: "{}" } as const;

/**
 * Yields a copy of the events. A placeholder replaces each event that is not wanted, so every other event keeps its
 * index. Line numbers may differ from those in the source.
 */
export async function* filterEvents(
  { kept, bytes }: EventSource,
  isKept: (index: number) => boolean,
): AsyncGenerator<string | Uint8Array> {
  const { file } = kept;
  if (file === undefined) {
    for await (const batch of eventsIn({ kept: { digest: "" }, bytes })) {
      yield batch.map(({ index, text = GONE.text }) => `${isKept(index) ? text : GONE.text}\n`).join("");
    }
    return;
  }
  // The copy is UTF-8, even if the file had another encoding. The byte order mark says so.
  yield BYTE_ORDER_MARK;
  const isArray = file.format === "json";
  let before = isArray ? "[" : "";
  let header: readonly string[] = [];
  const rows = rowsOf(bytes, file, rowsOfEvents(kept), ({ cells }) => {
    header = cells;
  });
  // A workbook has no delimiter, so its copy is separated by commas.
  const delimiter = (await withDetectedForm(bytes, file, rowsOfEvents(kept))).sheet?.delimiter ?? ",";
  for await (const batch of rows) {
    const lines = header.length > 0 ? [csvLine(header, delimiter)] : [];
    header = [];
    for (const { index, raw } of batch) {
      const row = isKept(index) ? raw : GONE[typeof raw === "string" ? "text" : "cells"];
      lines.push(typeof row === "string" ? `${before}${row}\n` : csvLine(row, delimiter));
      before = isArray ? "," : "";
    }
    yield lines.join("");
  }
  if (isArray) yield before === "[" ? "[]" : "]";
}

export async function countEvents(events: AsyncIterable<readonly SourceEvent[]>): Promise<EventCounts> {
  const counts = { items: 0, skipped: 0 };
  const purchases = repeatedPurchases();
  for await (const batch of events) {
    counts.items += batch.length;
    for (const one of batch) {
      counts.skipped += one.skipped ?? 0;
      purchases.take(one);
    }
  }
  return { ...counts, repeatedPurchases: purchases.found };
}

/** Purchases to send that have the tx_id of an earlier one. `first`: the lines or numbers of the first such purchases. */
export interface RepeatedPurchases {
  readonly count: number;
  readonly first: readonly number[];
}

const REPEATED_NAMED = 5;

export function repeatedPurchases() {
  const known = new Set<string>();
  const nearest = remembering(nearestName);
  const found = { count: 0, first: Array.of<number>() };
  return {
    found,
    take({ event, index, line = index + 1 }: Pick<SourceEvent, "event" | "index" | "line">): void {
      if (!isJsonObject(event) || event.eventName !== "purchase" || typeof event.tx_id !== "string") return;
      const { verdict } = validateEvent(event, nearest);
      if (verdict === "ignored" || verdict === "rejected") return;
      if (known.has(event.tx_id)) {
        found.count += 1;
        if (found.count <= REPEATED_NAMED) found.first.push(line);
      } else known.add(event.tx_id);
    },
  };
}

export type EventRow = Readonly<Record<string, unknown>>;

const PARAMETERS: ReadonlyMap<string, Parameter> = new Map(
  [EVENT_FIELDS, ...Object.values(EVENTS).map(({ parameters }) => parameters)].flatMap(Object.entries<Parameter>),
);

/** The columns of a file of events, besides those such as `items.0.item_id`. A cell of `items` contains JSON. */
const EVENT_COLUMNS: readonly string[] = [...PARAMETERS.keys()];

/** Matches `items.0.item_id` and `items[0].item_id`. */
const ITEM_COLUMN = /^items[.[](\d{1,4})\]?\.(\w+)$/;
const ITEM_PARAMETERS: Readonly<Record<string, Parameter>> = ITEM_FIELDS;

function itemColumn(heading: string): string | undefined {
  const [, item = "", field = ""] = ITEM_COLUMN.exec(heading) ?? [];
  return Object.hasOwn(ITEM_PARAMETERS, field) ? `items.${Number(item)}.${field}` : undefined;
}

/** Returns what a column contains: a parameter, or a field of the item whose index is in the column's name. */
function partsOf(column: string) {
  const [, item, field = ""] = ITEM_COLUMN.exec(column) ?? [];
  if (item === undefined) return { column, parameter: PARAMETERS.get(column), field };
  return { column, parameter: ITEM_PARAMETERS[field], item: Number(item), field };
}

/** How to read files of events. An empty cell means that the event does not have the parameter. */
const eventRows: RowShape<EventRow> = {
  columns: EVENT_COLUMNS,
  required: [["uid"], ["eventName"]],
  // An unknown column is an error. Otherwise, a misspelt parameter would be lost.
  isStrict: true,
  isNumeric: (column) => partsOf(column).parameter?.type === "number",
  spelt: itemColumn,
  nearest: nearestName,
  fromCells(header, more) {
    const columns = header.names
      .filter((column) => column !== "")
      .map((column) => ({ ...partsOf(column), form: numberForm(column, more) }));
    if (columns.some(({ item }) => item !== undefined) && header.at("items") >= 0) {
      throw new FileError(
        'the file has both a column "items" and columns such as "items.0.item_id"',
        "Keep only one of these two forms.",
      );
    }
    return (cells) => {
      const event: Record<string, unknown> = {};
      const items: Record<string, unknown>[] = [];
      for (const { column, parameter, item, field, form } of columns) {
        const cell = cells[header.at(column)] ?? "";
        if (cell === "") continue;
        const invalid = damagedCell(column, cell, parameter) ?? invalidItems(column, cell, parameter);
        if (invalid !== undefined) return invalid;
        const value = cellValue(cell, parameter, form);
        if (value === cell && parameter?.type === "number" && isLikeNumber(cell)) {
          return invalidRow("damaged", { what: column, value: cell.slice(0, 40), damage: "number" });
        }
        if (item === undefined) event[column] = value;
        else items[item] = { ...items[item], [field]: value };
      }
      const filled = items.filter((item) => item !== undefined);
      return { item: filled.length === 0 ? event : { ...event, items: filled } };
    };
  },
  fromValue: (value) => ({ item: parseNestedJson(Object.fromEntries(Object.entries(Object(value)))) }),
  merge: () => undefined,
  rest: (row, failed) => failed.map(({ reason }) => ({ row, reason })),
};

const correctingEventRows: RowShape<EventRow> = {
  ...eventRows,
  spelt: (name) => itemColumn(name) ?? closestSpelling(name, EVENT_COLUMNS) ?? synonymOf(name, EVENT_COLUMNS),
};

/** Kinds of damage that do not matter here: titles and product names may look like that. */
const HARMLESS: readonly string[] = ["truth", "date", "apostrophe", "quoted", "bullet", "wide", "invisible"];

/** Kinds of damage that turn an ID into a number such as 1.2E+5. In a number parameter, they are no damage. */
const NUMERIC: readonly string[] = ["scientific", "decimal"];

/** Returns a reason if a spreadsheet or another program has probably changed a cell. */
function damagedCell(column: string, cell: string, parameter: Parameter | undefined) {
  const found = damageIn(cell);
  if (found === undefined || HARMLESS.includes(found.damage)) return undefined;
  if (NUMERIC.includes(found.damage) && parameter?.type === "number") return undefined;
  return invalidRow("damaged", { what: column, value: cell.slice(0, 40), ...found });
}

function invalidItems(what: string, cell: string, parameter: Parameter | undefined) {
  if (parameter?.type !== "items") return undefined;
  const value = parseJson(cell);
  if (value === undefined) return invalidRow("notAList", { what, value: cell.slice(0, 40) });
  const fault = jsonFault(cell, value);
  return fault === undefined ? undefined : invalidJson(fault);
}

/** Parses numbers and `items`. Any other text stays a string, which the validator judges. */
function cellValue(cell: string, parameter: Parameter | undefined, form: NumberForm): unknown {
  if (parameter?.type === "items") return parseJson(cell);
  return parameter?.type === "number" ? (numberIn(cell.trim(), form) ?? cell) : cell;
}
