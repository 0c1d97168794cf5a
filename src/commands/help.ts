import type { CommandOption } from "../settings/command-line.ts";
import { SETTING_LIST } from "../settings/registry.ts";

/** Every setting in lines for a terminal: flag, variable, meaning, default. */
export function settingsHelp(): string {
  return SETTING_LIST.map((setting) => {
    const names = setting.flag === undefined ? setting.variable : `--${setting.flag}, ${setting.variable}`;
    return `  ${names}\n      ${setting.meaning} (default: ${setting.otherwise})`;
  }).join("\n");
}

/** A command as its help shows it. */
export interface HelpedCommand {
  /** How it is called, without the name of the program. */
  readonly usage: string;
  readonly meaning: string;
  readonly options: readonly CommandOption[];
}

/** The help of one command: its purpose, its own flags, and where to find the other ones. */
export function commandHelp({ usage, meaning, options }: HelpedCommand): string {
  const flags = options.map((option) => `  --${option.flag}\n      ${option.meaning}`);
  const lines = ["Usage:", `  targeting-mcp ${usage}`, `      ${meaning}`, ""];
  if (flags.length > 0) lines.push("Flags of its own:", ...flags, "");
  return [...lines, "Settings, which it takes as well, and the other commands: targeting-mcp --help", ""].join("\n");
}

/** The help of the program: every command and every setting. */
export function programHelp(commands: readonly HelpedCommand[]): string {
  const lines = commands.map(({ usage, meaning }) => `  targeting-mcp ${usage}\n      ${meaning}`);
  return ["Usage:", ...lines, "", "Settings, as flags or environment variables:", settingsHelp(), ""].join("\n");
}
