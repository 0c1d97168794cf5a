import { LIMITS, OWN_BODY_BYTES } from "../../spec/limits.ts";
import type { BulkOperation } from "../../spec/routes.ts";
import type { Weight } from "../rows/entries.ts";

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
