import { inject, test } from "vitest";
import { startService } from "../changes/service.ts";
import { checkApplied } from "./applied-properties.ts";

// Without the long run's seeds, the quick ones.
const runs = inject("faultSchedules")?.count ?? 60;

test("applying a plan gives what the file means, and planning again finds nothing", async () => {
  await checkApplied(runs, await startService());
}, 1_200_000);

test("so it does where requests and answers are lost, once the run was taken up again", async () => {
  await checkApplied(Math.ceil(runs / 6), await startService(), true);
}, 1_200_000);
