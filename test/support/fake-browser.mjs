// Used in place of a person's browser. Stores the address that it was opened with, for the test that started the
// server.
import { appendFileSync } from "node:fs";

const [file, address] = process.argv.slice(2);
appendFileSync(file, `${address}\n`);
