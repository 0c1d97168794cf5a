// Writes docs/reference/sandbox-rules.md from the list of rules and the tests that check them.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { FIDELITY_DOC, fidelityTable } from "../test/sandbox/fidelity.ts";

mkdirSync(dirname(FIDELITY_DOC), { recursive: true });
writeFileSync(FIDELITY_DOC, fidelityTable());
