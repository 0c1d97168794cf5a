import { inject, test } from "vitest";
import { startService } from "../changes/service.ts";
import { checkApplied } from "./applied-properties.ts";

// The number of seeds of the long run; by default 60.
const runs = inject("faultSchedules")?.count ?? 60;

test("applying a plan gives what the file means, and planning again finds nothing", async () => {
  await checkApplied(runs, await startService());
}, 1_200_000);

test("so it does where requests and answers are lost, once the run was taken up again", async () => {
  await checkApplied(Math.ceil(runs / 6), await startService(), true);
}, 1_200_000);
