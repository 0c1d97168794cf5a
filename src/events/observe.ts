import type { SandboxApi } from "../api/events.ts";
import { isJsonObject, type Verdict } from "./catalogue.ts";

/** How many of the newest events are looked at: others may arrive at the same time. */
const LOOKED_AT = 50;
/** A longer `uid` makes an address that servers refuse. */
const LONGEST_UID = 512;

/** Makes a look for the verdict that a sandbox kept for an event sent a moment ago; undefined where it is not there. */
export function observerOf(sandbox: SandboxApi): (event: unknown) => Promise<Verdict | undefined> {
  return async (event) => {
    const uid = isJsonObject(event) ? event.uid : undefined;
    const known = typeof uid === "string" && uid !== "" && uid.length <= LONGEST_UID;
    const { events } = await sandbox.events({ limit: LOOKED_AT, ...(known && { uid }) });
    const sent = JSON.stringify(event);
    return events.findLast(({ body }) => JSON.stringify(body) === sent)?.verdict;
  };
}
