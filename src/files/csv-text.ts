/** Spreadsheets take a CSV file for UTF-8 only if it begins with this. */
export const BYTE_ORDER_MARK = "\uFEFF";

/** A record of a CSV file, with its line end. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

function csvCell(text: string): string {
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
