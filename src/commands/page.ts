import { type Clock, systemClock } from "../platform/clock.ts";
import { openProcess } from "../runtime/connect.ts";
import { LOOPBACK, type LocalPage, localPage } from "../runtime/local-page.ts";
import { inputOf, settingsFrom } from "../runtime/settings-input.ts";
import { cannotListen, stopSignal } from "../runtime/terminal.ts";
import { type CommandLine, optionOf } from "../settings/command-line.ts";
import type { Settings } from "../settings/settings.ts";
import { SettingsError, wholeNumber } from "../settings/value-types.ts";
import type { ToolServices } from "../tools/define-tool.ts";
import { localCaller, localUserName } from "../web/browser.ts";
import { openBrowser } from "../web/open-browser.ts";
import { shownEnvironment } from "../web/seen.ts";

/** The command ends if the page was not open in any browser tab for this many milliseconds. */
const ENDS_AFTER_MS = 600_000;
const LOOK_MS = 1000;

/** Serves the web page for the local user's runs. Ends at a signal, or some time after the page was closed. */
export async function runPage(line: CommandLine): Promise<number> {
  const asked = stopSignal();
  const port = optionOf(line, "port", wholeNumber(0, 65_535)) ?? 0;
  const input = inputOf(line);
  const settings = settingsFrom({ ...input, overStdio: true });
  if (settings.page === "off")
    throw new SettingsError("the web page cannot be opened, because TARGETING_MCP_PAGE is off", "TARGETING_MCP_PAGE");
  const stopping = new AbortController();
  const { services, audit, log, close } = await openProcess(settings, { stopping: stopping.signal, inTerminal: true });
  const { project } = services;
  const shown = {
    services: { ...drivable(services, settings), noteDecision: audit, person: localUserName(input.environment) },
    caller: localCaller(settings),
    project,
  };
  const environment = shownEnvironment(services, project);
  const page = await localPage(shown, { log, port, environment }).catch((cause: unknown) => {
    throw cannotListen(LOOPBACK, port, cause);
  });
  const opened = await opensPage(page, input.environment);
  if (opened) await Promise.race([asked, nobodyLooks(page.open, systemClock)]);
  stopping.abort();
  await page.close();
  await close();
  return opened ? 0 : 1;
}

/**
 * If the runs belong to a sandbox that is part of another process, removes the services that execute changes or use the
 * sandbox, because this process cannot reach it. Otherwise returns all services.
 */
function drivable({ changes, sandbox, testBench, ...services }: ToolServices, { environment }: Settings): ToolServices {
  const isElsewhere = environment.kind === "sandbox" && environment.url === undefined;
  if (isElsewhere) return services;
  return { ...services, ...(changes && { changes }), ...(sandbox && { sandbox }), ...(testBench && { testBench }) };
}

/** Opens the page in a browser, and prints its link in a terminal. Returns false if neither is possible. */
async function opensPage(page: LocalPage, environment: Readonly<Record<string, string | undefined>>): Promise<boolean> {
  const link = page.link();
  const isTerminal = process.stdout.isTTY === true;
  if (isTerminal) process.stdout.write(`Open this link within two minutes; it works once: ${link}\n`);
  const isOpen = environment.BROWSER !== "none" && (await openBrowser(link, environment));
  if (!(isOpen || isTerminal)) {
    process.stderr.write("No browser can be opened here. Run this command in a terminal, or set BROWSER.\n");
  }
  return isOpen || isTerminal;
}

export async function nobodyLooks(open: () => number, clock: Pick<Clock, "now" | "sleep">): Promise<void> {
  let since = clock.now();
  while (clock.now() - since < ENDS_AFTER_MS) {
    await clock.sleep(LOOK_MS);
    if (open() > 0) since = clock.now();
  }
}
