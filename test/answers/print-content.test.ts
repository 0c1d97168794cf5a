import { afterEach, expect, test, vi } from "vitest";
import { printContent } from "../../src/commands/project.ts";

const { isTTY } = process.stdout;
afterEach(() => {
  vi.restoreAllMocks();
  process.stdout.isTTY = isTTY;
});

test("content with invisible characters is escaped in a terminal, and is the same JSON", () => {
  const written: unknown[] = [];
  vi.spyOn(process.stdout, "write").mockImplementation((text) => written.push(text) > 0);
  const content = `${JSON.stringify({ name: "a\u202Eb\u2066\u200B\u{E0041}é 신발" }, null, 2)}\n`;
  process.stdout.isTTY = true;
  printContent(content);
  process.stdout.isTTY = false;
  printContent(content);
  const [shown, piped] = written;
  expect(shown).toBe('{\n  "name": "a\\u202Eb\\u2066\\u200B\\uDB40\\uDC41é 신발"\n}\n');
  expect(JSON.parse(String(shown))).toEqual(JSON.parse(content));
  expect(piped).toBe(content);
});
