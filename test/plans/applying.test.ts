import { test } from "vitest";
import { startService } from "../changes/service.ts";
import { checkApplied } from "./applied-properties.ts";

test("applying a plan gives what the file means, and planning again finds nothing", async () => {
  await checkApplied(150, await startService());
}, 60_000);
