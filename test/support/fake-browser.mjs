// Replaces a person's browser. Appends the address that it is asked to open to a file, for the test that started the
// server.
import { appendFileSync } from "node:fs";

const [file, address] = process.argv.slice(2);
appendFileSync(file, `${address}\n`);
