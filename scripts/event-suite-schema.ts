// Writes the published JSON Schema of event suites. `npm run format` formats it afterwards.
import { writeFile } from "node:fs/promises";
import { eventSuiteJsonSchema } from "../src/events/suites/suite.ts";

const path = new URL("../docs/event-suite.schema.json", import.meta.url);
await writeFile(path, `${JSON.stringify(eventSuiteJsonSchema(), null, 2)}\n`);
