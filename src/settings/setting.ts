import { type Form, headerKey } from "./forms.ts";

/** One setting: where it is read from, how, and what it means. Flags, docs and manifest are made from this. */
export interface Setting<Value, Fallback = Value | undefined> {
  readonly variable: string;
  /** Without the leading dashes; absent for keys and for variables that are not ours. */
  readonly flag?: string;
  /** The lower-case name of the variable is read too, as other programs do. */
  readonly anyCase?: true;
  /** Never shown, and replaced wherever it would appear. */
  readonly secret: boolean;
  readonly form: Form<Value>;
  /** The value where it is set nowhere. */
  readonly fallback: Fallback;
  /** The fallback in words. */
  readonly otherwise: string;
  readonly meaning: string;
}

export const OWN_PREFIX = "TARGETING_MCP_";

/** A setting with a flag. */
export function setting<Value, Fallback extends Value | undefined>(
  variable: string,
  form: Form<Value>,
  fallback: Fallback,
  meaning: string,
  otherwise = fallback === undefined ? "none" : String(fallback),
): Setting<Value, Fallback> {
  const flag = variable.replace(OWN_PREFIX, "").toLowerCase().replaceAll("_", "-");
  return { variable, flag, secret: false, form, fallback, otherwise, meaning };
}

/** A secret, which has no flag. */
export function key(
  variable: string,
  meaning: string,
  form = headerKey,
  otherwise = "none",
): Setting<string, undefined> {
  return { variable, secret: true, form, fallback: undefined, otherwise, meaning };
}

/** A variable that other programs read too: without a flag. */
export function shared(
  variable: string,
  form: Form<string>,
  meaning: string,
  secret: boolean,
): Setting<string, undefined> {
  return { variable, anyCase: true, secret, form, fallback: undefined, otherwise: "none", meaning };
}
