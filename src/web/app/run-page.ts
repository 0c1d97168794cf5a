import { signal } from "@preact/signals";
import { PATHS } from "../paths.ts";
import type { RunAction, RunDetail, RunRow } from "../wire.ts";
import { visible } from "./parts.tsx";
import { acted, read } from "./requests.ts";
import { go } from "./route.ts";
import { outcome } from "./state.ts";

/** What is known of the run that is shown, beyond its row. */
export const detail = signal<RunDetail | undefined>(undefined);

/** How often what is beneath the row of a running run is read again. */
const EVERY_MS = 1000;
/** The run whose detail is wanted, and whether a read of one is under way or was a moment ago. */
let wanted: RunRow | undefined;
let isBusy = false;
/** The row for which it was read last: every update of the stream brings all rows. */
let looked = "";

/** Reads what is beneath the row of a run, and reads it again as the row changes. */
export function look(run: RunRow): void {
  const row = JSON.stringify(run);
  if (row === looked) return;
  looked = row;
  wanted = run;
  if (!isBusy) void readWanted();
}

async function readWanted(): Promise<void> {
  const run = wanted;
  if (run === undefined) return;
  wanted = undefined;
  isBusy = true;
  const answer = await read<RunDetail>(`${PATHS.runs}/${encodeURIComponent(run.runId)}`);
  if ("data" in answer) detail.value = answer.data;
  else {
    outcome.value = answer.message;
    looked = "";
  }
  await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  isBusy = false;
  await readWanted();
}

const DONE = {
  approve: "Approved",
  decline: "Declined",
  cancel: "The run is being cancelled",
  undo: "The undo is planned, and waits for your approval",
  resume: "The run is being resumed",
} as const;

const MOST_LETTERS = 120;

/** Does what a run's button says, and says of which run. An undo leads to its plan, which then waits for an approval. */
export async function actOnRun(run: RunRow, action: RunAction, typed?: string): Promise<void> {
  const { runId, title, waiting } = run;
  const said = { ...(waiting && { digest: waiting.digest }), ...(waiting?.typed !== undefined && { typed }) };
  const body = action === "approve" || action === "decline" ? said : {};
  const path = `${PATHS.runs}/${encodeURIComponent(runId)}/${action}`;
  const done = `${DONE[action]}: ${visible(title.slice(0, MOST_LETTERS))}.`;
  const answer = await acted<{ readonly runId?: string }>(path, body, done);
  const planned = action === "undo" ? answer?.data.runId : undefined;
  if (planned !== undefined) go(`#/approvals/${planned}`, done);
}
