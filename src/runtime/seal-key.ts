import { hkdfSync } from "node:crypto";
import { RunStoreError } from "../runs/store.ts";
import { SettingsError } from "../settings/value-types.ts";
import { once } from "../tools/define-tool.ts";

const KEY_BYTES = 32;

/** What a key seals. Each purpose has its own key, so that a seal of one is invalid for another. */
type SealPurpose = "confirmation" | "question" | "page";

/** Gives the key of a purpose: 32 bytes, the same for all processes that share the setting or the kept key. */
export type SealKeys = (purpose: SealPurpose) => Promise<Uint8Array>;

/**
 * Keys for seals, made from the setting (base64) or else from the one that `kept` gives. Throws a SettingsError where
 * that cannot be had.
 */
export function sealKeys(sealKey: string | undefined, kept: () => Promise<Uint8Array>): SealKeys {
  const root = once(async () => (sealKey === undefined ? kept().catch(asSetting) : Buffer.from(sealKey, "base64")));
  return async (purpose) => new Uint8Array(hkdfSync("sha256", await root(), "", purpose, KEY_BYTES));
}

function asSetting(thrown: unknown): never {
  if (!(thrown instanceof RunStoreError)) throw thrown;
  throw new SettingsError(`${thrown.message}; TARGETING_MCP_STATE_DIR names another folder`, "TARGETING_MCP_STATE_DIR");
}
