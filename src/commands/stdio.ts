import { Console } from "node:console";
import { randomBytes } from "node:crypto";
import { delimiter, isAbsolute } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { RootGuard } from "../files/folders.ts";
import { questionSeal, showsViews } from "../mcp/elicitation.ts";
import { loadSkills } from "../mcp/prompts.ts";
import { createMcpServer } from "../mcp/server.ts";
import { allTools, callsUnderWay, hiddenTools, listedTools, toolsThatWrite } from "../mcp/server-parts.ts";
import { StdioConnection } from "../mcp/stdio.ts";

import type { Audit } from "../observe/audit.ts";
import type { Log } from "../observe/log.ts";
import { systemClock } from "../platform/clock.ts";
import type { ServerProcess, Shared } from "../runtime/connect.ts";
import { logOf, observers } from "../runtime/observers.ts";
import { availabilityOf, inputOf, settingsFrom, startsSandbox, VERSION } from "../runtime/settings-input.ts";
import { stopSignal } from "../runtime/terminal.ts";
import { type CommandLine, oneTooMany } from "../settings/command-line.ts";
import { SETTINGS } from "../settings/registry.ts";
import type { Settings, SettingsInput } from "../settings/settings.ts";
import { once } from "../tools/define-tool.ts";
import { localCaller } from "../web/browser.ts";

/** How long calls, and then connections, may take after a signal to stop, in ms. Hosts soon kill the process. */
const LAST_CALLS_MS = 1000;
const CLOSE_MS = 300;

/** Printed if standard input is a terminal. A person who starts the command there would otherwise see nothing. */
const WHAT_WAITS = [
  "targeting-mcp is waiting for an MCP client on standard input. To end it, press Ctrl-C.",
  "To add it to an AI host: targeting-mcp setup HOST (without HOST, the command lists the hosts).",
  "To check the settings: targeting-mcp doctor. To try it without keys: targeting-mcp sandbox. All commands: targeting-mcp --help",
  "",
].join("\n");

export async function runStdio(line: CommandLine): Promise<number> {
  // Standard output is only for the protocol, so the console is redirected to standard error.
  globalThis.console = new Console(process.stderr, process.stderr);
  // A host that does not read the log may close standard error. Its errors are ignored.
  process.stderr.on("error", () => undefined);
  const input = { ...inputOf(wordsAsFolders(line, process.env)), overStdio: true } as const;
  const settings = settingsFrom(input);
  if (process.stdin.isTTY === true) process.stderr.write(WHAT_WAITS);
  const asked = stopSignal();
  const stopping = new AbortController();
  const logging = logOf(settings);
  const { log, redactor } = logging;
  const { observer, problem } = await observers(false);
  const connecting = connectLazily(settings, { stopping: stopping.signal, logging, observer }, input.environment);
  // After the first response, a host may start an app that sends events to the sandbox. So the sandbox starts first.
  if (startsSandbox(settings)) await Promise.race([connecting.connected(), asked]);
  // Without this, runs would continue in the background after the client has disconnected.
  stopping.signal.addEventListener("abort", () => void connecting.now()?.stopRuns());
  const calls = callsUnderWay();
  const offer = availabilityOf(settings);
  const tools = await allTools();
  const { environment } = settings;
  const parts = {
    version: VERSION,
    tools: listedTools(tools, offer),
    hidden: hiddenTools(tools, offer),
    environment: environment.kind,
    services: connecting.services,
    // This key signs questions to the client. Only this process verifies the signatures, so a random key is enough.
    seal: questionSeal(randomBytes(32)),
    redactor,
    log,
    calls,
    caller: localCaller(settings),
    audit: (line: Parameters<Audit>[0]) => connecting.now()?.audit(line),
    ...(settings.allowedDirs.length === 0 && { rootGuard: () => rootGuardOf(settings, input) }),
    writingTools: toolsThatWrite(tools),
    skills: await loadSkills(),
    loadViews: async () => (await import("../mcp/views.ts")).loadViews(offer),
    observer,
  };
  const connection = new StdioConnection({
    input: process.stdin,
    output: process.stdout,
    maxLineBytes: settings.maxLineBytes,
    createServer: (isWithViews, era) =>
      isWithViews
        ? calls.during(async () => createMcpServer({ ...parts, views: await parts.loadViews() }, era))
        : createMcpServer(parts, era),
    async listened(message, signal) {
      const { listened } = await import("../mcp/run-updates.ts");
      const views = showsViews(message) ? await parts.loadViews() : undefined;
      return listened(message, { parts: { ...parts, views }, signal });
    },
    watcher: once(async () => (await import("../mcp/run-updates.ts")).runWatcher(systemClock)),
    calls,
    log,
    onInputEnd: () => stopping.abort(),
  });
  log.info("serving", { environment: environment.kind, tools: parts.tools.length, version: VERSION });
  await warn(log, settings, input, problem);
  const signal = asked.then(async () => {
    stopping.abort();
    await calls.idle(LAST_CALLS_MS);
  });
  await Promise.race([connection.ended, signal]);
  await Promise.race([Promise.all([connection.close(), connecting.close()]), delay(CLOSE_MS)]);
  return 0;
}

