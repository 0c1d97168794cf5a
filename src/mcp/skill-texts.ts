import { readdirSync, readFileSync } from "node:fs";

const FOLDER = new URL("../../skills/", import.meta.url);

/** The text of each skill, by its folder in `skills/`. The build replaces this module by the texts. */
export const SKILL_TEXTS: Readonly<Record<string, string>> = Object.fromEntries(
  readdirSync(FOLDER)
    .sort()
    .map((name) => [name, readFileSync(new URL(`${name}/SKILL.md`, FOLDER), "utf8")]),
);
