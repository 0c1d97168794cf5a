/** Spreadsheet programs read a CSV file as UTF-8 only if it begins with this. */
export const BYTE_ORDER_MARK = "\uFEFF";

/** A record of a CSV file, with its line end. */
export function csvLine(cells: readonly string[], delimiter = ","): string {
  return `${cells.map((cell) => csvCell(cell, delimiter)).join(delimiter)}\r\n`;
}

function csvCell(text: string, delimiter: string): string {
  return /["\r\n]|^\s|\s$/.test(text) || text.includes(delimiter) ? `"${text.replaceAll('"', '""')}"` : text;
}
