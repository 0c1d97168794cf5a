import * as z from "zod";
import { isJsonObject } from "../platform/json.ts";
import { ToolError } from "./define-tool.ts";

/** The argument that decides what happens to events whose answer is lost. */
export const onUnknownArgument = () => ({
  onUnknown: z
    .enum(["report", "resend"])
    .default("report")
    .describe("When an answer is lost: report it, or send again and risk recording it twice"),
});

/** The schema of an object with any fields. All fields stay as they came; zod's own schemas omit `__proto__`. */
export function openObject() {
  return z
    .unknown()
    .meta({ type: "object" })
    .transform((value, context): Readonly<Record<string, unknown>> => {
      if (isJsonObject(value)) return value;
      context.issues.push({ code: "invalid_type", expected: "object", input: value });
      return z.NEVER;
    });
}

/** Deeper than any event needs, and far below the depth at which reading it back would fail. */
const DEEPEST = 100;

/**
 * Throws a ToolError for values that JSON cannot represent: numbers beyond its range, and cyclic nesting. `where` names
 * what is checked.
 */
export function checkJsonValues(given: unknown, where = "the event"): void {
  let level: readonly unknown[] = [given];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > DEEPEST) {
      throw new ToolError(`${where} is nested more than ${DEEPEST} levels deep; nothing was sent`, "Make it flatter.");
    }
    if (level.some((value) => typeof value === "number" && !Number.isFinite(value))) {
      throw new ToolError(
        `${where} holds a number that is too large to be sent; nothing was sent`,
        "Give a smaller one, or a text.",
      );
    }
    level = level.flatMap((value) => (typeof value === "object" && value !== null ? Object.values(value) : []));
  }
}
