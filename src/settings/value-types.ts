import { delimiter, resolve } from "node:path";

/** `words` follows "X must be". `read` returns undefined for an invalid text. `toggle`: the flag needs no value. */
export interface Form<Value> {
  readonly words: string;
  readonly toggle?: true;
  readonly choices?: readonly string[];
  readonly read: (text: string) => Value | undefined;
}

export const text: Form<string> = { words: "a text", read: (given) => given };

export const headerKey: Form<string> = {
  words: "a key of visible ASCII characters, since it travels in an HTTP header",
  read: (given) => (/^[\x21-\x7e]+$/.test(given) ? given : undefined),
};

/** The address of an API. May have a path, but no user name, query or fragment. A final slash is removed. */
export const address: Form<string> = {
  words: "an http:// or https:// address without a user name, query or fragment",
  read(given) {
    if (!/^https?:\/\//i.test(given) || !URL.canParse(given)) return undefined;
    const url = new URL(given);
    if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") return undefined;
    return url.origin + url.pathname.replace(/\/+$/, "");
  },
};

/** The issuer of tokens, exactly as the tokens have it. Plain HTTP is allowed only on this machine. */
export const issuer: Form<string> = {
  words: "an https:// address (http:// on this machine only) without a user name, query or fragment",
  read(given) {
    // Callers' names are issuer, space, subject. With a space in the issuer, two callers could have the same name.
    if (address.read(given) === undefined || /\s/.test(given)) return undefined;
    return given.toLowerCase().startsWith("https:") || isLoopback(given) ? given : undefined;
  },
};

/** An address whose content is trusted, so it must use https, or http on this machine. */
export const secureAddress: Form<string> = {
  words: "an https:// address (http:// on this machine only) without a user name, query or fragment",
  read: (given) => (issuer.read(given) === undefined ? undefined : address.read(given)),
};

const SEAL_BYTES = 32;

export const sealKey: Form<string> = {
  words: `at least ${SEAL_BYTES} random bytes in base64`,
  read: (given) =>
    /^[A-Za-z0-9+/_-]+={0,2}$/.test(given) && Buffer.from(given, "base64").length >= SEAL_BYTES ? given : undefined,
};

export const databaseAddress: Form<string> = {
  words: "a postgres:// address",
  read: (given) => (/^postgres(ql)?:\/\//i.test(given) && URL.canParse(given) ? given : undefined),
};

/** The address of a proxy. May have a user name and a password. Without a scheme, it means http. */
export const proxyAddress: Form<string> = {
  words: "an http:// or https:// address",
  read(given) {
    const whole = given.includes("://") ? given : `http://${given}`;
    return /^https?:\/\//i.test(whole) && URL.canParse(whole) ? whole : undefined;
  },
};

/** If a setting of these forms is invalid, a server over stdio starts nevertheless. Calls that need it report it. */
export const KEYS_AND_ADDRESSES: ReadonlySet<Form<unknown>> = new Set([
  ...[headerKey, sealKey, address, issuer, secureAddress, databaseAddress, proxyAddress],
]);

export function wholeNumber(least: number, most: number): Form<number> {
  return {
    words: `a whole number from ${least} to ${most}`,
    read(given) {
      if (!/^\d{1,15}$/.test(given)) return undefined;
      const value = Number(given);
      return value >= least && value <= most ? value : undefined;
    },
  };
}

export const toggle: Form<boolean> = {
  words: "on or off (also true, false, yes, no, 1, 0)",
  toggle: true,
  read(given) {
    if (/^(on|true|yes|1)$/i.test(given)) return true;
    return /^(off|false|no|0)$/i.test(given) ? false : undefined;
  },
};

export function oneOf<Word extends string>(...words: readonly Word[]): Form<Word> {
  const read = (given: string) => words.find((word) => word === given);
  return { words: `one of ${words.join(", ")}`, choices: words, read };
}

/** Returns the form of a comma-separated list of these words. A repeated word counts once. */
export function someOf<Word extends string>(...words: readonly Word[]): Form<readonly Word[]> {
  return {
    words: `a comma list of ${words.join(", ")}`,
    read(given) {
      const parts = listedIn(given, ",");
      const known = words.filter((word) => parts.includes(word));
      return known.length > 0 && parts.every((part) => known.some((word) => word === part)) ? known : undefined;
    },
  };
}

export const commaList: Form<readonly string[]> = {
  words: "a comma list",
  read: (given) => listedIn(given, ","),
};

/** Returns the parts of a list without outer spaces. Omits empty ones. */
function listedIn(given: string, separator: string): readonly string[] {
  return given
    .split(separator)
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

export const path: Form<string> = { words: "a path", read: (given) => resolve(given) };

/** What a sandbox contains at its start: nothing, sample data, or the content of a file (an absolute path). */
export type SandboxSeed = "none" | "sample" | { readonly file: string };

export const seed: Form<SandboxSeed> = {
  words: "none, sample, or the path of a JSON file",
  read: (given) => (given === "none" || given === "sample" ? given : { file: resolve(given) }),
};

/** A list of folders, separated as in PATH. Relative paths are made absolute. */
export const folders: Form<readonly string[]> = {
  words: 'folders separated by ":" (";" on Windows)',
  read: (given) => listedIn(given, delimiter).map((part) => resolve(part)),
};

/** A setting of this program. Its flag, documentation and manifests are generated from this object. */
export interface Setting<Value, Fallback = Value | undefined> {
  readonly variable: string;
  /** The flag without its dashes. Absent for secrets, and for variables that other programs also use. */
  readonly flag?: string;
  /** Whether the variable is also read in lower case (`https_proxy`), as other programs do. */
  readonly anyCase?: true;
  /** Whether the value is secret: it is never shown. It (of an address, its password) is removed from all output. */
  readonly secret: boolean;
  readonly form: Form<Value>;
  readonly fallback: Fallback;
  readonly otherwise: string;
  readonly meaning: string;
}

export type Read = <Value, Fallback>(setting: Setting<Value, Fallback>) => Value | Fallback;

export const OWN_PREFIX = "TARGETING_MCP_";

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

export function onOff(variable: string, meaning: string, fallback = false): Setting<boolean, boolean> {
  return setting(variable, toggle, fallback, meaning, fallback ? "on" : "off");
}

export function optional<Value>(
  variable: string,
  form: Form<Value>,
  meaning: string,
  otherwise?: string,
): Setting<Value, undefined> {
  return setting(variable, form, undefined, meaning, otherwise);
}

/** Defines a setting for a key or other secret. It has no flag, as other users of a machine can see command lines. */
export function key(
  variable: string,
  meaning: string,
  form = headerKey,
  otherwise = "none",
): Setting<string, undefined> {
  return { variable, secret: true, form, fallback: undefined, otherwise, meaning };
}

/** Defines a setting whose environment variable other programs also use. It has no flag. */
export function shared(
  variable: string,
  form: Form<string>,
  meaning: string,
  secret: boolean,
): Setting<string, undefined> {
  return { variable, anyCase: true, secret, form, fallback: undefined, otherwise: "none", meaning };
}

/** Thrown if a setting, flag, argument or file cannot be used. `variable`: the setting to change, if there is one. */
export class SettingsError extends Error {
  readonly variable: string | undefined;
  constructor(message: string, variable?: string) {
    super(message);
    this.variable = variable;
  }
}

export function isLoopback(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname);
}

export function isPlain(url: string): boolean {
  return /^http:/i.test(url) && !isLoopback(url);
}
