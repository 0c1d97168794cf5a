import { LIMITS, OWN_BODY_BYTES } from "../../spec/limits.ts";
import type { BulkOperation } from "../../spec/routes.ts";
import type { Binding, Weight } from "./entries.ts";

/** `{"items":[` and `]}`, the longer of the two envelopes of a bulk request. */
const ENVELOPE_BYTES = 12;

const BYTES = OWN_BODY_BYTES - ENVELOPE_BYTES;
const NO_LIMIT = Number.POSITIVE_INFINITY;

const OPTION_REQUEST = {
  items: LIMITS.optionItems.value,
  options: NO_LIMIT,
  groupItems: LIMITS.groupItems.value,
  contextIds: LIMITS.requestContextIds.value,
  bytes: BYTES,
} as const;

const TARGETING_REQUEST = {
  items: LIMITS.targetingItems.value,
  options: NO_LIMIT,
  groupItems: NO_LIMIT,
  contextIds: LIMITS.requestContextIds.value,
  bytes: BYTES,
} as const;

/** What one request may weigh, by operation (management-api 8.1). */
export const REQUEST_LIMITS: Readonly<Record<BulkOperation, Weight>> = {
  createTargetings: { ...TARGETING_REQUEST, options: LIMITS.targetingCreateOptions.value },
  renameTargetings: TARGETING_REQUEST,
  deleteTargetings: TARGETING_REQUEST,
  addOptions: { ...OPTION_REQUEST, options: LIMITS.optionAddOptions.value },
  updateOptions: OPTION_REQUEST,
  deleteOptions: OPTION_REQUEST,
};

/** The five measures of a weight, in the order in which packing looks at them. */
export const MEASURES = ["items", "options", "groupItems", "contextIds", "bytes"] as const;

/** Bytes of a ULID in JSON, quotes included: every bound ID is one. */
const ID_BYTES = 28;

/** Bytes that a request item adds to a body beside its JSON: the bound fields, and one comma. */
function boundBytes(bindings: readonly Binding[]): number {
  return bindings.reduce((bytes, { field }) => bytes + field.length + 4 + ID_BYTES, 1);
}

/** Bytes that a request item adds to a body: its JSON (`json` without the bound fields), the bound fields, one comma. */
export function entryBytes(json: string, bindings: readonly Binding[]): number {
  return Buffer.byteLength(json, "utf8") + boundBytes(bindings);
}
