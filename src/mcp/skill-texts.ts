import { readdirSync, readFileSync } from "node:fs";

const FOLDER = new URL("../../skills/", import.meta.url);

/** By folder in `skills/`: the text. The build replaces this module by one with the texts. */
export const SKILL_TEXTS: Readonly<Record<string, string>> = Object.fromEntries(
  readdirSync(FOLDER)
    .sort()
    .map((name) => [name, readFileSync(new URL(`${name}/SKILL.md`, FOLDER), "utf8")]),
);
