import { expect, test } from "vitest";
import { readable } from "../../src/mcp/failures.ts";

test("a failure that repeats a text of the caller or a file name is short, and shows what is unseen as escapes", () => {
  const { message, remedy } = readable({
    message: `no targeting named "\u202Eevil${"x".repeat(200_000)}"`,
    remedy: 'The nearest files: "a\u200B.csv".\nName one.',
  });
  expect(message).toMatch(/^no targeting named "\\u\{202E\}evilx+…$/);
  expect(message.length).toBeLessThan(5000);
  expect(remedy).toBe('The nearest files: "a\\u{200B}.csv".\nName one.');
});
