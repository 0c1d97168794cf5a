import { inject, test } from "vitest";
import { checkExported, checkMeaning } from "./plan-properties.ts";

/** The long run of `npm run test:faults` has parts, which together make 10,000. */
const runs = inject("faultSchedules")?.count ?? 600;

test("applying a plan gives what the file means, and planning again finds nothing", () => checkMeaning(runs));

test("a plan of what was just exported has nothing to do, in every form", () => checkExported(Math.round(runs / 3)));
