/** What the answers before left to go on with. */
export interface Known {
  /** The ID of an option or targeting by its name, as an answer gave it. */
  readonly id: (name: string) => string;
  /** The run and the token of the last answer that had one. */
  readonly runId: () => string;
  readonly token: () => string;
  /** A folder that the server may use, with files of these names. */
  readonly file: (name: string) => string;
}

/** A typical call: what a person wanted, the tool, and its arguments. */
export interface TypicalCall {
  readonly wish: string;
  readonly tool: string;
  readonly given: (known: Known) => Readonly<Record<string, unknown>>;
  /** Sent to the sandbox's control plane before: what another writer does, or which fault there is. */
  readonly before?: readonly [path: string, body: object];
}

const numbers = (count: number, word: string): readonly string[] =>
  Array.from({ length: count }, (_, at) => `${word}-${String(at + 1).padStart(4, "0")}`);

/** The files that calls name. */
export const FILES: Readonly<Record<string, string>> = {
  "brands.csv":
    "name,contextId\nBrand Alpha,alpha-1\nBrand Alpha,alpha-2\n\nBrand Beta,beta-1\nBrand_Gamma,gamma-1\nBrand Delta,delta-1\n",
  "events.ndjson": [
    { uid: "user-1", eventName: "add_to_cart", item_id: "sku-1", price: 12000, quantity: 1 },
    { uid: "user-2", eventName: "addToCart", item_id: "sku-2", price: 9000, quantity: 1 },
    { uid: "user-3", eventName: "checkout_step2" },
    { uid: "user-4", eventName: "purchase", order_id: "T-4", value: 12000, currency: "KRW" },
  ]
    .map((event) => `${JSON.stringify(event)}\n`)
    .join(""),
};

