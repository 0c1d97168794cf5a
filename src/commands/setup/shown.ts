import { SETTING_LIST } from "../../settings/registry.ts";
import { type Fields, isReference, type ServerList, tableOf } from "./entry.ts";

const HIDDEN = "[redacted]";
const FROM_ENVIRONMENT = "[redacted: the value in your environment]";

/** Fields whose texts tell how a server is started, and hold no key. */
const PLAIN_FIELDS = ["command", "type", "cwd"];

/**
 * The lines of this server's entry that go and those that come, from `old` fields to `fresh` ones; undefined: no entry.
 * Nothing else of the file is shown, and of the entry no value that may be a key. `args` are known to be none.
 */
export function linesChanged(
  list: ServerList,
  { old, fresh }: { readonly old: Fields | undefined; readonly fresh?: Fields },
  args: readonly string[],
): string {
  const linesOf = (fields: Fields | undefined): readonly string[] => {
    const text = fields && list.withFields("", shown(fields, args, old));
    return text?.trimEnd().split("\n") ?? [];
  };
  const [before, after] = [linesOf(old), linesOf(fresh)];
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  return [
    ...before.slice(start, before.length - end).map((line) => `- ${line}`),
    ...after.slice(start, after.length - end).map((line) => `+ ${line}`),
  ].join("\n");
}

/** The fields as they may be shown; `old` are those that they replace. */
function shown(fields: Fields, args: readonly string[], old: Fields | undefined): Fields {
  const oldEnv = tableOf(old?.env) ?? {};
  const one = (name: string, value: unknown): unknown => {
    const table = tableOf(value);
    if (name === "env" && table !== undefined)
      return mapped(table, (variable, text) => shownIn(variable, text, oldEnv));
    if (name === "headers" && table !== undefined) return mapped(table, () => HIDDEN);
    if (name === "args" && Array.isArray(value)) return shownArguments(value, args);
    if (typeof value === "number" || typeof value === "boolean") return value;
    return PLAIN_FIELDS.includes(name) || name === "env_vars" ? value : HIDDEN;
  };
  return mapped(fields, one);
}

function mapped(fields: Fields, change: (name: string, value: unknown) => unknown): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, change(name, value)]));
}

/** The value of a variable: that of a plain setting, or a reference. */
function shownIn(variable: string, value: unknown, old: Fields): unknown {
  if (typeof value !== "string") return HIDDEN;
  const setting = SETTING_LIST.find((one) => one.variable === variable);
  if (setting?.secret === false && setting.form.read(value) !== undefined) return value;
  if (isReference(value)) return value;
  return setting !== undefined && old[variable] !== value ? FROM_ENVIRONMENT : HIDDEN;
}

/** What a person put into the arguments by hand is lost when they change: flags are shown, but only what is known of values. */
function shownArguments(given: readonly unknown[], known: readonly string[]): readonly unknown[] {
  const flags = SETTING_LIST.flatMap(({ flag }) => (flag === undefined ? [] : [`--${flag}`]));
  return given.map((one, index) => {
    if (typeof one !== "string") return HIDDEN;
    const before = given[index - 1];
    const isSetting =
      flags.some((flag) => one.startsWith(`${flag}=`)) || (typeof before === "string" && flags.includes(before));
    return isSetting || known.includes(one) || /^--?[a-z][a-z-]*$/.test(one) ? one : HIDDEN;
  });
}
