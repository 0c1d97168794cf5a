import { SETTING_LIST } from "./registry.ts";

/** Every setting in lines for a terminal: flag, variable, meaning, default. */
export function settingsHelp(): string {
  return SETTING_LIST.map((setting) => {
    const names = setting.flag === undefined ? setting.variable : `--${setting.flag}, ${setting.variable}`;
    return `  ${names}\n      ${setting.meaning} (default: ${setting.otherwise})`;
  }).join("\n");
}
