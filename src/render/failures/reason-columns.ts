import { HEADINGS, plainHeading } from "../../files/headings.ts";
import type { Reason } from "../../runs/outcome.ts";

const CONTEXTS = ["contexts", "contextId"];

/** The columns of a row that its problem is about, by the word for the problem. */
const BY_PROBLEM: Readonly<Record<string, readonly string[]>> = {
  notAList: CONTEXTS,
  noContextId: CONTEXTS,
  otherTargeting: ["targeting"],
  action: ["action"],
  actionElsewhere: ["action"],
  op: ["op"],
  removeElsewhere: ["op"],
  type: ["type"],
  exposeChildren: ["exposeChildren"],
  exposeChildrenOfAtomic: ["exposeChildren"],
};

const BY_DAMAGED: Readonly<Record<string, readonly string[]>> = { "Context ID": CONTEXTS, group: ["parentName"] };

/** The columns of a sheet of which one holds what is wrong: the first that the sheet has. */
export function columnsOf({ code, detail = {} }: Reason): readonly string[] {
  const { problem, what, field, fields } = detail;
  const [heading] = Array.isArray(fields) ? fields : [];
  if (typeof heading === "string") return [columnNamed(heading), "name"];
  if (problem === "damaged") return BY_DAMAGED[String(what)] ?? ["name"];
  if (typeof problem === "string" && BY_PROBLEM[problem] !== undefined) return BY_PROBLEM[problem];
  if (code.includes("CONTEXT")) return CONTEXTS;
  if (typeof field === "string" && field in HEADINGS) return [field, "name"];
  if (code === "INVALID_ID" || code.endsWith("NOT_FOUND")) return field === "parent" ? ["parentName"] : ["name", "_id"];
  return ["name", "_id"];
}

function columnNamed(heading: string): string {
  const plain = plainHeading(heading);
  return Object.keys(HEADINGS).find((column) => plainHeading(HEADINGS[column]?.[0] ?? "") === plain) ?? "name";
}
