import { ToolError } from "../../tools/definition.ts";
import { approve, type Decider, decline, waitingRun } from "../../tools/writing/confirmation/deciding.ts";
import { dataAnswer, refusalAnswer } from "../serve/answers.ts";
import type { Shown } from "./rows.ts";

const DECIDED = "This was decided already.";
const ENDED = "The server that asked has ended: ask the agent again.";
const STALE = "Changed since it was planned: ask the agent to plan it again.";
const UNKNOWN = "There is no such run.";

/** Carries out what a person asks for a run. Answers 404 where the run belongs to another caller. */
export async function actOn(runId: string, action: string, by: Decider, shown: Shown): Promise<Response> {
  const { services, caller, project } = shown;
  const run = await services.runs.find(runId);
  if (run === undefined || run.header.caller !== caller) return refusalAnswer(404, UNKNOWN);
  if (services.readOnly) return refusalAnswer(403, "This server only reads (TARGETING_MCP_READ_ONLY).");
  const { changes } = services;
  const isDriven = changes !== undefined && run.header.project === project.id;
  if (!isDriven) return refusalAnswer(409, ENDED);
  if (action === "cancel" || action === "resume") {
    await services.runs[action](runId);
    return dataAnswer({});
  }
  const waiting = await waitingRun(runId, services);
  if (waiting === undefined) return refusalAnswer(409, DECIDED);
  if (action !== "approve" && action !== "decline") return refusalAnswer(404, "The page has nothing here.");
  try {
    const outcome = await (action === "approve" ? approve : decline)(waiting, by, changes, services);
    if (outcome === "done") return dataAnswer({});
    return refusalAnswer(409, outcome === "stale" ? STALE : DECIDED);
  } catch (thrown) {
    if (!(thrown instanceof ToolError)) throw thrown;
    return refusalAnswer(409, thrown.message);
  }
}
