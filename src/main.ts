#!/usr/bin/env node
import type { HelpedCommand } from "./commands/help.ts";
import { type CommandLine, didYouMean, oneTooMany, parseCommandLine } from "./settings/command-line.ts";
import { SettingsError } from "./settings/value-types.ts";

/** A command. Its code is imported when it is called, so that the program starts fast. */
interface Command extends HelpedCommand {
  readonly mostWords?: number;
  readonly wrongUsage?: number;
  readonly run: (line: CommandLine) => Promise<number>;
}

const TARGETING = { flag: "targeting", meaning: "ID or name of the targeting, if the file has none" };
const PRUNE = {
  flag: "prune",
  toggle: true,
  meaning: "deletes options that are in the base but no longer in the file",
} as const;
const BY_NAME = {
  flag: "by-name",
  toggle: true,
  meaning: "matches options by name only, for the file of another targeting",
} as const;
const DELIMITER = { flag: "delimiter", meaning: "separator of .csv cells: , ; or tab" };
const JSON_FLAG = { flag: "json", toggle: true, meaning: "prints JSON" } as const;
const HOST = { flag: "host", meaning: "address to listen on" };
const PORT = { flag: "port", meaning: "port to listen on; 0: a free one" };
const FRESH = {
  flag: "fresh",
  toggle: true,
  meaning: "reads everything again",
} as const;

const SHEET = [
  { flag: "sheet", meaning: "sheet of a workbook" },
  { flag: "columns", meaning: 'heading of each field in the file: {"name":"Title"}' },
  { flag: "encoding", meaning: "encoding of a text file" },
];
const SHEET_USAGE = "[--sheet S] [--columns JSON] [--encoding E]";

const NO_MIGRATE = { flag: "no-migrate", toggle: true, meaning: "does not update the tables of the store" } as const;

/** Commands that CI uses. Exit code 2 means that something would change, so wrong usage exits with 1. */
const ONE_WORD_IN_CI = { mostWords: 1, wrongUsage: 1 };

