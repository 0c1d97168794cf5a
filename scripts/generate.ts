// Writes the files that are generated from the code: the manifests and the reference pages.
import { writeFile } from "node:fs/promises";
import { fileAt, GENERATED } from "./packaging/generated.ts";

for (const { path, text } of GENERATED) await writeFile(fileAt(path), text());
