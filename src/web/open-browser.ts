import { spawn } from "node:child_process";
import { delimiter } from "node:path";
import { SETTING_LIST } from "../settings/registry.ts";
import type { Variables } from "./browser.ts";

/** If a command that opens the browser fails within this many milliseconds, the next command is tried. */
const FAILS_WITHIN_MS = 2000;

/**
 * Opens an address in the person's browser, without a shell. Uses the first command that starts and does not fail
 * within two seconds. The command gets the environment without the keys. Returns false if no command works.
 */
export async function openBrowser(
  address: string,
  environment: Variables,
  platform = process.platform,
): Promise<boolean> {
  for (const [program, ...args] of openersOf(environment, platform)) {
    if (program === undefined) continue;
    const given = args.some((arg) => arg.includes("%s"))
      ? args.map((arg) => arg.replaceAll("%s", address))
      : [...args, address];
    if (await started(program, given, withoutSecrets(environment))) return true;
  }
  return false;
}

function openersOf({ BROWSER }: Variables, platform: NodeJS.Platform): readonly (readonly string[])[] {
  const own = (BROWSER ?? "").split(delimiter).flatMap((command) => (command === "" ? [] : [command.split(" ")]));
  if (own.length > 0) return own;
  if (platform === "darwin") return [["open"]];
  return platform === "win32" ? [["rundll32", "url.dll,FileProtocolHandler"]] : [["xdg-open"]];
}

/** Returns the environment for another program: without the secret settings, in any case (Windows ignores the case). */
function withoutSecrets(environment: Variables): Variables {
  const secret = SETTING_LIST.flatMap((setting) => (setting.secret ? [setting.variable] : []));
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !secret.includes(name.toUpperCase())));
}

function started(program: string, args: readonly string[], environment: Variables): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { stdio: "ignore", detached: true, shell: false, env: { ...environment } } as const;
    const child = spawn(program, [...args], options);
    const timer = setTimeout(() => resolve(true), FAILS_WITHIN_MS);
    const finish = (isOpen: boolean): void => {
      clearTimeout(timer);
      resolve(isOpen);
    };
    child.once("error", () => finish(false));
    child.once("exit", (code) => finish(code === 0));
    child.unref();
  });
}