const COMMANDS: Readonly<Record<string, Command>> = {
  stdio: {
    usage: "[stdio [FOLDER...]]",
    meaning: "serves MCP on stdin and stdout; folders count as --allowed-dirs",
    options: [],
    mostWords: Number.POSITIVE_INFINITY,
    run: async (line) => (await import("./commands/stdio.ts")).runStdio(line),
  },
  http: {
    usage: "http [--host 127.0.0.1] [--port 3000] [--no-migrate]",
    meaning: "serves MCP over Streamable HTTP at /mcp, with health checks at /healthz and /readyz",
    options: [
      { flag: "host", meaning: "address to listen on; all but loopback need authentication" },
      PORT,
      NO_MIGRATE,
    ],
    run: async (line) => (await import("./commands/http.ts")).runHttp(line),
  },
  worker: {
    usage: "worker [--host 127.0.0.1] [--port N] [--no-migrate]",
    meaning: "executes runs of the shared store, without serving calls",
    options: [
      { flag: "host", meaning: "address for health checks" },
      { flag: "port", meaning: "port for /healthz, /readyz and /metrics; 0: a free one" },
      NO_MIGRATE,
    ],
    wrongUsage: 1,
    run: async (line) => (await import("./commands/http.ts")).runWorker(line),
  },
  migrate: {
    usage: "migrate",
    meaning: "updates the tables of the shared store",
    options: [],
    wrongUsage: 1,
    run: async (line) => (await import("./runtime/store.ts")).runMigrate(line),
  },
  sandbox: {
    usage: "sandbox [--host 127.0.0.1] [--port 4010] [--data FILE] [--forward URL] [--seed none|sample|FILE] [--quiet]",
    meaning: "serves the emulated APIs over HTTP, and a page for people at /",
    options: [
      HOST,
      PORT,
      { flag: "data", meaning: "file that stores the sandbox's state" },
      { flag: "forward", meaning: "event API to which events are forwarded" },
      { flag: "seed", meaning: "initial content: none, sample (a small shop) or a file" },
      { flag: "quiet", toggle: true, meaning: "does not print each event" },
    ],
    run: async (line) => (await import("./commands/sandbox-line.ts")).runSandboxLine(line),
  },
  page: {
    usage: "page [--port 0]",
    meaning: "opens the page of this machine's runs, where waiting runs can be approved",
    options: [{ flag: "port", meaning: "port to listen on, on this machine only; 0: a free one" }],
    run: async (line) => (await import("./commands/page.ts")).runPage(line),
  },
  doctor: {
    usage: "doctor [--json]",
    meaning: "checks settings, keys, scopes, folders and routes, and says what to fix",
    options: [JSON_FLAG],
    run: async (line) => (await import("./commands/doctor.ts")).runDoctor(line),
  },
  setup: {
    usage: "setup HOST [--yes] [--remove]",
    meaning:
      "adds this server to the configuration of claude-desktop, claude-code, vscode, cursor, codex or gemini; " +
      "shows the change and asks first",
    options: [
      { flag: "yes", toggle: true, meaning: "writes without asking, and without keys" },
      { flag: "remove", toggle: true, meaning: "removes this server's entry" },
    ],
    mostWords: 1,
    run: async (line) => (await import("./setup/setup.ts")).runSetup(line),
  },
  export: {
    usage: "export TARGETING [--to FILE] [--base-only] [--force] [--fresh]",
    meaning:
      "writes a targeting as a desired state: YAML to standard output, or a .yaml, .json, .xlsx, .csv, .tsv or .ndjson " +
      "file with its base",
    options: [
      { flag: "to", meaning: "the file to write" },
      DELIMITER,
      { flag: "base-only", toggle: true, meaning: "updates only the base of the file" },
      { flag: "force", toggle: true, meaning: "replaces files without asking" },
      FRESH,
    ],
    ...ONE_WORD_IN_CI,
    run: async (line) => (await import("./commands/export.ts")).runExport(line),
  },
  plan: {
    usage: `plan FILE [--targeting T] [--prune] [--by-name] [--fresh] [--base FILE] [--json|--markdown] [--out PLAN] ${SHEET_USAGE}`,
    meaning: "shows what applying a desired state would change; exit code 0: nothing, 2: something, 1: an error",
    options: [
      TARGETING,
      PRUNE,
      BY_NAME,
      FRESH,
      { flag: "base", meaning: "base file; default: the one next to the file" },
      JSON_FLAG,
      { flag: "markdown", toggle: true, meaning: "prints Markdown" },
      { flag: "out", meaning: "file to which the plan is saved" },
      ...SHEET,
    ],
    ...ONE_WORD_IN_CI,
    run: async (line) => (await import("./commands/plan.ts")).runPlan(line),
  },
  apply: {
    usage: `apply PLAN|FILE [--targeting T] [--prune] [--by-name] [--yes] [--write-ids] ${SHEET_USAGE}`,
    meaning:
      "applies a planned run, a file of plan --out, or a desired state; shows it and asks; exit code 0: all done, 1: not",
    options: [
      TARGETING,
      PRUNE,
      BY_NAME,
      { flag: "yes", toggle: true, meaning: "applies without asking" },
      { flag: "write-ids", toggle: true, meaning: "writes the new _ids into the file" },
      ...SHEET,
    ],
    ...ONE_WORD_IN_CI,
    run: async (line) => (await import("./commands/apply.ts")).runApply(line),
  },
  undo: {
    usage: "undo RUN [--yes]",
    meaning: "shows how a run would be undone, asks, and undoes it; exit code 0: all done, 1: not",
    options: [{ flag: "yes", toggle: true, meaning: "undoes the run without asking" }],
    ...ONE_WORD_IN_CI,
    run: async (line) => (await import("./commands/runs.ts")).runUndo(line),
  },
  drift: {
    usage: `drift FILE [--targeting T] [--fresh] ${SHEET_USAGE}`,
    meaning: "shows what differs from the file's base (without a base: from the file); same exit codes as plan",
    options: [TARGETING, FRESH, ...SHEET],
    ...ONE_WORD_IN_CI,
    run: async (line) => (await import("./commands/plan.ts")).runDrift(line),
  },
  runs: {
    usage: "runs [RUN] [--json] [--to FILE]",
    meaning: "shows the recent runs of this caller, or one of them",
    options: [JSON_FLAG, { flag: "to", meaning: "file for the run's sheet with results" }, DELIMITER],
    ...ONE_WORD_IN_CI,
    run: async (line) => (await import("./commands/runs.ts")).runRuns(line),
  },
};

const DEFAULT_COMMAND = "stdio";
const WRONG_USAGE = 2;

async function main(argv: readonly string[]): Promise<number> {
  const [first = "", ...rest] = argv;
  const isWord = first.trim() !== "" && !first.startsWith("-");
  if (first === "help" || argv.includes("--help") || argv.includes("-h")) {
    const about = commandOf(first === "help" ? rest[0] : first);
    const { commandHelp, programHelp } = await import("./commands/help.ts");
    return print(about === undefined ? programHelp(Object.values(COMMANDS)) : commandHelp(about));
  }
  if (first === "version" || argv.includes("--version") || argv.includes("-v")) {
    if (argv.includes("--json")) return print(await (await import("./commands/help.ts")).versionJson());
    return print(`${(await import("./runtime/settings-input.ts")).VERSION}\n`);
  }
  const command = commandOf(isWord ? first : DEFAULT_COMMAND);
  if (command === undefined) {
    throw new SettingsError(`there is no command ${first}; ${didYouMean(first, Object.keys(COMMANDS), "commands")}`);
  }
  const line = parseCommandLine(isWord ? rest : argv, command.options);
  const extra = line.words[command.mostWords ?? 0];
  if (extra !== undefined) throw oneTooMany(extra);
  return command.run(line);
}

function commandOf(name = ""): Command | undefined {
  return Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}

let problem = "";
try {
  process.exitCode = await main(process.argv.slice(2));
} catch (thrown) {
  if (!(thrown instanceof SettingsError)) throw thrown;
  problem = `targeting-mcp: ${thrown.message}\n`;
  process.exitCode = commandOf(process.argv[2])?.wrongUsage ?? WRONG_USAGE;
}
// Ends the process after all output is written. Open sockets and timers would otherwise keep it alive.
process.stdout.write("", () => process.stderr.write(problem, () => process.exit()));
