// Stands for a person's browser: keeps the address that it is opened with, for the test that started the server.
import { appendFileSync } from "node:fs";

const [file, address] = process.argv.slice(2);
appendFileSync(file, `${address}\n`);
