import { expect, test } from "vitest";
import { UnsupportedEventError } from "../../src/events/event-types.ts";
import { failureOf, readable } from "../../src/mcp/failures.ts";
import { createLog } from "../../src/observe/log.ts";

test("a failure that repeats a text of the caller or a file name is short, and shows what is unseen as escapes", () => {
  const { message, remedy } = readable({
    message: `no targeting named "\u202Eevil${"x".repeat(200_000)}"`,
    remedy: 'The nearest files: "a\u200B.csv".\nName one.',
  });
  expect(message).toMatch(/^no targeting named "\\u\{202E\}evilx+…$/);
  expect(message.length).toBeLessThan(5000);
  expect(remedy).toBe('The nearest files: "a\\u{200B}.csv".\nName one.');
});

test("the remedy for an unknown event does not name the same call again", () => {
  const log = createLog({ level: "silent", write: () => {}, redact: String, now: Date.now, work: undefined });
  const remedyOf = (tool: string) => failureOf(new UnsupportedEventError("purchse"), tool, log).remedy;
  expect(remedyOf("list_event_types")).toBe("list_event_types {} shows all events.");
  expect(remedyOf("generate_event_tests")).toBe("list_event_types says what each event needs.");
});
