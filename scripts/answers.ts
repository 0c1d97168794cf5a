// Writes docs/answers.md: typical answers of the built command against a sandbox.
import { writeFile } from "node:fs/promises";
import { answersPage, takeSnapshots } from "./answers/page.ts";
import { fileAt } from "./packaging/generated.ts";

await writeFile(fileAt("docs/answers.md"), answersPage(await takeSnapshots()));
