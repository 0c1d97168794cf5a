import { inject, test } from "vitest";
import { checkExported, checkMeaning } from "./plan-properties.ts";

/** How many random files to try. The long run, `npm run test:faults`, has several parts with 10,000 together. */
const runs = inject("faultSchedules")?.count ?? 600;

test("applying a plan gives what the file means, and planning again finds nothing", () => checkMeaning(runs));

test("a plan of what was just exported has nothing to do, in every form", () => checkExported(Math.round(runs / 3)));
