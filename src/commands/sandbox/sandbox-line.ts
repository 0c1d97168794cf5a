import { type CommandLine, optionOf } from "../../settings/command-line.ts";
import { address, path, text, wholeNumber } from "../../settings/forms.ts";
import { inputOf, settingsFrom } from "../settings-input.ts";
import { acceptedKeys } from "./embedded-sandbox.ts";
import { runSandbox } from "./sandbox.ts";

/** Serves the sandbox as the command line says; it accepts the keys of the settings, too. Gives the exit code. */
export async function runSandboxLine(line: CommandLine): Promise<number> {
  // This command talks to no API, whatever else is set.
  const seed = line.flags.get("seed");
  const flags = new Map([
    ...line.flags,
    ["mode", "sandbox"],
    ...(seed === undefined ? [] : [["sandbox-seed", seed] as const]),
  ]);
  const { environment, http } = settingsFrom(inputOf({ ...line, flags }));
  const data = optionOf(line, "data", path);
  const forward = optionOf(line, "forward", address);
  await runSandbox({
    host: optionOf(line, "host", text) ?? "127.0.0.1",
    port: optionOf(line, "port", wholeNumber(0, 65_535)) ?? 4010,
    allowedHosts: http.allowedHosts,
    isQuiet: line.flags.has("quiet"),
    ...(data !== undefined && { data }),
    ...(forward !== undefined && { forward }),
    ...(environment.kind === "sandbox" && {
      seed: environment.seed,
      keys: acceptedKeys(environment.managementKey, environment.eventKey),
    }),
  });
  return 0;
}
