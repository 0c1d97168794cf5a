/** A limit of the service, the section of the API document, and the answer to a request that exceeds it. */
interface Limit {
  readonly value: number;
  readonly section: string;
  readonly exceeded: string;
}

const VALIDATION = "400 validation";
const CONTEXT_LIMIT = "400 TARGETING_CONTEXT_LIMIT_EXCEEDED";

/** The limits of management-api 8.1 and 4.2. Bytes are those of UTF-8. Lengths are counted in code points (assumed). */
export const LIMITS = {
  targetingItems: { value: 100, section: "8.1", exceeded: VALIDATION },
  /** How many options and sub-options all items of one request that creates targetings may have together. */
  targetingCreateOptions: { value: 100, section: "8.1", exceeded: VALIDATION },
  optionItems: { value: 5000, section: "8.1", exceeded: VALIDATION },
  optionAddOptions: { value: 5000, section: "8.1", exceeded: VALIDATION },
  groupItems: {
    value: 150,
    section: "8.1",
    exceeded: "400 validation for add and update; 400 TARGETING_CATEGORY_TREE_ITEMS_LIMIT_EXCEEDED for delete",
  },
  /** How many Context IDs all items of one request may have together: of new options, and in `add`, `remove`, `set`. */
  requestContextIds: { value: 10_000, section: "8.1", exceeded: VALIDATION },
  contextIdBytes: { value: 256, section: "8.1", exceeded: VALIDATION },
  /** The largest request body. The document says "8 MB", which is assumed to mean 8 × 1,048,576 bytes. */
  bodyBytes: { value: 8 * 1_048_576, section: "8.1", exceeded: "413" },
  optionContextIds: { value: 50_000, section: "8.1", exceeded: CONTEXT_LIMIT },
  optionContextBytes: { value: 8 * 1_048_576, section: "8.1", exceeded: CONTEXT_LIMIT },
  projectContextIds: { value: 200_000, section: "8.1", exceeded: CONTEXT_LIMIT },
  targetingOptions: { value: 100_000, section: "8.1", exceeded: "400 TARGETING_CATEGORY_LIMIT_EXCEEDED" },
  productRequiredOptions: { value: 500, section: "8.1", exceeded: "400 AD_PRODUCT_TARGETING_POLICY_LIMIT_EXCEEDED" },
  nameMinLength: { value: 2, section: "8.1", exceeded: VALIDATION },
  nameMaxLength: { value: 36, section: "8.1", exceeded: VALIDATION },
  /** The highest `limit` of List Options, which is also the default. The lowest is 1. */
  listLimit: { value: 1000, section: "8.1", exceeded: VALIDATION },
  /** The highest `limit` of Get an Option, which is also the default. The lowest is 1. */
  getLimit: { value: 10_000, section: "8.1", exceeded: VALIDATION },
  /** The highest `offset` of Get an Option. The lowest is 0. */
  getOffset: { value: 50_000, section: "8.1", exceeded: VALIDATION },
  childrenShown: { value: 50, section: "8.1", exceeded: "not applicable" },
  conflictsShown: { value: 20, section: "8.1", exceeded: "not applicable" },
  retryAfterMs: { value: 2000, section: "4.2", exceeded: "not applicable" },
} as const satisfies Record<string, Limit>;

/** The largest body that this program sends, in bytes: at most "8 MB", whether MB means 1,000,000 or 1,048,576. */
export const OWN_BODY_BYTES = 8_000_000;

/** The limits of event-tracking-api 8. Lengths are counted in Unicode code points (assumed). */
export const EVENT_LIMITS = {
  eventNameLength: { value: 64, section: "8", exceeded: "!invalid" },
  items: { value: 100, section: "8", exceeded: "!invalid" },
  stringLength: { value: 1024, section: "8", exceeded: "!invalid" },
} as const satisfies Record<string, Limit>;
