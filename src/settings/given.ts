import type { Setting } from "./forms.ts";

/** Where the value of a setting came from. */
export type Source = "flag" | "environment" | "default";

/** The places that settings are read from. */
export interface Given {
  readonly flags: ReadonlyMap<string, string>;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * The text of a setting and where it was found; empty texts and placeholders are ignored. Undefined where it is not
 * set.
 */
export function givenText({ variable, flag, anyCase }: Setting<unknown, unknown>, { flags, environment }: Given) {
  const fromFlag = flag === undefined ? undefined : meaningful(flags.get(flag));
  if (fromFlag !== undefined) return { text: fromFlag, source: "flag" as const };
  const lower = anyCase === true ? environment[variable.toLowerCase()] : undefined;
  const fromEnvironment = meaningful(environment[variable]) ?? meaningful(lower);
  return fromEnvironment === undefined ? undefined : { text: fromEnvironment, source: "environment" as const };
}

/** Hosts pass an optional setting that the person left out as an empty text, or as `${user_config.name}`. */
function meaningful(given: string | undefined): string | undefined {
  const trimmed = given?.trim();
  return trimmed === undefined || trimmed === "" || /^\$\{[^}]*\}$/.test(trimmed) ? undefined : trimmed;
}
