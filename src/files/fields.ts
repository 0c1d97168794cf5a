import type * as z from "zod";
import type { Reason } from "../runs/outcome.ts";
import { invalidRow } from "./rows.ts";

/** Why the fields of an NDJSON or JSON row are invalid: the first problem, with the valid fields. */
export function fieldProblem(issues: readonly z.core.$ZodIssue[], schema: z.ZodObject): Reason {
  const [issue] = issues;
  if (issue?.code === "unrecognized_keys") {
    const valid = issue.path.length === 0 ? Object.keys(schema.shape) : undefined;
    return invalidRow("unknownField", { field: issue.keys[0], ...(valid && { valid }) }).reason;
  }
  return invalidRow("fieldType", { field: issue?.path.join(".") ?? "", expected: expectedBy(issue) }).reason;
}

function expectedBy(issue: z.core.$ZodIssue | undefined): string {
  if (issue?.code === "invalid_value") return issue.values.map((value) => JSON.stringify(value)).join(" or ");
  return issue?.code === "invalid_type" ? issue.expected : "another form";
}
