import type { SandboxApi } from "../api/events.ts";
import { isJsonObject } from "../platform/json.ts";
import type { Verdict } from "./catalogue.ts";

/** The number of newest events to search. Other events may arrive at the same time as the searched one. */
const LOOKED_AT = 50;
/** A longer `uid` would make the URL too long for servers. */
const LONGEST_UID = 512;

/** Creates a function that finds the sandbox's verdict on an event that was just sent. */
export function observerOf(sandbox: SandboxApi): (event: unknown) => Promise<Verdict | undefined> {
  return async (event) => {
    const uid = isJsonObject(event) ? event.uid : undefined;
    const known = typeof uid === "string" && uid !== "" && uid.length <= LONGEST_UID;
    const { events } = await sandbox.events({ limit: LOOKED_AT, ...(known && { uid }) });
    const sent = JSON.stringify(event);
    return events.findLast(({ body }) => JSON.stringify(body) === sent)?.verdict;
  };
}
