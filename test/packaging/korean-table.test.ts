import iconv from "iconv-lite";
import { expect, test } from "vitest";
import * as z from "zod";

const rows = z.array(z.tuple([z.string(), z.string()]).rest(z.number()));
const file: string = "../../scripts/korean-table.mjs";
const { koreanTable } = z.object({ koreanTable: z.function({ input: [], output: rows }) }).parse(await import(file));

test("the table made for the bundle holds each pair of bytes as the library's own table does", () => {
  const made = new Map(koreanTable().map(([code, characters]) => [Number.parseInt(code, 16), characters]));
  const pairs = Array.from(
    { length: 0x7e * 0xbe },
    (_, n) => [0x81 + Math.floor(n / 0xbe), 0x41 + (n % 0xbe)] as const,
  );
  const known = pairs.flatMap(([lead, trail]) => {
    const text = iconv.decode(Buffer.of(lead, trail), "cp949");
    return text.length === 1 && text !== "\ufffd" ? [[lead * 256 + trail, text] as const] : [];
  });
  expect(known).toHaveLength(17_048);
  made.delete(0);
  expect(made).toEqual(new Map(known));
});
