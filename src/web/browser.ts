import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { delimiter } from "node:path";
import { type Settings, withoutSecrets } from "../settings/settings.ts";

type Variables = Readonly<Record<string, string | undefined>>;

/** If a command that opens the browser fails within this many milliseconds, the next command is tried. */
const FAILS_WITHIN_MS = 2000;
const CONTAINER_MARKS = ["/.dockerenv", "/run/.containerenv"];

/**
 * Returns whether a page may be opened in a person's browser. With `auto`, only if the environment shows that the
 * person works at this machine's screen.
 */
export function mayOpenBrowser(
  page: "auto" | "on" | "off",
  environment: Variables,
  platform = process.platform,
): boolean {
  const { BROWSER, DISPLAY, WAYLAND_DISPLAY, CI, SSH_CONNECTION, KUBERNETES_SERVICE_HOST, container } = environment;
  if (page === "off" || BROWSER === "none") return false;
  if (page === "on") return true;
  const isContainer = KUBERNETES_SERVICE_HOST || container || CONTAINER_MARKS.some((mark) => existsSync(mark));
  if (CI || isContainer || (SSH_CONNECTION && !BROWSER)) return false;
  if (BROWSER) return true;
  return platform === "linux" ? Boolean(DISPLAY || WAYLAND_DISPLAY) : platform === "darwin" || platform === "win32";
}

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

/** Returns the name of the user of this machine, which the audit log records with decisions. */
export function localUserName(environment: Readonly<Record<string, string | undefined>>): string {
  try {
    return userInfo().username;
  } catch {
    // A process in a container may run under a user ID without an account, which has no name.
    return environment.USER ?? "local";
  }
}

/**
 * Returns the name under which terminal commands store runs. With a shared store, it contains the user and the host,
 * because users of several machines have runs there.
 */
export function localCaller({ store }: Pick<Settings, "store">): string {
  return store === undefined ? "local" : `local:${userInfo().username}@${hostname()}`;
}
