/** A limit of the API documents: its value, the section that states it, and the error if it is exceeded. */
export interface Limit {
  readonly value: number;
  readonly section: string;
  readonly exceeded: string;
}

const VALIDATION = "400 validation";
const CONTEXT_LIMIT = "400 TARGETING_CONTEXT_LIMIT_EXCEEDED";

/** Every limit of the management API (management-api 8.1). Bytes are UTF-8, lengths are Unicode code points. */
export const LIMITS = {
  /** Items of one targeting bulk request: create, rename, delete. */
  targetingItems: { value: 100, section: "8.1", exceeded: VALIDATION },
  /** Options in one targeting create request, sub-options included, over all items. */
  targetingCreateOptions: { value: 100, section: "8.1", exceeded: VALIDATION },
  /** Items of one option bulk request: add, update, delete. */
  optionItems: { value: 5000, section: "8.1", exceeded: VALIDATION },
  /** Options in one option add request, sub-options included, over all items. */
  optionAddOptions: { value: 5000, section: "8.1", exceeded: VALIDATION },
  /** Option-group items of one option bulk request. */
  groupItems: {
    value: 150,
    section: "8.1",
    exceeded: "400 validation for add and update; 400 TARGETING_CATEGORY_TREE_ITEMS_LIMIT_EXCEEDED for delete",
  },
  /** Context IDs of one request, over all items, across `add`, `remove` and `set`. */
  requestContextIds: { value: 10_000, section: "8.1", exceeded: VALIDATION },
  /** Length of a Context ID in bytes, after trimming. */
  contextIdBytes: { value: 256, section: "8.1", exceeded: VALIDATION },
  /** The maximum size of a request body in bytes ("8 MB", read as mebibytes: assumed). */
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
  /** `limit` of List Options: 1 to this, which is also the default. */
  listLimit: { value: 1000, section: "8.1", exceeded: VALIDATION },
  /** `limit` of Get an Option: 1 to this, which is also the default. */
  getLimit: { value: 10_000, section: "8.1", exceeded: VALIDATION },
  /** `offset` of Get an Option: 0 to this. */
  getOffset: { value: 50_000, section: "8.1", exceeded: VALIDATION },
  /** Sub-option IDs in `children` of a group in an answer. */
  childrenShown: { value: 50, section: "8.1", exceeded: "not applicable" },
  /** Entries of `detail.conflicts`. */
  conflictsShown: { value: 20, section: "8.1", exceeded: "not applicable" },
  /** The maximum of `detail.retryAfterMs`, in milliseconds. */
  retryAfterMs: { value: 2000, section: "4.2", exceeded: "not applicable" },
} as const satisfies Record<string, Limit>;

/** The maximum size of our own request bodies in bytes. It satisfies both readings of "8 MB". */
export const OWN_BODY_BYTES = 8_000_000;

/** Every limit of the event API (event-tracking-api 8). Lengths are Unicode code points. */
export const EVENT_LIMITS = {
  eventNameLength: { value: 64, section: "8", exceeded: "!invalid" },
  items: { value: 100, section: "8", exceeded: "!invalid" },
  stringLength: { value: 1024, section: "8", exceeded: "!invalid" },
} as const satisfies Record<string, Limit>;
