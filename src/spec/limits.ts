/**
 * A limit of the service. `section`: the section of the API document that states it. `exceeded`: how the service
 * answers a request that exceeds it.
 */
interface Limit {
  readonly value: number;
  readonly section: string;
  readonly exceeded: string;
}

const VALIDATION = "400 validation";
const CONTEXT_LIMIT = "400 TARGETING_CONTEXT_LIMIT_EXCEEDED";

/** The limits of management-api 8.1. Bytes are UTF-8 bytes, lengths are Unicode code points. */
export const LIMITS = {
  targetingItems: { value: 100, section: "8.1", exceeded: VALIDATION },
  /** Options and sub-options of all items in one request that creates targetings. */
  targetingCreateOptions: { value: 100, section: "8.1", exceeded: VALIDATION },
  optionItems: { value: 5000, section: "8.1", exceeded: VALIDATION },
  optionAddOptions: { value: 5000, section: "8.1", exceeded: VALIDATION },
  groupItems: {
    value: 150,
    section: "8.1",
    exceeded: "400 validation for add and update; 400 TARGETING_CATEGORY_TREE_ITEMS_LIMIT_EXCEEDED for delete",
  },
  /** Context IDs of all items in one request, counting `add`, `remove` and `set`. */
  requestContextIds: { value: 10_000, section: "8.1", exceeded: VALIDATION },
  contextIdBytes: { value: 256, section: "8.1", exceeded: VALIDATION },
  /** The bytes of a request body: "8 MB", read as mebibytes (assumed). */
  bodyBytes: { value: 8 * 1_048_576, section: "8.1", exceeded: "413" },
  optionContextIds: { value: 50_000, section: "8.1", exceeded: CONTEXT_LIMIT },
  optionContextBytes: { value: 8 * 1_048_576, section: "8.1", exceeded: CONTEXT_LIMIT },
  projectContextIds: { value: 200_000, section: "8.1", exceeded: CONTEXT_LIMIT },
  targetingOptions: { value: 100_000, section: "8.1", exceeded: "400 TARGETING_CATEGORY_LIMIT_EXCEEDED" },
  productRequiredOptions: {
    value: 500,
    section: "8.1",
    exceeded: "400 AD_PRODUCT_TARGETING_POLICY_LIMIT_EXCEEDED",
  },
  nameMinLength: { value: 2, section: "8.1", exceeded: VALIDATION },
  nameMaxLength: { value: 36, section: "8.1", exceeded: VALIDATION },
  /** The highest value, and the default, of `limit` in List Options. The lowest is 1. */
  listLimit: { value: 1000, section: "8.1", exceeded: VALIDATION },
  /** The highest value, and the default, of `limit` in Get an Option. The lowest is 1. */
  getLimit: { value: 10_000, section: "8.1", exceeded: VALIDATION },
  /** The highest value of `offset` in Get an Option. The lowest is 0. */
  getOffset: { value: 50_000, section: "8.1", exceeded: VALIDATION },
  childrenShown: { value: 50, section: "8.1", exceeded: "not applicable" },
  conflictsShown: { value: 20, section: "8.1", exceeded: "not applicable" },
  retryAfterMs: { value: 2000, section: "4.2", exceeded: "not applicable" },
} as const satisfies Record<string, Limit>;

/**
 * The maximum size in bytes of a body that this program sends. It is below "8 MB" whether MB means 1,000,000 or
 * 1,048,576 bytes.
 */
export const OWN_BODY_BYTES = 8_000_000;

/** The limits of event-tracking-api 8. Lengths are Unicode code points. */
export const EVENT_LIMITS = {
  eventNameLength: { value: 64, section: "8", exceeded: "!invalid" },
  items: { value: 100, section: "8", exceeded: "!invalid" },
  stringLength: { value: 1024, section: "8", exceeded: "!invalid" },
} as const satisfies Record<string, Limit>;
