import { KEYS_AND_ADDRESSES, type Setting } from "../settings/value-types.ts";

const HIDDEN = "***";

/** Returns an address as it may be shown: without user name, password, query and fragment. */
export function shownAddress(given: string): string {
  const [, scheme = "", rest = ""] = /^([a-z][a-z0-9+.-]*:[\\/]{2})?(.*)$/is.exec(given) ?? [];
  const [before = ""] = rest.split(/[?#]/, 1);
  const after = rest.slice(before.length);
  // A password may contain ? and #, and a query may contain @. Then it is unclear where the password ends.
  if (after.includes("@")) return `${scheme}${HIDDEN}`;
  const user = before.lastIndexOf("@") + 1;
  return `${scheme}${user > 0 ? `${HIDDEN}@` : ""}${before.slice(user)}${after && `${after.slice(0, 1)}${HIDDEN}`}`;
}

/** Returns a text whose addresses may be shown. */
export function withoutCredentials(text: string): string {
  return text.replace(/[a-z][a-z0-9+.-]*:\/\/[^\s"<>]+/gi, shownAddress);
}

/** Returns the text of a setting as it may be shown. A secret one is never shown. */
export function shownText({ form }: Pick<Setting<unknown, unknown>, "form">, given: string): string {
  return KEYS_AND_ADDRESSES.has(form) ? shownAddress(given) : withoutCredentials(given);
}
