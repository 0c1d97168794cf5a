import * as z from "zod";
import { rowsOf } from "../support/rows.ts";

/** One rule of the service, written down from the documents by hand. */
const rule = z.strictObject({
  /** The name of the rule, by which its test refers to it. */
  id: z.string(),
  /** The section of the management API document. If the name begins with "event", of the event API document. */
  section: z.string(),
  /** "documented": in the API documents. "assumed": in the page of assumptions, because the documents do not say it. */
  basis: z.enum(["documented", "assumed"]),
  says: z.string(),
});
export type Rule = z.infer<typeof rule>;

/** Every rule that the sandbox follows. The tests fail if a rule has no test. */
export const RULES = rowsOf("rules.ndjson", import.meta.dirname, rule);
