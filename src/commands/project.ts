import { escapeInvisible, UNSEEN } from "../answers/fence.ts";
import type { Tone, TonedLine } from "../answers/plan-words.ts";
import type { ManagementApi } from "../api/management.ts";
import { failureOf } from "../mcp/failures.ts";
import type { ServiceTargeting } from "../plans/base.ts";
import { readTargeting } from "../plans/read-targeting.ts";
import { type ServerProcess, withServices } from "../runtime/connect.ts";
import { inputOf, settingsFrom } from "../runtime/settings-input.ts";
import { allowClosedOutput, askInTerminal, QuestionInterrupted } from "../runtime/terminal.ts";
import type { CommandLine } from "../settings/command-line.ts";
import { SETTINGS } from "../settings/registry.ts";
import { type Settings, settingText } from "../settings/settings.ts";
import { SettingsError } from "../settings/value-types.ts";
import type { ToolContext } from "../tools/define-tool.ts";
import { localCaller } from "../web/browser.ts";

export interface PlanContext extends ToolContext {
  readonly management: ManagementApi;
}

/** The longest delay of a timer, in ms. Commands in a terminal may wait as long as they need. */
const ANY_TIME_MS = 2 ** 31 - 1;

/** Runs `work`. Returns its exit code, or 1 if it throws. Throws a SettingsError if no management API is set. */
export async function withProject(
  line: CommandLine,
  command: string,
  work: (context: PlanContext) => Promise<number>,
): Promise<number> {
  allowClosedOutput();
  const input = inputOf(line);
  const settings = settingsFrom(input);
  checkService(settings, settingText(SETTINGS.mode, input)?.text);
  return withServices(settings, async (connected) => {
    try {
      return await work(contextOf(connected, settings));
    } catch (thrown) {
      return reportFailure(thrown, command, connected);
    }
  });
}

function contextOf({ services }: ServerProcess, settings: Settings): PlanContext {
  const { management, clock } = services;
  if (management === undefined) throw new Error("no management API is connected");
  const { signal } = new AbortController();
  const call = { caller: localCaller(settings), arrivedAt: clock.now(), signal, canAsk: () => false };
  return { ...services, ...call, management, waitMs: ANY_TIME_MS };
}

type Reporting = Pick<ServerProcess, "log" | "redactor">;

export function reportFailure(thrown: unknown, command: string, { log, redactor }: Reporting): number {
  const { message, remedy } = failureOf(thrown, command, log);
  printNote(redactor.text(forCommand(remedy === undefined ? message : `${message}\n${remedy}`)));
  return 1;
}

/** The API address of commands that only show stored runs. No request is sent to it. */
const NOWHERE = {
  kind: "sandbox",
  url: "http://127.0.0.1:9",
  port: 0,
  seed: "none",
  managementKey: "",
  eventKey: "",
} as const;

/** Runs a command that only shows stored runs, so that no API needs to be configured. */
export async function withRuns<Result>(
  line: CommandLine,
  work: (context: PlanContext, reporting: Reporting) => Promise<Result>,
): Promise<Result> {
  const input = { ...inputOf(line), overStdio: true } as const;
  const isLive = settingText(SETTINGS.mode, input)?.text === "live";
  const settings = settingsFrom(isLive ? { ...input, flags: new Map([...input.flags, ["mode", "auto"]]) } : input);
  return withServices({ ...settings, environment: NOWHERE }, (connected) => {
    const environment = isLive ? "live" : settings.environment.kind;
    return work({ ...contextOf(connected, settings), environment }, connected);
  });
}

/** Throws a SettingsError if no service is configured. A sandbox counts only if its mode and address are set. */
function checkService({ environment }: Settings, mode: string | undefined): void {
  if (environment.kind === "live" && environment.management !== undefined) return;
  if (environment.kind === "sandbox" && mode === "sandbox") {
    if (environment.url !== undefined) return;
    throw new SettingsError(
      "with TARGETING_MCP_MODE=sandbox this command needs TARGETING_MCP_SANDBOX_URL: it does not start a sandbox",
      "TARGETING_MCP_SANDBOX_URL",
    );
  }
  throw new SettingsError(
    "set TARGETING_API_URL and TARGETING_API_KEY, or TARGETING_MCP_MODE=sandbox with TARGETING_MCP_SANDBOX_URL: " +
      "this command uses a sandbox only if these settings name it",
    "TARGETING_API_URL",
  );
}

export function onlyWord({ words }: CommandLine, what: string): string {
  const [word] = words;
  if (word === undefined) throw new SettingsError(`${what} is missing (see --help)`);
  return word;
}

const OPTIONS_PER_LINE = 10_000;

