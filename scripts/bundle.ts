// Writes the bundle that hosts install with one click: targeting-mcp-VERSION.mcpb. Needs a built dist/.
import { writeFile } from "node:fs/promises";
import { BUNDLE_NAME, bundleContents } from "./packaging/bundle-contents.ts";
import { fileAt } from "./packaging/generated.ts";

const bundle = bundleContents();
await writeFile(fileAt(BUNDLE_NAME), bundle);
console.log(`${BUNDLE_NAME}: ${bundle.length} bytes`);
