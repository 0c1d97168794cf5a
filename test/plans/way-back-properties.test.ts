import { inject, test } from "vitest";
import { checkOthersKept, checkWayBack } from "./undo-properties.ts";

/** How many random cases to try. The long run, `npm run test:faults`, has several parts with 10,000 together. */
const runs = inject("faultSchedules")?.count ?? 600;

test("undoing gives the first state, and undoing that the state before it", () => checkWayBack(runs));

test("what others changed since is left alone, and the rest goes back or says why not", () => checkOthersKept(runs));
