import { existsSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import type { Settings } from "../settings/settings.ts";

export type Variables = Readonly<Record<string, string | undefined>>;

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
