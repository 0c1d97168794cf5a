#!/usr/bin/env node
import { endWhenWritten, print } from "./commands/print.ts";
import {
  type CommandLine,
  type CommandOption,
  oneTooMany,
  parseCommandLine,
  wordsAsFolders,
} from "./settings/command-line.ts";
import { SettingsError } from "./settings/error.ts";
import { settingsHelp } from "./settings/help.ts";

/** A command: what it is for, its own options, and its code, which is loaded only when it is called. */
interface Command {
  readonly usage: string;
  readonly meaning: string;
  readonly options: readonly CommandOption[];
  /** How many words may follow; none where absent. */
  readonly mostWords?: number;
  /** Runs until it is over; gives the exit code. */
  readonly run: (line: CommandLine) => Promise<number>;
}

const COMMANDS: Readonly<Record<string, Command>> = {
  stdio: {
    usage: "[stdio [FOLDER...]]",
    meaning: "serves MCP on standard input and output; the folders count as --allowed-dirs",
    options: [],
    mostWords: Number.POSITIVE_INFINITY,
    run: async (line) => (await import("./commands/stdio.ts")).runStdio(wordsAsFolders(line)),
  },
  http: {
    usage: "http [--host 127.0.0.1] [--port 3000]",
    meaning: "serves MCP over Streamable HTTP at /mcp, and /healthz",
    options: [{ flag: "host" }, { flag: "port" }],
    run: async (line) => (await import("./commands/http.ts")).runHttp(line),
  },
  sandbox: {
    usage: "sandbox [--host 127.0.0.1] [--port 4010] [--data FILE] [--forward URL]",
    meaning: "serves the emulated event and management APIs over HTTP",
    options: [{ flag: "host" }, { flag: "port" }, { flag: "data" }, { flag: "forward" }],
    run: async (line) => (await import("./commands/sandbox-line.ts")).runSandboxLine(line),
  },
  doctor: {
    usage: "doctor [--json]",
    meaning: "checks settings, keys, scopes, folders and routes without changing anything, and says what to fix",
    options: [{ flag: "json", toggle: true }],
    run: async (line) => (await import("./commands/doctor.ts")).runDoctor(line),
  },
  setup: {
    usage: "setup HOST [--yes]",
    meaning:
      "writes this server into the configuration of claude-desktop, claude-code, vscode, cursor, codex or gemini, " +
      "with the settings that are given; shows the change and asks first",
    options: [{ flag: "yes", toggle: true }],
    mostWords: 1,
    run: async (line) => (await import("./commands/setup.ts")).runSetup(line),
  },
};

const DEFAULT_COMMAND = "stdio";

function help(): string {
  const commands = Object.values(COMMANDS).map(({ usage, meaning }) => `  targeting-mcp ${usage}\n      ${meaning}`);
  return ["Usage:", ...commands, "", "Settings, as flags or environment variables:", settingsHelp(), ""].join("\n");
}

async function main(argv: readonly string[]): Promise<number> {
  if (argv.includes("--help") || argv.includes("-h")) return print(help());
  if (argv.includes("--version")) return print(`${(await import("./commands/version.ts")).VERSION}\n`);
  const [first, ...rest] = argv;
  const named = first !== undefined && !first.startsWith("-");
  const command = Object.hasOwn(COMMANDS, named ? first : DEFAULT_COMMAND)
    ? COMMANDS[named ? first : DEFAULT_COMMAND]
    : undefined;
  if (command === undefined) {
    throw new SettingsError(`there is no command ${first}; the commands are ${Object.keys(COMMANDS).join(", ")}`);
  }
  const line = parseCommandLine(named ? rest : argv, command.options);
  const extra = line.words[command.mostWords ?? 0];
  if (extra !== undefined) throw oneTooMany(extra);
  return command.run(line);
}

try {
  process.exitCode = await main(process.argv.slice(2));
  endWhenWritten();
} catch (thrown) {
  if (!(thrown instanceof SettingsError)) throw thrown;
  process.stderr.write(`targeting-mcp: ${thrown.message}\n`);
  process.exitCode = 2;
}