/** Returns paths that a client's roots must not open: runs, the access file, and hosts' files with keys. */
async function rootGuardOf({ stateDir }: Settings, input: SettingsInput): Promise<RootGuard> {
  const { HOSTS } = await import("../setup/hosts.ts");
  const files = Object.values(HOSTS).flatMap((host) => [host.file(input), host.instead?.(input)]);
  const access = input.environment.TARGETING_MCP_ACCESS_FILE;
  return {
    home: input.home,
    folders: [stateDir],
    files: [...files, access].flatMap((file) => (file ? [file] : [])),
  };
}

async function warn(log: Log, settings: Settings, input: SettingsInput, problem: unknown): Promise<void> {
  const { logStartWarnings } = await import("./doctor-machine.ts");
  logStartWarnings(log, settings, input, problem);
  for (const [variable, problem] of settings.unusable) log.warn(problem, { variable });
  const { environment } = settings;
  for (const { missing, present, problem } of Object.values((environment.kind === "live" && environment.half) || {}))
    if (problem === undefined)
      log.warn("an address or a key is missing: all tools of this API report this", { missing, present });
}

/**
 * Adds words to the allowed folders of the flag or, without it, of the variable, because bundles pass folders as words.
 * Ignores unfilled placeholders (`${…}`).
 */
export function wordsAsFolders({ words, flags }: CommandLine, environment: NodeJS.ProcessEnv): CommandLine {
  const { variable } = SETTINGS.allowedDirs;
  const isFilled = (word: string): boolean => !/^\$\{[^}]*\}$/.test(word);
  const folders = words.filter(isFilled);
  const stray = folders.find((folder) => !isAbsolute(folder));
  if (stray !== undefined) throw oneTooMany(stray);
  if (folders.length === 0) return { words: [], flags };
  const set = flags.get("allowed-dirs") ?? environment[variable];
  const all = set === undefined || !isFilled(set) ? folders : [set, ...folders];
  return { words: [], flags: new Map([...flags, ["allowed-dirs", all.join(delimiter)]]) };
}

/** After how many milliseconds the store is opened, even without a call. By then, a client has usually listed tools. */
const SOON_MS = 1000;

/** Opens the store and creates the services at the first call, or soon after the start. Tool lists need neither. */
function connectLazily(
  settings: Settings,
  shared: Pick<Shared, "stopping" | "observer"> & Required<Pick<Shared, "logging">>,
  environment: SettingsInput["environment"],
) {
  let made: ServerProcess | undefined;
  let connecting: Promise<ServerProcess> | undefined;
  const connect = async (): Promise<ServerProcess> => {
    const { openProcess } = await import("../runtime/connect.ts");
    made = await openProcess(settings, shared);
    await made.start();
    return made;
  };
  const connected = (): Promise<ServerProcess> => {
    connecting ??= connect();
    return connecting;
  };
  const soon = setTimeout(() => {
    const failed = (error: unknown): void => shared.logging.log.error("the services could not be started", { error });
    if (!shared.stopping.aborted) connected().catch(failed);
  }, SOON_MS).unref();
  return {
    connected,
    /** The services, including the web page on which the user of this machine decides about changes. */
    services: once(async () => {
      const [its, { withPage }] = await Promise.all([connected(), import("../runtime/decision-page.ts")]);
      return withPage(its, settings, environment);
    }),
    now: () => made,
    async close(): Promise<void> {
      clearTimeout(soon);
      await connecting?.catch(() => undefined);
      await made?.close();
    },
  };
}
