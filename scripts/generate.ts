// Writes what is made from the code: the manifests, the reference pages, and the table of tools in the README.
import { writeFile } from "node:fs/promises";
import { fileAt, GENERATED } from "./packaging/generated.ts";

for (const { path, text } of GENERATED) await writeFile(fileAt(path), text());
