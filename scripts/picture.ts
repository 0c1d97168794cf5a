// Draws a session of the demo for the README. Needs a built dist/.
import { writeFile } from "node:fs/promises";
import { fileAt } from "./packaging/generated.ts";
import { demoOutput, PICTURE, pictureOf } from "./packaging/picture.ts";

await writeFile(fileAt(PICTURE), pictureOf(await demoOutput()));
