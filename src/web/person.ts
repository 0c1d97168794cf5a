import { userInfo } from "node:os";

/** The user of this machine who decides, as the audit names them. */
export function personHere(environment: Readonly<Record<string, string | undefined>>): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run as a user who has no name.
    return environment.USER ?? "local";
  }
}
