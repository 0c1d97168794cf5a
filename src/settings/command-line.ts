import { parseArgs } from "node:util";
import { nearestWord, withoutSeparators } from "../platform/near-words.ts";
import { SETTING_LIST } from "./registry.ts";
import { type Form, SettingsError } from "./value-types.ts";

export interface CommandOption {
  readonly flag: string;
  readonly toggle?: true;
  readonly meaning: string;
}

export interface CommandLine {
  readonly words: readonly string[];
  readonly flags: ReadonlyMap<string, string>;
}

/**
 * Reads a command line. Accepts flags of the command (`own`) and of all settings. Ignores empty words, which hosts pass
 * for optional settings. Throws a SettingsError if a flag is unknown or has no value.
 */
export function parseCommandLine(argv: readonly string[], own: readonly CommandOption[] = []): CommandLine {
  const toggles = new Map<string, boolean>(own.map((option) => [option.flag, option.toggle === true]));
  for (const { flag, form } of SETTING_LIST) {
    if (flag !== undefined && !toggles.has(flag)) toggles.set(flag, form.toggle === true);
  }
  const options = Object.fromEntries(
    [...toggles].map(([flag, isToggle]) => [flag, { type: isToggle ? ("boolean" as const) : ("string" as const) }]),
  );
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, tokens: true, allowPositionals: true });
  const words: string[] = [];
  const flags = new Map<string, string>();
  for (const token of tokens) {
    if (token.kind === "positional" && token.value.trim() !== "") words.push(token.value);
    if (token.kind !== "option") continue;
    const isToggle = toggles.get(token.name);
    if (isToggle === undefined) throw unknownFlag(token.rawName, [...toggles.keys()]);
    const missing = token.value === undefined || (token.inlineValue !== true && token.value.startsWith("--"));
    if (missing && !isToggle) {
      const setting = SETTING_LIST.find(({ flag }) => flag === token.name);
      throw new SettingsError(`--${token.name} needs a value: --${token.name}=…`, setting?.variable);
    }
    flags.set(token.name, token.value ?? "on");
  }
  return { words, flags };
}

export function oneTooMany(word: string): SettingsError {
  return new SettingsError(`${JSON.stringify(word)} is an unexpected argument (see --help)`);
}

export function optionOf<Value>({ flags }: CommandLine, flag: string, form: Form<Value>): Value | undefined {
  const given = flags.get(flag);
  if (given === undefined) return undefined;
  const value = form.read(given);
  if (value === undefined) throw new SettingsError(`--${flag} must be ${form.words}; it is ${JSON.stringify(given)}`);
  return value;
}

function unknownFlag(raw: string, known: readonly string[]): SettingsError {
  const secret = SETTING_LIST.find(
    (one) => one.secret && `--${one.variable.toLowerCase().replaceAll("_", "-")}` === raw,
  );
  if (secret !== undefined) {
    return new SettingsError(
      `${raw} is not a flag; set the environment variable ${secret.variable} instead`,
      secret.variable,
    );
  }
  // The flag may be misspelt, or be written like the environment variable of the setting.
  const wrong = raw.replace(/^-+/, "");
  const ofVariable = SETTING_LIST.find(({ variable }) => withoutSeparators(variable) === withoutSeparators(wrong));
  const meant = ofVariable?.flag ?? nearestWord(wrong, known);
  if (meant !== undefined) return new SettingsError(`unknown flag ${raw}; did you mean --${meant}? (see --help)`);
  return new SettingsError(
    `unknown flag ${raw}; the flags are ${known.map((flag) => `--${flag}`).join(", ")} (see --help)`,
  );
}

/** Returns the end of an error about an unknown word: the most similar word, if any, and all known words. */
export function didYouMean(wrong: string, words: readonly string[], what: string): string {
  const meant = nearestWord(wrong, words);
  const all = words.join(", ");
  return meant === undefined ? `the ${what} are ${all}` : `did you mean ${meant}? The ${what} are ${all}`;
}
