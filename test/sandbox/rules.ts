import * as z from "zod";
import { rowsOf } from "../support/rows.ts";

/** One rule of the service, written by hand from the documents. */
const rule = z.strictObject({
  /** Name by which the test that holds the rule refers to it. */
  id: z.string(),
  /** Section of the management API document; with "event", of the event document. */
  section: z.string(),
  /** Whether the documents say it, or the page of assumptions does where they are silent. */
  basis: z.enum(["documented", "assumed"]),
  says: z.string(),
});
export type Rule = z.infer<typeof rule>;

/** Every rule that the sandbox keeps. A rule without a test fails the build. */
export const RULES = rowsOf("rules.ndjson", import.meta.dirname, rule);