/** Reads a whole targeting and shows the progress. `fresh`: reads all Context IDs from the service. */
export async function readShowing(
  { management, memory, contents, signal }: PlanContext,
  targetingId: string,
  fresh: boolean,
): Promise<ServiceTargeting> {
  const isTerminal = process.stderr.isTTY;
  const there = await readTargeting(management, targetingId, {
    signal,
    store: contents,
    fresh,
    onProgress: (read, of) => {
      if (isTerminal && (read % 100 === 0 || read === of)) process.stderr.write(`\r${read} of ${of} options read`);
      else if (!isTerminal && read % OPTIONS_PER_LINE === 0) printNote(`${read} of ${of} options read`);
    },
  });
  if (isTerminal) process.stderr.write("\r\u001b[K");
  await memory.remember([there.targeting]);
  return there;
}

/** Prints the content of a file. In a terminal, escapes invisible characters. A file or pipe gets it as it is. */
export function printContent(content: string): void {
  process.stdout.write(process.stdout.isTTY ? escapeInTexts(content) : content);
}

/** Prints a text for people. Escapes control characters, which could change what the terminal shows. */
export function printNote(text: string): void {
  process.stderr.write(`${text.split("\n").map(escapeInvisible).join("\n")}\n`);
}

/** Words in texts for agents (arguments and tools), and the words that people need instead (flags and commands). */
const FOR_COMMANDS: readonly (readonly [agent: string, person: string])[] = [
  ["byName: true", "--by-name"],
  ["with the argument base", "with --base"],
  ["give targetingId or targetingName", "use --targeting"],
  ["list_options with saveTo writes its base", "targeting-mcp export TARGETING --to FILE writes its base"],
  [" Without files, leave prune out and delete the unwanted options with delete_options.", ""],
  ["list_options with saveTo and a new file", "targeting-mcp export TARGETING --to FILE --base-only"],
  ["get_run without arguments lists", "targeting-mcp runs lists"],
  ["get_run without runId lists", "targeting-mcp runs lists"],
  ["get_run lists", "targeting-mcp runs lists"],
  // The commands have printed the plan before. It may come from a file, so that no run holds it.
  ["plan it again; get_run shows the plan.", "plan it again."],
  ["get_run shows the plan.", "The output above shows the plan."],
  [
    "Wait for it with get_run, or stop it with cancel_run, then undo it.",
    "Wait until targeting-mcp runs shows that it has ended, then undo it.",
  ],
  ["Wait for it with get_run.", "Wait until targeting-mcp runs shows that it has ended."],
  [
    "To restore an earlier state, give it to plan_targeting as file or desired.",
    "To restore an earlier state, apply a file that holds it: targeting-mcp apply FILE.",
  ],
  [
    "Give the runId from an answer of plan_targeting, undo_run or a call with dryRun.",
    "Give the ID of a run that targeting-mcp runs shows as planned.",
  ],
];

const COMMAND_OF_TOOL: Readonly<Record<string, string>> = {
  get_run: "runs",
  undo_run: "undo",
  resume_run: "apply",
  apply_plan: "apply",
};
const CALL_FOR_RUN = /\b([a-z]+_[a-z]+) \{"runId":"(\w+)"\}/g;

/** Returns a text for agents in the words that people need: with flags and commands. */
export function forCommand(text: string): string {
  const named = FOR_COMMANDS.reduce((rewritten, [agent, person]) => rewritten.replaceAll(agent, person), text);
  return named.replaceAll(CALL_FOR_RUN, (call: string, tool: string, runId: string) => {
    const command = COMMAND_OF_TOOL[tool];
    return command === undefined ? call : `targeting-mcp ${command} ${runId}`;
  });
}

/** Asks in the terminal. Returns false after printing `undone` (declined) or `without` (no terminal). */
export async function confirmInTerminal(question: string, undone: string, without: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    printNote(without);
    return false;
  }
  try {
    if (await askInTerminal(question)) return true;
  } catch (thrown) {
    if (!(thrown instanceof QuestionInterrupted)) throw thrown;
  }
  printNote(undone);
  return false;
}

const COLORS: Readonly<Record<Tone, string | undefined>> = {
  comes: "32",
  changes: "33",
  goes: "31",
  stops: "31",
  plain: undefined,
};

/** Prints lines, in colour if standard output is a terminal and NO_COLOR is not set. */
export function printLines(lines: readonly TonedLine[]): void {
  const { NO_COLOR = "" } = process.env;
  const isColored = process.stdout.isTTY && NO_COLOR === "";
  const texts = lines.map(({ text: said, tone }) => {
    const text = forCommand(said);
    const color = COLORS[tone];
    return isColored && color !== undefined ? `\u001b[${color}m${text}\u001b[0m` : text;
  });
  process.stdout.write(`${texts.join("\n")}\n`);
}

/** Escapes invisible characters except line breaks, as JSON and YAML escape them in texts. For files on a screen. */
function escapeInTexts(content: string): string {
  const unit = (at: number): string => `\\u${at.toString(16).toUpperCase().padStart(4, "0")}`;
  const units = (character: string): string =>
    Array.from({ length: character.length }, (_, at) => unit(character.charCodeAt(at))).join("");
  return content.replace(UNSEEN, (character) => (character === "\n" ? character : units(character)));
}
