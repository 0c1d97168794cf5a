import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../platform/clock.ts";
import { makeFolder, replaceFile } from "../../platform/durable-files.ts";
import type { EndedSessions } from "../backend/backend.ts";
import { namesIn, readText, usable } from "./files.ts";

/** Only such names are files here, so that no path leads out of the folder. */
const SESSION_ID = /^[\w-]{1,64}$/;

/** The sessions of the page that were ended, as files that hold until when they have to be known. */
export function endedSessionsIn(folder: string, clock: Pick<Clock, "now">): EndedSessions {
  const inUse = <T>(work: () => Promise<T>): Promise<T> => usable(folder, work, "ended sessions", "");
  return {
    add: (id, until) =>
      inUse(async () => {
        if (!SESSION_ID.test(id)) return;
        await makeFolder(folder);
        for (const one of await namesIn(folder)) {
          const ends = Number(await readText(join(folder, one)));
          if (ends <= clock.now()) await rm(join(folder, one), { force: true });
        }
        await replaceFile(join(folder, id), String(until));
      }),
    has: (id) => inUse(async () => SESSION_ID.test(id) && Number(await readText(join(folder, id))) > clock.now()),
  };
}
