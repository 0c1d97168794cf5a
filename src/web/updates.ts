import { createHash } from "node:crypto";
import type { StreamSource } from "./event-stream.ts";
import { runRows } from "./rows.ts";
import { type PageScope, runsOfOthers } from "./seen.ts";
import type { Message } from "./wire.ts";

/** How often a page that is open looks at the runs, which any process may change, in milliseconds. */
const LOOK_MS = 500;
/** After a look that took long, since there are many runs, it pauses so many times as long. */
const PAUSE_FACTOR = 5;

/** What the pages of runs receive: all recent runs, whenever one of them has changed. */
export function runUpdates(shown: PageScope, notice = () => ""): StreamSource<Message> {
  const ofOthers = runsOfOthers(shown);
  const rowsNow = async () => runRows(shown, await ofOthers());
  let told = "";
  let next = 0;
  return {
    async since(position) {
      const began = performance.now();
      next = Number.POSITIVE_INFINITY;
      const runs = await rowsNow().finally(() => {
        next = performance.now() + PAUSE_FACTOR * (performance.now() - began);
      });
      const now = createHash("sha256").update(JSON.stringify(runs)).digest("base64url");
      const messages: Message[] = now === position ? [] : [{ kind: "runs", whole: true, runs }];
      const text = notice();
      if (text !== told) messages.push({ kind: "notice", text });
      told = text;
      return { messages, position: now };
    },
    watch(changed) {
      const timer = setInterval(() => performance.now() >= next && changed(), LOOK_MS).unref();
      return () => clearInterval(timer);
    },
  };
}
