/** A folder of `src/`: what it holds, and which other rooms its files may import from. */
export interface Room {
  /** The path below `src/`. */
  readonly path: string;
  /** What is found there, as the table in docs/architecture.md says it. */
  readonly holds: string;
  /** The rooms that its files may import from besides their own. */
  readonly uses: readonly string[];
  /** Whether its files run in a browser; they may be TSX. */
  readonly isBrowser?: true;
}

const GROUND = ["spec", "platform"];
const API = ["api", "api/retry", ...GROUND];
const RUNS = ["runs", "runs/processes", "runs/backend", ...GROUND];
const RUN_FILES = ["runs/file", "runs/file/locks", "runs/file/seen"];
const RUN_STORES = [...RUN_FILES, "runs/postgres", "runs/postgres/database"];
const READING = ["reading", "files", ...API, ...RUNS];
const PARTS = ["changes/state", "changes/rows"];
const PLANNING = [
  "changes/plan",
  "changes/plan/creating",
  "changes/plan/contexts",
  "changes/plan/names",
  "changes/plan/desired",
  "changes/plan/dry-run",
];
const SETTLING = ["changes/settle", "changes/settle/lost-answers"];
const CHANGES = ["changes", "changes/send", ...SETTLING, "changes/pack", ...PLANNING, ...PARTS];
const EVENTS = ["events/suites", "events/watch", "events/run", "events/run/send", "events/check"];
const PLAN_FILES = ["plans/file", "plans/file/forms"];
const PLANS = ["plans", "plans/undo", "plans/diff", "plans/base", ...PLAN_FILES];
const KINDS = ["saves", "approvals", ...CHANGES, ...PLANS, ...EVENTS, ...READING];
const RENDER = ["render/changes", "render/failures", "render/events", "render/plans", "render"];
const ANSWERS = [...RENDER, ...KINDS];
const WRITING = ["tools/writing", "tools/writing/confirmation"];
const TOOLS = [
  "tools",
  "tools/targeting",
  "tools/targeting/reads",
  "tools/plans",
  "tools/runs",
  "tools/events",
  ...WRITING,
];
const OBSERVING = "server/observing";
const INSIDE = [OBSERVING, "server/calls", "server/asking", "server/prompts", "server/resources", "server/arguments"];
const SERVER = ["server/http", "server/stdio", "server/views", "server", ...INSIDE];
const MANAGEMENT = ["sandbox/management", "sandbox/management/rules", "sandbox/management/stored"];
const SANDBOX = ["sandbox", "sandbox/http", ...MANAGEMENT, "sandbox/events"];
const BELOW_COMMANDS = [...SERVER, ...TOOLS, ...ANSWERS, ...RUN_STORES, "settings"];

/**
 * Every folder of `src/`, the highest first. The import rules in `biome.rooms.json` and the table in
 * docs/architecture.md are made from this list by `npm run docs`; test/structure.test.ts holds that every folder stands
 * in it, and that no room uses one above it. A room inside another and that other share a subject: they may use each
 * other, as the list says, and the linter refuses circles of files everywhere.
 */
