import { readFileSync } from "node:fs";
import type * as z from "zod";

/** Returns the rows of a data file next to a test, which has one JSON value per line. */
export function rowsOf<Row>(file: string, directory: string, row: z.ZodType<Row>): readonly Row[] {
  const lines = readFileSync(`${directory}/${file}`, "utf8").trimEnd().split("\n");
  return lines.map((line) => row.parse(JSON.parse(line)));
}
