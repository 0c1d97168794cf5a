import { setTimeout as delay } from "node:timers/promises";
import * as z from "zod";
import type { Random } from "../../faults/random.ts";
import type { ToolResult } from "../../support/clients.ts";
import { call, reportOf } from "../cluster.ts";

/** A caller with their own project, who sends each call to a random replica. */
export interface Caller {
  readonly name: string;
  readonly token: string;
  readonly targetingId: string;
  readonly random: Random;
  readonly urls: () => readonly string[];
}

/** Longer than a call may take. After this time, its replica is suspended or no longer runs. */
const CALL_MS = 9000;
const PATIENCE_MS = 120_000;

const rows = z.looseObject({
  results: z
    .array(z.looseObject({ outcome: z.string(), name: z.string().optional(), _id: z.string().optional() }))
    .default([]),
  cursor: z.string().optional(),
});
const listed = z.looseObject({
  runs: z.array(z.looseObject({ runId: z.string(), tool: z.string() })).default([]),
  cursor: z.string().optional(),
});
const asked = z.looseObject({ confirmation: z.looseObject({ token: z.string() }).optional() });

/** A row of a run's results. */
export type Row = z.infer<typeof rows>["results"][number];

/** Repeats a call, each time to another replica, until one answers with something other than that it is unavailable. */
export async function insist(
  { urls, token, random }: Pick<Caller, "urls" | "token" | "random">,
  name: string,
  args: Record<string, unknown>,
): Promise<ToolResult> {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const answer = await Promise.race([
      call(random.pick(urls()), name, args, token).catch((thrown: unknown) => String(thrown)),
      delay(CALL_MS, `no answer within ${CALL_MS} ms`),
    ]);
    if (typeof answer !== "string" && (answer.isError !== true || reportOf(answer).runId !== "")) return answer;
    if (Date.now() > until) {
      throw new Error(`${name}: ${typeof answer === "string" ? answer : JSON.stringify(answer).slice(0, 500)}`);
    }
    await delay(200);
  }
}

/** Waits until a run has stopped. Returns its report. */
export async function atRest(caller: Caller, runId: string) {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const told = reportOf(await insist(caller, "get_run", { runId, waitMs: 1000 }));
    if (told.status !== "running" || Date.now() > until) return told;
  }
}

/** Returns all rows of a run's results. */
export async function rowsOf(caller: Caller, runId: string): Promise<readonly Row[]> {
  const found: Row[] = [];
  let cursor: string | undefined;
  do {
    const args = { runId, limit: 1000, ...(cursor && { cursor }) };
    const page = rows.parse((await insist(caller, "get_run", args)).structuredContent);
    found.push(...page.results);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}

/** Returns all runs of the caller. */
export async function runsOf(caller: Caller) {
  const found: z.infer<typeof listed>["runs"] = [];
  let cursor: string | undefined;
  do {
    const page = listed.parse((await insist(caller, "get_run", { ...(cursor && { cursor }) })).structuredContent);
    found.push(...page.runs);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}

/**
 * Until a point in time, adds options and deletes some of them. The token for a deletion comes from one replica and is
 * used at another one. A call whose answer is lost is repeated.
 */
export async function work(caller: Caller, until: number): Promise<void> {
  for (let round = 0; Date.now() < until; round += 1) {
    const items = Array.from({ length: 450 }, (_, at) => {
      const name = `${caller.name} ${round} ${at}`;
      return { name, type: "collection", contexts: [name] };
    });
    const { targetingId } = caller;
    const { runId } = reportOf(await insist(caller, "bulk_add_options", { targetingId, items }));
    await atRest(caller, runId);
    const made = (await rowsOf(caller, runId)).filter(({ outcome }) => outcome === "succeeded");
    const ids = made.flatMap(({ _id }) => _id ?? []).slice(0, 150);
    if (ids.length === 0) continue;
    const answer = await insist(caller, "delete_options", { ids });
    const { confirmation } = asked.parse(answer.structuredContent);
    const deleting =
      confirmation === undefined
        ? answer
        : await insist(caller, "delete_options", { confirmation: confirmation.token });
    await atRest(caller, reportOf(deleting).runId);
  }
}
