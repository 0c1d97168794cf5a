import type { CommandLine } from "../settings/command-line.ts";
import { SettingsError } from "../settings/error.ts";
import { address, type Form, path, text, wholeNumber } from "../settings/forms.ts";
import { settingsOf } from "./connect.ts";
import { acceptedKeys } from "./embedded-sandbox.ts";
import { runSandbox } from "./sandbox.ts";

/** Serves the sandbox as the command line says; it accepts the keys of the settings, too. Gives the exit code. */
export async function runSandboxLine(line: CommandLine): Promise<number> {
  const option = <Value>(flag: string, form: Form<Value>): Value | undefined => {
    const given = line.flags.get(flag);
    if (given === undefined) return undefined;
    const value = form.read(given);
    if (value === undefined) throw new SettingsError(`--${flag} must be ${form.words}; it is ${JSON.stringify(given)}`);
    return value;
  };
  // This command talks to no API, whatever else is set.
  const { environment } = settingsOf({ ...line, flags: new Map([...line.flags, ["mode", "sandbox"]]) });
  const data = option("data", path);
  const forward = option("forward", address);
  await runSandbox({
    host: option("host", text) ?? "127.0.0.1",
    port: option("port", wholeNumber(0, 65_535)) ?? 4010,
    ...(data !== undefined && { data }),
    ...(forward !== undefined && { forward }),
    keys: environment.kind === "sandbox" ? acceptedKeys(environment.managementKey, environment.eventKey) : {},
  });
  return 0;
}
