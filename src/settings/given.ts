import type { Setting } from "./registry.ts";

/** Where the value of a setting came from. */
export type Source = "flag" | "environment" | "default";

/** Where texts of settings stand. */
export interface Given {
  readonly flags: ReadonlyMap<string, string>;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** The setting's text and where it stands; texts that say nothing are passed over. Undefined where it is not given. */
export function givenText({ variable, flag, anyCase }: Setting<unknown, unknown>, { flags, environment }: Given) {
  const fromFlag = flag === undefined ? undefined : saysSomething(flags.get(flag));
  if (fromFlag !== undefined) return { text: fromFlag, source: "flag" as const };
  const lower = anyCase === true ? environment[variable.toLowerCase()] : undefined;
  const fromEnvironment = saysSomething(environment[variable]) ?? saysSomething(lower);
  return fromEnvironment === undefined ? undefined : { text: fromEnvironment, source: "environment" as const };
}

/** Hosts pass an optional setting that the person left out as an empty text, or as `${user_config.name}`. */
function saysSomething(given: string | undefined): string | undefined {
  const trimmed = given?.trim();
  return trimmed === undefined || trimmed === "" || /^\$\{[^}]*\}$/.test(trimmed) ? undefined : trimmed;
}
