import type { Binding } from "./entries.ts";

/** Bytes of a ULID in JSON, quotes included: every bound ID is one. */
const ID_BYTES = 28;

/** Bytes that a request item adds to a body beside its JSON: the bound fields, and one comma. */
function boundBytes(bindings: readonly Binding[]): number {
  return bindings.reduce((bytes, { field }) => bytes + field.length + 4 + ID_BYTES, 1);
}

/**
 * Bytes that a request item adds to a body: its JSON (`json` without the bound fields), the bound fields, one comma.
 */
export function entryBytes(json: string, bindings: readonly Binding[]): number {
  return Buffer.byteLength(json, "utf8") + boundBytes(bindings);
}