export const ROOMS: readonly Room[] = [
  {
    path: "commands",
    holds: "the commands, and the only place that wires the rooms together",
    uses: [
      "commands/connecting",
      "commands/http",
      "commands/sandbox",
      "commands/plans",
      "commands/page",
      "commands/setup",
      "commands/setup/config",
      "commands/doctor",
      ...SANDBOX,
      ...BELOW_COMMANDS,
    ],
  },
  {
    path: "commands/http",
    holds: "the command that serves over HTTP: its settings of access, and a context for each project",
    uses: ["commands", "commands/connecting", "commands/doctor", "commands/http/people", ...BELOW_COMMANDS],
  },
  {
    path: "commands/http/people",
    holds: "the people who decide over HTTP: who may approve what, their page, and how they learn of a run that waits",
    uses: ["commands/http", "commands/page", "page", "page/runs", "page/serve", ...BELOW_COMMANDS],
  },
  {
    path: "commands/sandbox",
    holds: "the command that serves the emulated service, and the one that runs inside another command",
    uses: ["commands", "commands/connecting", "page/sandbox", ...SANDBOX, ...BELOW_COMMANDS],
  },
  {
    path: "commands/connecting",
    holds: "connects the rooms below the server: the store, the APIs, the runs, the log, and who looks at all of it",
    uses: ["commands", "commands/sandbox", "commands/page", ...SANDBOX, ...BELOW_COMMANDS],
  },
  {
    path: "commands/page",
    holds: "the page of this machine's runs: its server on loopback, its link, and the browser that it opens",
    uses: ["commands", "commands/connecting", "page", "page/runs", "page/serve", ...BELOW_COMMANDS],
  },
  {
    path: "commands/plans",
    holds: "the commands of the desired state: export, plan, apply, drift; and the list of runs",
    uses: ["commands", "commands/connecting", "commands/setup", ...BELOW_COMMANDS],
  },
  {
    path: "commands/doctor",
    holds: "what is wrong with the settings, keys, scopes, folders and routes, and what to do",
    uses: [
      "commands",
      "commands/connecting",
      "commands/http",
      "commands/http/people",
      "commands/sandbox",
      ...BELOW_COMMANDS,
    ],
  },
  {
    path: "commands/setup",
    holds: "this server's entry in the configurations of hosts",
    uses: ["commands", "commands/setup/config", "render", ...GROUND, "settings"],
  },
  {
    path: "commands/setup/config",
    holds: "configuration files of hosts, JSON and TOML: one entry is changed, and the rest stays as it was",
    uses: ["commands/setup", ...GROUND],
  },
  {
    path: "server/http",
    holds: "Streamable HTTP: guards, limits, sessions, tokens and OAuth",
    uses: ["server", "server/arguments", ...API, "settings"],
  },
  { path: "server/stdio", holds: "MCP over stdin and stdout, line by line", uses: ["server", ...GROUND] },
  {
    path: "server/views",
    holds: "what clients get that show views: the view of a run, and what travels to it beside answers",
    uses: ["server", "page", "page/runs", "page/serve", ...TOOLS, ...ANSWERS],
  },
  {
    path: "server",
    holds: "the MCP server: what it lists, its instructions and its log; it loads the rest with the first call",
    uses: [...INSIDE, ...TOOLS, ...ANSWERS, "settings"],
  },
  {
    path: "server/calls",
    holds: "carrying out calls: their arguments, their answers, errors into answers, and the audit",
    uses: ["server", "server/asking", "server/arguments", OBSERVING, ...TOOLS, ...ANSWERS],
  },
  {
    path: OBSERVING,
    holds: "figures for Prometheus, and traces for OpenTelemetry",
    uses: [...API, ...RUNS],
  },
  {
    path: "server/asking",
    holds: "questions to a person, in both eras of the protocol",
    uses: ["server", ...TOOLS, ...ANSWERS],
  },
  {
    path: "server/prompts",
    holds: "prompts, skills, and completion of arguments",
    uses: ["server/resources", ...TOOLS, ...ANSWERS],
  },
  {
    path: "server/resources",
    holds: "what clients can read beside tools",
    uses: ["server/prompts", ...TOOLS, ...ANSWERS],
  },
  {
    path: "server/arguments",
    holds: "arguments of calls: JSON Schemas, what was meant, and the words for what does not fit",
    uses: ["tools", "render", "events/check", ...GROUND],
  },
  {
    path: "page/sandbox",
    holds: "what the page shows of a sandbox, and what it may do there",
    uses: ["page", "page/serve", "render/events", "render", ...SANDBOX, ...GROUND],
  },
  {
    path: "page/runs",
    holds: "what the page shows of runs, and a person's decisions on them",
    uses: ["page", "page/serve", ...TOOLS, ...ANSWERS],
  },
  {
    path: "page/serve",
    holds: "serves the page to a browser: its files, sessions, guarded POSTs and its stream of updates",
    uses: ["page", ...GROUND],
  },
  {
    path: "page/app",
    holds: "the page itself, which runs in a browser: its stream, its state and its frame",
    uses: ["page", "page/app/host", "page/app/views"],
    isBrowser: true,
  },
  {
    path: "page/app/host",
    holds: "the page as a view within a host: one run, over messages with the host",
    uses: ["page", "page/app/views"],
    isBrowser: true,
  },
  {
    path: "page/app/views",
    holds: "the views of the page, and the parts that they are made of",
    uses: ["page", "page/app"],
    isBrowser: true,
  },
  { path: "page", holds: "the types and paths that cross the wire between a server and the page", uses: [] },
  {
    path: "tools",
    holds: "what tools have in common: their form, their context, and the registry",
    uses: [...TOOLS.filter((room) => room !== "tools"), ...ANSWERS],
  },
  {
    path: "tools/targeting",
    holds: "one file for each tool of the toolset `targeting`",
    uses: ["tools", "tools/targeting/reads", ...WRITING, ...ANSWERS],
  },
  {
    path: "tools/targeting/reads",
    holds: "what reads of targetings and options answer: lists, pages, searches, comparisons, saved files",
    uses: ["tools", "tools/targeting", "tools/runs", ...WRITING, ...ANSWERS],
  },
  {
    path: "tools/events",
    holds: "one file for each tool of the toolset `events`",
    uses: ["tools", "tools/runs", ...WRITING, ...ANSWERS],
  },
  {
    path: "tools/plans",
    holds: "the tools that plan a desired state or a way back, and apply it",
    uses: ["tools", ...WRITING, "tools/runs", ...ANSWERS],
  },
  {
    path: "tools/runs",
    holds: "the tools that look at, resume and cancel runs",
    uses: ["tools", ...WRITING, "tools/events", "tools/plans", ...ANSWERS],
  },
  {
    path: "tools/writing",
    holds: "the flow of a write: plan, ask a person, start, wait, report",
    uses: ["tools", "tools/runs", "tools/writing/confirmation", ...ANSWERS],
  },
  {
    path: "tools/writing/confirmation",
    holds: "a person's yes: which channel asks for it, its question, its token and what the token starts",
    uses: ["tools", "tools/runs", "tools/writing", ...ANSWERS],
  },
  {
    path: "render/changes",
    holds: "the sentences about runs: results, what changed, what a person is asked, what to do next",
    uses: [...RENDER, ...KINDS],
  },
  {
    path: "render/failures",
    holds: "a message and a remedy for each reason, and failures as groups",
    uses: ["render", "render/events", ...KINDS],
  },
  { path: "render/events", holds: "the sentences about events and suites", uses: ["render", ...KINDS] },
  {
    path: "render/plans",
    holds: "the sentences about desired states and plans",
    uses: ["render", "render/changes", "render/failures", ...KINDS],
  },
  {
    path: "render",
    holds: "what all answers share: budgets, fencing of foreign text, pages, and the sentences about reads",
    uses: KINDS,
  },
  {
    path: "approvals",
    holds: "what a person is asked for beside changes: that a run goes on, or that tests go to a live endpoint",
    uses: [...CHANGES, ...RUNS],
  },
  {
    path: "saves",
    holds: "runs that save what lists read: rows or a desired state, with the base of a whole targeting",
    uses: ["changes", ...PLANS, ...READING],
  },
  {
    path: "changes",
    holds: "changes of targetings and options: the runs that make them",
    uses: [...CHANGES, ...READING],
  },
  {
    path: "changes/send",
    holds: "drives a planned change: one request after another; waits, resends, and halves what is too large (413)",
    uses: [...SETTLING, "changes/pack", ...PARTS, ...READING],
  },
  {
    path: "changes/settle",
    holds: "what an answer proves for each item, and what follows: items are resent, split or taken back",
    uses: ["changes/settle/lost-answers", ...PLANNING, ...PARTS, ...READING],
  },
  {
    path: "changes/settle/lost-answers",
    holds: "what a lost answer, or a resent request, proves: created by us, there before, or unknown",
    uses: ["changes/settle", ...PARTS, ...READING],
  },
  {
    path: "changes/plan",
    holds: "checks and orders the items of a call before any request; deletes are planned here",
    uses: [...PLANNING, ...PARTS, ...READING],
  },
  {
    path: "changes/plan/creating",
    holds: "plans new options and targetings, from items or from rows of a file",
    uses: [...PLANNING, "changes/pack", ...PARTS, ...READING],
  },
  {
    path: "changes/plan/contexts",
    holds: "plans changes of Context IDs, in parts that respect the limits of a request",
    uses: [...PLANNING, ...PARTS, ...READING],
  },
  {
    path: "changes/plan/names",
    holds: "which targeting or option a name means, whether a name is free, and renames",
    uses: [...PLANNING, ...PARTS, ...READING],
  },
  {
    path: "changes/plan/desired",
    holds: "plans the changes of a desired state: what frees names, places and Context IDs comes before what needs it",
    uses: [...PLANNING, "changes/pack", ...PARTS, ...READING],
  },
  {
    path: "changes/plan/dry-run",
    holds: "what a dry run foresees of each step, from reads alone",
    uses: [...PLANNING, ...PARTS, ...READING],
  },
  {
    path: "changes/pack",
    holds: "the limits of a request, and the fewest requests that respect all of them",
    uses: ["changes/rows", ...RUNS],
  },
  {
    path: "changes/state",
    holds: "how each step and each object of a change stands: the sum of its journal",
    uses: ["changes/rows", ...API, ...RUNS],
  },
  {
    path: "changes/rows",
    holds: "steps, blocks of plain rows, and what rows of files mean",
    uses: ["files", ...RUNS],
  },
  {
    path: "plans",
    holds: "desired states: reading a whole targeting, and planning a file onto it",
    uses: ["plans/undo", "plans/diff", "plans/base", ...PLAN_FILES, ...READING],
  },
  {
    path: "plans/undo",
    holds: "the way back from what a run did: what goes back, what does not and why, as plain data",
    uses: ["plans/diff", "plans/base", ...RUNS],
  },
  {
    path: "plans/diff",
    holds: "what applying a file would do: three-way, as plain data, without reading or sending",
    uses: ["plans/base", ...PLAN_FILES, ...GROUND],
  },
  {
    path: "plans/base",
    holds: "what a targeting holds, and the base that remembers it beside an exported file",
    uses: ["files", ...RUNS],
  },
  {
    path: "plans/file",
    holds: "the file of a desired state: strict reading with places, and writing",
    uses: ["plans/base", "plans/file/forms", "files", ...RUNS],
  },
  {
    path: "plans/file/forms",
    holds: "the four forms of that file: YAML, JSON, NDJSON and CSV",
    uses: ["plans/file", "files", ...GROUND],
  },
  {
    path: "events/suites",
    holds: "test cases generated from the rules, in four formats, and running them",
    uses: ["events/check", "events/run", ...RUNS, ...API],
  },
  { path: "events/watch", holds: "expectations and coverage of events that arrived", uses: ["events/check", ...API] },
  {
    path: "events/run",
    holds: "runs that send events: their source, their journal and their state",
    uses: ["events/run/send", "events/check", "files", ...API, ...RUNS],
  },
  {
    path: "events/run/send",
    holds: "sends events side by side, in order for each key, and resends those that were not taken",
    uses: ["events/run", "events/check", ...API, ...RUNS],
  },
  {
    path: "events/check",
    holds: "what the service will make of an event, by the documents",
    uses: ["files", ...GROUND],
  },
  {
    path: "reading",
    holds: "reads of many pages: one pager, finding, comparing, contents",
    uses: ["files", "runs/backend", ...API],
  },
  {
    path: "files",
    holds: "rows in and out: CSV, NDJSON, JSON, encodings, allowed folders; knows no API",
    uses: [...RUNS],
  },
  {
    path: "api",
    holds: "one call is one HTTP request; its answer is a value or a typed error",
    uses: GROUND,
  },
  {
    path: "api/retry",
    holds: "the retry of reads, and how many run at a time",
    uses: ["api", ...GROUND],
  },
  {
    path: "runs/postgres",
    holds: "the same in PostgreSQL, for processes on several machines",
    uses: ["runs/postgres/database", ...RUN_FILES, ...RUNS],
  },
  {
    path: "runs/postgres/database",
    holds: "the connections to PostgreSQL, its tables, and what is looked at before it is used",
    uses: ["runs/postgres", ...RUNS],
  },
  {
    path: "runs/file",
    holds: "runs, journals, the list of runs and names, kept in files",
    uses: ["runs/file/locks", "runs/file/seen", ...RUNS],
  },
  {
    path: "runs/file/seen",
    holds: "what was seen of the service, kept in files: names of targetings, Context IDs of options",
    uses: RUNS,
  },
  {
    path: "runs/file/locks",
    holds: "leases in files, and the write lock of a project, which is one",
    uses: ["runs/file", ...RUNS],
  },
  {
    path: "runs",
    holds: "what survives: work that is journaled, leased, listed and reported; knows no kind of it",
    uses: RUNS,
  },
  {
    path: "runs/processes",
    holds: "what processes that share runs do about each other's: read, stop, wait for, and attach to them",
    uses: RUNS,
  },
  {
    path: "runs/backend",
    holds: "the interfaces of a place where runs are kept",
    uses: RUNS,
  },
  {
    path: "sandbox",
    holds: "the emulated service",
    uses: ["sandbox/http", ...MANAGEMENT, "sandbox/events", ...GROUND],
  },
  {
    path: "sandbox/http",
    holds: "its routes, keys, faults and control plane",
    uses: ["sandbox", ...MANAGEMENT, "sandbox/events", ...GROUND],
  },
  {
    path: "sandbox/management",
    holds: "its management API: a request is validated, waits for the write lock, and is answered",
    uses: ["sandbox", "sandbox/http", "sandbox/management/rules", "sandbox/management/stored", ...GROUND],
  },
  {
    path: "sandbox/management/rules",
    holds: "what each operation of it checks and changes",
    uses: ["sandbox/management", "sandbox/management/stored", ...GROUND],
  },
  {
    path: "sandbox/management/stored",
    holds: "its targetings and options as they are stored, with their indexes",
    uses: [...GROUND],
  },
  {
    path: "sandbox/events",
    holds: "its events, their log and their verdicts",
    uses: ["sandbox", "sandbox/http", ...GROUND],
  },
  {
    path: "settings",
    holds: "one registry of settings: flags, variables, docs and manifests are made from it",
    uses: ["platform"],
  },
  { path: "spec", holds: "what the API's documents say, as data; what they leave open is marked `assumed`", uses: [] },
  { path: "platform", holds: "clock, content in pieces, near words, and what differs between machines", uses: [] },
];
