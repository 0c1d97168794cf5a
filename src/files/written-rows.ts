/** A cell that is marked in a workbook, and the comment that it gets. */
export interface CellMark {
  readonly column: number;
  readonly comment: string;
}

/** A row of a sheet that is written. */
export interface WrittenRow {
  readonly cells: readonly string[];
  readonly marks?: readonly CellMark[];
}

/** A sheet that is written. */
export interface WrittenSheet {
  readonly name: string;
  /** How many rows stand above the header, which are among the rows. */
  readonly above: number;
  readonly rows: AsyncIterable<WrittenRow>;
}

/** How sheets are written: as a text of cells, or as a workbook. */
export type SheetFormat = { readonly format: "csv"; readonly delimiter: string } | { readonly format: "xlsx" };
