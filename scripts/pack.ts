// Writes the archive to publish, targeting-mcp-VERSION.tgz, into this folder. Needs a built dist/.
import { fileURLToPath } from "node:url";
import { fileAt } from "./packaging/generated.ts";
import { packPublished } from "./packaging/published.ts";

const { filename, size, files } = await packPublished(fileURLToPath(fileAt(".")));
console.log(`${filename}: ${files.length} files, ${size} bytes`);
