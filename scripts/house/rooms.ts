/** A folder of `src/`: what it holds, and which other rooms its files may import from. */
export interface Room {
  /** The path below `src/`. */
  readonly path: string;
  /** What is found there, as the table in docs/architecture.md says it. */
  readonly holds: string;
  /** The rooms that its files may import from besides their own. */
  readonly uses: readonly string[];
}

const GROUND = ["spec", "platform"];
const API = ["api", ...GROUND];
const RUNS = ["runs", ...GROUND];
const READING = ["reading", "files", ...API, ...RUNS];
const PARTS = ["changes/state", "changes/rows"];
const CHANGES = ["changes", "changes/send", "changes/settle", "changes/pack", "changes/plan", ...PARTS];
const EVENTS = ["events/suites", "events/watch", "events/run", "events/check"];
const PLANS = ["plans", "plans/diff", "plans/base", "plans/file"];
const KINDS = [...CHANGES, ...PLANS, ...EVENTS, ...READING];
const RENDER = ["render/changes", "render/failures", "render/events", "render/plans", "render"];
const ANSWERS = [...RENDER, ...KINDS];
const TOOLS = ["tools", "tools/targeting", "tools/runs", "tools/events", "tools/writing"];
const INSIDE = ["server/asking", "server/prompts", "server/resources", "server/arguments"];
const SERVER = ["server/http", "server/stdio", "server", ...INSIDE];
const MANAGEMENT = ["sandbox/management", "sandbox/management/rules", "sandbox/management/stored"];
const SANDBOX = ["sandbox", "sandbox/http", ...MANAGEMENT, "sandbox/events"];

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
      "commands/plans",
      "commands/setup",
      "commands/doctor",
      ...SERVER,
      ...TOOLS,
      ...ANSWERS,
      "runs/file",
      ...SANDBOX,
      "settings",
    ],
  },
  {
    path: "commands/plans",
    holds: "the commands of the desired state: export, plan, drift",
    uses: ["commands", "commands/setup", ...SERVER, ...TOOLS, ...ANSWERS, "runs/file", "settings"],
  },
  {
    path: "commands/doctor",
    holds: "what is wrong with the settings, keys, scopes, folders and routes, and what to do",
    uses: ["commands", ...SERVER, ...TOOLS, ...ANSWERS, "runs/file", "settings"],
  },
  {
    path: "commands/setup",
    holds: "this server's entry in the configurations of hosts",
    uses: ["commands", "render", ...GROUND, "settings"],
  },
  {
    path: "server/http",
    holds: "Streamable HTTP: guards, limits, sessions, tokens and OAuth",
    uses: ["server", "server/arguments", ...API, "settings"],
  },
  { path: "server/stdio", holds: "MCP over stdin and stdout, line by line", uses: ["server", ...GROUND] },
  {
    path: "server",
    holds: "the MCP server: listing, carrying out calls, errors into answers, log and audit",
    uses: [...INSIDE, ...TOOLS, ...ANSWERS, "settings"],
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
    path: "tools",
    holds: "what tools have in common: their form, their context, and the registry",
    uses: ["tools/targeting", "tools/runs", "tools/events", "tools/writing", ...ANSWERS],
  },
  {
    path: "tools/targeting",
    holds: "one file for each tool of the toolset `targeting`",
    uses: ["tools", "tools/writing", ...ANSWERS],
  },
  {
    path: "tools/events",
    holds: "one file for each tool of the toolset `events`",
    uses: ["tools", "tools/writing", ...ANSWERS],
  },
  {
    path: "tools/runs",
    holds: "the tools that look at, resume and cancel runs",
    uses: ["tools", "tools/writing", "tools/events", ...ANSWERS],
  },
  {
    path: "tools/writing",
    holds: "the flow of a write: plan, ask a person, start, wait, report",
    uses: ["tools", "tools/runs", ...ANSWERS],
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
  { path: "render/plans", holds: "the sentences about desired states and plans", uses: ["render", ...KINDS] },
  {
    path: "render",
    holds: "what all answers share: budgets, fencing of foreign text, pages, and the sentences about reads",
    uses: KINDS,
  },
  {
    path: "changes",
    holds: "changes of targetings and options: the runs that make them",
    uses: [...CHANGES, ...READING],
  },
  {
    path: "changes/send",
    holds: "drives a planned change: one request after another, waits and resends",
    uses: ["changes/settle", "changes/pack", ...PARTS, ...READING],
  },
  {
    path: "changes/settle",
    holds: "what an answer, or a lost one, proves for each item",
    uses: ["changes/plan", ...PARTS, ...READING],
  },
  {
    path: "changes/plan",
    holds: "checks and orders the items of a call before any request",
    uses: [...PARTS, ...READING],
  },
  { path: "changes/pack", holds: "the fewest requests that respect every limit", uses: ["changes/rows", ...RUNS] },
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
    uses: ["plans/diff", "plans/base", "plans/file", ...READING],
  },
  {
    path: "plans/diff",
    holds: "what applying a file would do: three-way, as plain data, without reading or sending",
    uses: ["plans/base", "plans/file", ...GROUND],
  },
  {
    path: "plans/base",
    holds: "what a targeting holds, and the base that remembers it beside an exported file",
    uses: ["files", ...RUNS],
  },
  {
    path: "plans/file",
    holds: "the file of a desired state in its four forms: strict reading with places, and writing",
    uses: ["plans/base", "files", ...RUNS],
  },
  {
    path: "events/suites",
    holds: "test cases generated from the rules, in four formats, and running them",
    uses: ["events/check", "events/run", ...RUNS, ...API],
  },
  { path: "events/watch", holds: "expectations and coverage of events that arrived", uses: ["events/check", ...API] },
  {
    path: "events/run",
    holds: "sending events: the runs that do it",
    uses: ["events/check", "files", ...API, ...RUNS],
  },
  {
    path: "events/check",
    holds: "what the service will make of an event, by the documents",
    uses: ["files", ...GROUND],
  },
  { path: "reading", holds: "reads of many pages: one pager, finding, comparing, contents", uses: ["files", ...API] },
  {
    path: "files",
    holds: "rows in and out: CSV, NDJSON, JSON, encodings, allowed folders; knows no API",
    uses: [...RUNS],
  },
  { path: "api", holds: "one call is one HTTP request; its answer is a value or a typed error", uses: [...GROUND] },
  { path: "runs/file", holds: "runs, journals, leases and names on the disk", uses: [...RUNS] },
  {
    path: "runs",
    holds: "what survives: work that is journaled, leased and reported; knows no kind of it",
    uses: [...GROUND],
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
