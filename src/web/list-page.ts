/** The maximum number of rows in one page of a list of a run. */
export const PAGE_ROWS = 100;

/** The rows of a list that a request wants: at most `limit` rows from the row `from`, counted from 0. */
export interface ListPage {
  readonly from: number;
  readonly limit: number;
}

/** Returns the page that a query requests (`from`, `limit`), with at most `most` rows. */
export function pageIn(query: URLSearchParams, most: number): ListPage {
  const numberOf = (name: string): number => Math.max(0, Math.trunc(Number(query.get(name))) || 0);
  return { from: numberOf("from"), limit: Math.min(most, numberOf("limit") || most) };
}

/** Returns the rows that a query requests, and the number of all rows. */
export function pageOf<Row>(rows: readonly Row[], query: URLSearchParams) {
  const { from, limit } = pageIn(query, PAGE_ROWS);
  return { rows: rows.slice(from, from + limit), total: rows.length };
}
