import { hostname, userInfo } from "node:os";
import type { Settings } from "../settings/settings.ts";

/** The caller of a command without callers: over a shared store the person of this machine. */
export function ownCaller({ store }: Pick<Settings, "store">): string {
  return store === undefined ? "local" : `local:${userInfo().username}@${hostname()}`;
}
