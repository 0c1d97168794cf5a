// Writes docs/answers.md, and what the README tells people to say: typical answers of the built command against a sandbox.
import { readFile, writeFile } from "node:fs/promises";
import { answersPage, takeSnapshots } from "./answers/page.ts";
import { SAID, withSaid } from "./answers/said.ts";
import { fileAt } from "./packaging/generated.ts";

await writeFile(fileAt("docs/answers.md"), answersPage(await takeSnapshots()));
const readme = await readFile(fileAt("README.md"), "utf8");
await writeFile(fileAt("README.md"), withSaid(readme, await takeSnapshots(SAID, "sample")));
