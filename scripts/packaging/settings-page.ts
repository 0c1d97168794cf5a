import { SETTING_LIST } from "../../src/settings/registry.ts";
import { tableOf } from "./markdown.ts";

/** docs/settings.md: every setting. */
export function settingsPage(): string {
  const rows = SETTING_LIST.map(({ variable, flag, meaning, form, otherwise, secret }) => [
    `\`${variable}\``,
    flag === undefined ? "" : `\`--${flag}\``,
    meaning + (secret ? " (secret)" : ""),
    form.words,
    otherwise,
  ]);
  return [
    "# Settings",
    "Made from the code by `npm run docs`. A flag wins over the environment, which wins over the default. Keys have no " +
      "flag, since command lines are seen by others. A variable that is empty counts as not set.",
    tableOf(["variable", "flag", "meaning", "must be", "default"], rows),
    "Folders named after `targeting-mcp stdio` count as `--allowed-dirs`.",
    "`targeting-mcp doctor` shows what each is, where it came from, and what has to be fixed.",
    "",
  ].join("\n\n");
}
