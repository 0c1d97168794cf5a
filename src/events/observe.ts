import type { SandboxApi } from "../api/events.ts";
import { isJsonObject } from "../platform/json.ts";
import type { Verdict } from "./catalogue.ts";

/** How many of the newest events are searched. Other events may arrive at the same time. */
const LOOKED_AT = 50;
/** With a longer `uid`, servers may reject the URL as too long. */
const LONGEST_UID = 512;

/** Returns a function that looks up the sandbox's verdict on an event that was just sent. */
export function observerOf(sandbox: SandboxApi): (event: unknown) => Promise<Verdict | undefined> {
  return async (event) => {
    const uid = isJsonObject(event) ? event.uid : undefined;
    const known = typeof uid === "string" && uid !== "" && uid.length <= LONGEST_UID;
    const { events } = await sandbox.events({ limit: LOOKED_AT, ...(known && { uid }) });
    const sent = JSON.stringify(event);
    return events.findLast(({ body }) => JSON.stringify(body) === sent)?.verdict;
  };
}
