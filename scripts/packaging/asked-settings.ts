import { SETTINGS } from "../../src/settings/registry.ts";
import { folders, type Setting, toggle } from "../../src/settings/value-types.ts";

/** A setting that installers ask a person for. */
export interface AskedSetting {
  /** The label that the person reads above the field. */
  readonly title: string;
  readonly setting: Setting<unknown>;
  readonly kind: "text" | "switch" | "folders";
}

const TITLES = {
  targetingApiUrl: "Management API: address",
  targetingApiKey: "Management API: key",
  eventApiUrl: "Event API: address",
  eventAppKey: "Event API: application key",
  mode: "Mode",
  readOnly: "Read only",
  confirm: "Confirmation",
  allowedDirs: "Allowed folders",
} as const satisfies Partial<Record<keyof typeof SETTINGS, string>>;

/** The settings that installers ask for, in the order of `SETTINGS`. A person can set all others by hand. */
export const ASKED_SETTINGS: readonly AskedSetting[] = Object.entries(SETTINGS).flatMap(([name, setting]) =>
  hasTitle(name) ? [{ title: TITLES[name], setting, kind: kindOf(setting) }] : [],
);

function hasTitle(name: string): name is keyof typeof TITLES {
  return Object.hasOwn(TITLES, name);
}

function kindOf({ form }: Setting<unknown>): AskedSetting["kind"] {
  if (form === toggle) return "switch";
  return form === folders ? "folders" : "text";
}

/** Returns the meaning, the form and the default of a setting. */
export function explained({ meaning, form, otherwise }: Setting<unknown>): string {
  const plain = meaning.replaceAll("`", "");
  return `${plain.charAt(0).toUpperCase()}${plain.slice(1)} (${form.words}; default: ${otherwise.replaceAll("`", "")})`;
}