/** Calls in one session, each as agents make it. */
export const CALLS: readonly TypicalCall[] = [
  {
    wish: "Make two targetings.",
    tool: "create_targetings",
    given: () => ({ items: [{ name: "Footwear KR" }, { name: "Winter Sale 2025" }] }),
  },
  { wish: "Which targetings are there?", tool: "get_targeting", given: () => ({}) },
  {
    wish: "Rename last year's sale.",
    tool: "rename_targetings",
    given: ({ id }) => ({ items: [{ _id: id("Winter Sale 2025"), name: "Winter Sale 2026" }] }),
  },
  {
    wish: "What would adding these options do?",
    tool: "bulk_add_options",
    given: () => ({ targetingName: "Footwear KR", dryRun: true, items: [{ name: "Sneakers" }, { name: "bad_name" }] }),
  },
  {
    wish: "Add options, and a group with sub-options.",
    tool: "bulk_add_options",
    given: () => ({
      targetingName: "Footwear KR",
      items: [
        { name: "Sneakers", contexts: numbers(150, "sn") },
        { name: "Sandals", contexts: ["sa-1", "sa-2"] },
        { name: "Shoes", type: "collection", children: [{ name: "Boots", contexts: ["bo-1"] }, { name: "Loafers" }] },
      ],
    }),
  },
  {
    wish: "Add those that are missing.",
    tool: "bulk_add_options",
    given: () => ({
      targetingName: "Footwear KR",
      onExisting: "skip",
      items: [{ name: "Sandals" }, { name: "Socks" }],
    }),
  },
  {
    wish: "Add them, and give those that exist the Context IDs.",
    tool: "bulk_add_options",
    given: () => ({
      targetingName: "Footwear KR",
      onExisting: "addContexts",
      items: [
        { name: "Sandals", contexts: ["sa-2", "sa-3"] },
        { name: "Slippers", contexts: ["sl-1"] },
      ],
    }),
  },
  {
    wish: "Add 60 options of which 30 have wrong names.",
    tool: "bulk_add_options",
    given: () => ({
      targetingName: "Winter Sale 2026",
      items: Array.from({ length: 60 }, (_, at) => ({ name: at >= 20 && at < 50 ? `bad_${at}` : `Option ${at}` })),
    }),
  },
  {
    wish: "What did the failed ones hold?",
    tool: "get_run",
    given: ({ runId }) => ({ runId: runId(), outcome: "failed", includeInput: true, limit: 3 }),
  },
  {
    wish: "Import a file.",
    tool: "bulk_add_options",
    given: ({ file }) => ({ targetingName: "Winter Sale 2026", file: file("brands.csv") }),
  },
  { wish: "Show the options.", tool: "list_options", given: () => ({ targetingName: "Footwear KR" }) },
  { wish: "Show one option.", tool: "get_option", given: ({ id }) => ({ optionId: id("Sandals") }) },
  {
    wish: "Sandals holds exactly these.",
    tool: "update_contexts",
    given: () => ({ targetingName: "Footwear KR", items: [{ name: "Sandals", set: ["sa-1", "sa-9"] }] }),
  },
  {
    wish: "Move Context IDs from one option to another.",
    tool: "update_contexts",
    given: ({ id }) => ({
      items: [
        { _id: id("Boots"), add: ["bo-1", "sn-0001"] },
        { _id: id("Sneakers"), remove: ["sn-0001", "sn-9999"] },
      ],
    }),
  },
  {
    wish: "Empty an option, which asks first.",
    tool: "update_contexts",
    given: () => ({ targetingName: "Footwear KR", items: [{ name: "Sandals", set: [] }] }),
  },
  { wish: "The person said yes.", tool: "update_contexts", given: ({ token }) => ({ confirmation: token() }) },
  {
    wish: "Rename an option and move another into a group.",
    tool: "update_options",
    given: ({ id }) => ({
      items: [
        { _id: id("Socks"), name: "Warm Socks" },
        { _id: id("Slippers"), parent: id("Shoes") },
      ],
    }),
  },
  {
    wish: "Swap the names of two options.",
    tool: "update_options",
    given: ({ id }) => ({
      items: [
        { _id: id("Sneakers"), name: "Sandals" },
        { _id: id("Sandals"), name: "Sneakers" },
      ],
    }),
  },
  { wish: "Delete an option.", tool: "delete_options", given: ({ id }) => ({ ids: [id("Boots")] }) },
  { wish: "The person said yes.", tool: "delete_options", given: ({ token }) => ({ confirmation: token() }) },
  { wish: "Delete a targeting.", tool: "delete_targeting", given: ({ id }) => ({ ids: [id("Winter Sale 2025")] }) },
  {
    wish: "Add an option with a key that may not write.",
    tool: "bulk_add_options",
    given: () => ({ targetingName: "Footwear KR", items: [{ name: "Clogs" }] }),
    before: ["/faults", { faults: [{ on: "addOptions", kind: "status", status: 403, times: 1 }] }],
  },
  { wish: "The key is mended: go on.", tool: "resume_run", given: ({ runId }) => ({ runId: runId() }) },
  {
    wish: "Add an option while others write without a pause.",
    tool: "bulk_add_options",
    given: () => ({ targetingName: "Footwear KR", items: [{ name: "Loafers" }] }),
    before: ["/faults", { faults: [{ on: "addOptions", kind: "busy", retryAfterMs: 100, times: 10_000 }] }],
  },
  {
    wish: "Look at a run that is not there.",
    tool: "get_run",
    given: () => ({ runId: "01JABCDEFGHJKMNPQRSTVWXYZ0" }),
  },
  {
    wish: "Change 50,000 items, of which none is there.",
    tool: "update_contexts",
    given: () => ({
      targetingName: "Footwear KR",
      items: Array.from({ length: 50_000 }, (_, at) => ({ name: `Model ${at + 1}`, add: ["sku"] })),
    }),
  },
  {
    wish: "Which events are there for a checkout?",
    tool: "list_event_types",
    given: () => ({ eventNames: ["begin_checkout", "sign_up"] }),
  },
  {
    wish: "Send an event.",
    tool: "track_event",
    given: () => ({ uid: "user-1", eventName: "sign_up", method: "mail" }),
  },
  { wish: "Send one that is wrong.", tool: "track_event", given: () => ({ uid: "user-1", eventName: "signUp" }) },
  { wish: "Send a file of events.", tool: "track_events", given: ({ file }) => ({ file: file("events.ndjson") }) },
  {
    wish: "What did those hold that were not sent?",
    tool: "get_run",
    given: ({ runId }) => ({ runId: runId(), outcome: "failed", includeInput: true }),
  },
  {
    wish: "Send two of them, putting right what is plainly misspelt.",
    tool: "track_events",
    given: () => ({
      autocorrect: true,
      items: [
        { uid: "user-2", eventName: "addToCart", item_id: "sku-2", price: 9000, quantity: 1 },
        { uid: "user-4", eventName: "purchase", txId: "T-4", value: 12000, currency: "KRW" },
      ],
    }),
  },
  {
    wish: "Did they arrive?",
    tool: "inspect_events",
    given: () => ({ uid: "user-4", expect: [{ eventName: "purchase" }, { eventName: "sign_up" }] }),
  },
];
