#!/usr/bin/env node
import { endWhenWritten, print } from "./commands/print.ts";
import {
  type CommandLine,
  commandHelp,
  type HelpedCommand,
  oneTooMany,
  parseCommandLine,
  programHelp,
  wordsAsFolders,
} from "./settings/command-line.ts";
import { SettingsError } from "./settings/error.ts";

/** A command: what it is for, its own options, and its code, which is loaded only when it is called. */
interface Command extends HelpedCommand {
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
    options: [
      { flag: "host", meaning: "the address to listen on; any but this machine's needs a check of who calls" },
      { flag: "port", meaning: "the port to listen on; 0 takes a free one" },
    ],
    run: async (line) => (await import("./commands/http.ts")).runHttp(line),
  },
  sandbox: {
    usage: "sandbox [--host 127.0.0.1] [--port 4010] [--data FILE] [--forward URL]",
    meaning: "serves the emulated event and management APIs over HTTP",
    options: [
      { flag: "host", meaning: "the address to listen on" },
      { flag: "port", meaning: "the port to listen on; 0 takes a free one" },
      { flag: "data", meaning: "the file in which the state is kept across restarts" },
      { flag: "forward", meaning: "base address of a real event API to which events are passed on" },
    ],
    run: async (line) => (await import("./commands/sandbox-line.ts")).runSandboxLine(line),
  },
  doctor: {
    usage: "doctor [--json]",
    meaning: "checks settings, keys, scopes, folders and routes without changing anything, and says what to fix",
    options: [{ flag: "json", toggle: true, meaning: "prints JSON, for programs" }],
    run: async (line) => (await import("./commands/doctor/doctor.ts")).runDoctor(line),
  },
  setup: {
    usage: "setup HOST [--yes]",
    meaning:
      "writes this server into the configuration of claude-desktop, claude-code, vscode, cursor, codex or gemini, " +
      "with the settings that are given; shows the change and asks first",
    options: [{ flag: "yes", toggle: true, meaning: "writes without asking, and without keys" }],
    mostWords: 1,
    run: async (line) => (await import("./commands/setup/setup.ts")).runSetup(line),
  },
};

const DEFAULT_COMMAND = "stdio";

async function main(argv: readonly string[]): Promise<number> {
  const [first = "", ...rest] = argv;
  const isWord = first.trim() !== "" && !first.startsWith("-");
  if (first === "help" || argv.includes("--help") || argv.includes("-h")) {
    const about = commandOf(first === "help" ? rest[0] : first);
    return print(about === undefined ? programHelp(Object.values(COMMANDS)) : commandHelp(about));
  }
  if (first === "version" || argv.includes("--version") || argv.includes("-v")) {
    return print(`${(await import("./commands/version.ts")).VERSION}\n`);
  }
  const command = commandOf(isWord ? first : DEFAULT_COMMAND);
  if (command === undefined) {
    throw new SettingsError(`there is no command ${first}; the commands are ${Object.keys(COMMANDS).join(", ")}`);
  }
  const line = parseCommandLine(isWord ? rest : argv, command.options);
  const extra = line.words[command.mostWords ?? 0];
  if (extra !== undefined) throw oneTooMany(extra);
  return command.run(line);
}

function commandOf(name: string | undefined): Command | undefined {
  return name !== undefined && Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
}

try {
  process.exitCode = await main(process.argv.slice(2));
  endWhenWritten();
} catch (thrown) {
  if (!(thrown instanceof SettingsError)) throw thrown;
  process.stderr.write(`targeting-mcp: ${thrown.message}\n`);
  process.exitCode = 2;
}
