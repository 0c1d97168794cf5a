import { cellReader } from "../../files/cells.ts";
import type { RowShape } from "../../files/rows.ts";
import { parseJson } from "../../platform/json.ts";
import { EVENT_FIELDS, EVENTS, type Parameter } from "../../spec/events.ts";
import { asMeant } from "../check/as-meant.ts";
import { misspelt } from "../check/near-names.ts";

/** An event as a file gives it: whatever it holds is judged later, as the service would. */
export type EventRow = Readonly<Record<string, unknown>>;

const PARAMETERS: ReadonlyMap<string, Parameter> = new Map(
  [EVENT_FIELDS, ...Object.values(EVENTS).map(({ parameters }) => parameters)].flatMap((parameters) =>
    Object.entries<Parameter>(parameters),
  ),
);

/** The columns of a file of events: every field and parameter; `items` is JSON. */
const EVENT_COLUMNS: readonly string[] = [...PARAMETERS.keys()];

/** How files for `track_events` are read. An empty cell is a parameter that the event does not have. */
export const eventRows: RowShape<EventRow> = {
  columns: EVENT_COLUMNS,
  required: [["uid"], ["eventName"]],
  // A parameter in a column that is not known would be lost.
  isStrict: true,
  fromCells(header) {
    const readers = EVENT_COLUMNS.filter((column) => header.at(column) >= 0).map((column) => ({
      column,
      read: cellReader(header, column),
    }));
    return (cells) => ({
      item: Object.fromEntries(
        readers.flatMap(({ column, read }) => {
          const cell = read(cells);
          return cell === "" ? [] : [[column, meantBy(column, cell)]];
        }),
      ),
    });
  },
  fromValue: (value) => ({ item: asMeant(Object.fromEntries(Object.entries(Object(value)))) }),
  merge: () => undefined,
  rest: (row, failed) => failed.map(({ reason }) => ({ row, reason })),
};

/** The same where misspelt names are put right: columns whose names are plainly misspelt are read as the right ones. */
export const mendedEventRows: RowShape<EventRow> = {
  ...eventRows,
  spelt: (name) => misspelt(name, EVENT_COLUMNS),
};

/** The value that a cell means: a number or items; any other text stays a text, and is judged as one. */
function meantBy(column: string, cell: string): unknown {
  const type = PARAMETERS.get(column)?.type;
  if (type === "items") return parseJson(cell) ?? cell;
  const number = Number(cell);
  return type === "number" && cell.trim() !== "" && Number.isFinite(number) ? number : cell;
}
