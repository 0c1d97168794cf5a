import { failedRequestLine } from "../answers/arrival-notes.ts";
import { arrivalText, coverageText } from "../answers/arrived-events.ts";
import { countArrived, coverageOf } from "../events/coverage.ts";
import { parseJson } from "../platform/json.ts";
import { acceptedKeys, pageOf } from "../runtime/embedded-sandbox.ts";
import { inputOf, settingsFrom } from "../runtime/settings-input.ts";
import { allowClosedOutput, cannotListen, stopSignal } from "../runtime/terminal.ts";
import { BUILT_IN_KEYS } from "../sandbox/callers.ts";
import { type Sandbox, startSandbox } from "../sandbox/index.ts";
import { readSeed, SeedError } from "../sandbox/seed.ts";
import { DataFileError } from "../sandbox/state-dump.ts";
import { type CommandLine, optionOf } from "../settings/command-line.ts";
import { address, isPlain, path, SettingsError, text, wholeNumber } from "../settings/value-types.ts";

const PLAIN = ", with their keys, unencrypted over http";

/** Serves the emulated APIs until a signal. Throws a SettingsError if the port or a file cannot be used. */
export async function runSandboxLine(line: CommandLine): Promise<number> {
  const given = line.flags.get("seed");
  const flags = new Map([
    ...line.flags,
    ["mode", "sandbox"],
    ...(given === undefined ? [] : [["sandbox-seed", given] as const]),
  ]);
  const { environment, http } = settingsFrom(inputOf({ ...line, flags }));
  if (environment.kind !== "sandbox") throw new TypeError("the mode sandbox has the environment of a sandbox");
  const data = optionOf(line, "data", path);
  const forward = optionOf(line, "forward", address);
  const host = optionOf(line, "host", text) ?? "127.0.0.1";
  const port = optionOf(line, "port", wholeNumber(0, 65_535)) ?? 4010;
  const isQuiet = line.flags.has("quiet");
  allowClosedOutput();
  const asked = stopSignal();
  const seed = await orSay(readSeed(environment.seed));
  const sandbox = await orSay(
    startSandbox({
      host,
      port,
      allowedHosts: http.allowedHosts,
      keys: acceptedKeys(environment.managementKey, environment.eventKey),
      forward,
      dataFile: data,
      seed,
      page: pageOf,
      failed: isQuiet ? undefined : (request) => print([failedRequestLine(request)]),
    }),
    (thrown) => cannotListen(host, port, thrown),
  );
  const held = sandbox.targetings().map(({ _id, name }) => `  ${name} (${_id})`);
  const [key, readKey] = BUILT_IN_KEYS.management;
  const [appKey] = BUILT_IN_KEYS.app;
  print([
    `Sandbox of the event and management APIs: ${sandbox.url}`,
    `Open ${sandbox.url}/ in a browser to look at it.`,
    "",
    `Management API: ${sandbox.url}/context-targeting, header x-api-key: ${key.key} (reads and writes) or ${readKey.key} (reads)`,
    `Event API: POST ${sandbox.url}/event, header Authorization: ${appKey}`,
    `Control plane: ${sandbox.url}/_sandbox (see docs/reference/sandbox.md)`,
    ...(forward === undefined ? [] : [`Events are forwarded to ${forward}${isPlain(forward) ? PLAIN : ""}`]),
    ...(data === undefined ? [] : [`State is stored in ${data}`]),
    ...(held.length === 0 ? [] : ["The sandbox contains:", ...held]),
    "",
    `To test an app with the sandbox, use ${sandbox.url} as the base address of its event API:`,
    `  curl -X POST ${sandbox.url}/event -H "Authorization: ${appKey}" -H "Content-Type: application/json" \\`,
    `    -d '{"uid":"user-1","eventName":"app_open"}'`,
    `  curl ${sandbox.url}/_sandbox/events`,
    "",
  ]);
  if (!isQuiet) sandbox.onEvent((event) => print([arrivalText(event, arrivedEvent(event).body)]));
  await asked;
  await orSay(sandbox.close());
  print([sandbox.shutdownSummary(), coverageText(coverageOf(countArrived(sandbox.events().map(arrivedEvent))))]);
  return 0;
}

async function orSay<Value>(work: Promise<Value>, ofThePort?: (thrown: Error) => Error): Promise<Value> {
  try {
    return await work;
  } catch (thrown) {
    if (thrown instanceof SeedError) throw new SettingsError(`${thrown.message} (--seed)`);
    if (thrown instanceof DataFileError) {
      throw new SettingsError(`${thrown.message}: use a separate file in an existing folder for --data`);
    }
    const isOfThePort = thrown instanceof Error && "syscall" in thrown;
    throw isOfThePort && ofThePort !== undefined ? ofThePort(thrown) : thrown;
  }
}

function arrivedEvent({ text, isJson, verdict, findings }: ReturnType<Sandbox["events"]>[number]) {
  return { ...(isJson ? { body: parseJson(text) } : { body: undefined, text }), verdict, findings };
}

function print(lines: readonly string[]): void {
  process.stdout.write(`${lines.join("\n")}\n`);
}
