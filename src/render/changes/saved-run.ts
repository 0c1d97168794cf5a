import type { Run } from "../../runs/kind.ts";
import type { Saved } from "../../saves/save-state.ts";
import { savedText } from "../reading.ts";
import type { RenderedReport } from "./report.ts";

/** What a run saved, as data and in words. */
export function savedAnswer(
  { header, status }: Run,
  saved: Saved,
  { environment }: { readonly environment: "live" | "sandbox" },
): RenderedReport {
  const about = { environment, runId: header.runId, tool: header.call.tool, status: status() };
  return { structured: { ...about, ...saved }, text: savedText(saved), isError: false };
}
