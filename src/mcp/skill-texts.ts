import { readdirSync, readFileSync } from "node:fs";

const FOLDER = new URL("../../skills/", import.meta.url);

/** The texts of the skills by name: files of `skills/` in the repository. The build replaces this module with them. */
export const SKILL_TEXTS: Readonly<Record<string, string>> = Object.fromEntries(
  readdirSync(FOLDER)
    .sort()
    .map((name) => [name, readFileSync(new URL(`${name}/SKILL.md`, FOLDER), "utf8")]),
);
