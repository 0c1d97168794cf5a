import type { SandboxEvent, SandboxEvents } from "../api/events.ts";
import { nearestName } from "../events/spelling.ts";
import { isJsonObject } from "../platform/json.ts";
import { amount } from "../platform/text.ts";
import { ROUTES } from "../spec/routes.ts";
import { plain, quoteShort } from "./fence.ts";
import { many } from "./message-words.ts";

const TX_IDS_NAMED = 3;

/** Returns a note if recorded purchases have the tx_id of an earlier one. */
export function repeatedPurchasesNote(events: readonly SandboxEvent[]): readonly string[] {
  const times = new Map<string, number>();
  for (const { eventName, verdict, body } of events) {
    if (eventName !== "purchase" || verdict !== "recorded" || !isJsonObject(body)) continue;
    if (typeof body.tx_id === "string") times.set(body.tx_id, (times.get(body.tx_id) ?? 0) + 1);
  }
  const repeated = [...times].filter(([, count]) => count > 1);
  if (repeated.length === 0) return [];
  const named = repeated.slice(0, TX_IDS_NAMED).map(([id, count]) => `${quoteShort(id)} ${count} times`);
  const more = repeated.length - named.length;
  const which = `${named.join(", ")}${more > 0 ? `, and ${amount(more, "more tx_id")}` : ""}`;
  return [`Recorded purchases share a tx_id, and each counts as a purchase of its own: ${which}.`];
}

/** Returns a line about a failed request: `12:00:00 404 POST /events: did you mean /event?`. */
export function failedRequestLine(request: {
  readonly at: string;
  readonly method: string;
  readonly path: string;
  readonly status: number | undefined;
  readonly message: string;
}): string {
  const { at, method, path, status, message } = request;
  const meant = status === 404 ? pathMeant(path) : undefined;
  const why = meant === undefined ? message : `did you mean ${meant}?`;
  return plain(`${[at.slice(11, 19), status ?? "---", method, path].join(" ")}: ${why}`);
}

/** Returns a note if requests were sent to paths that the sandbox does not have, such as `/events`. */
export function unknownPathsNote({ unknownPaths }: Pick<SandboxEvents, "unknownPaths">): readonly string[] {
  if (unknownPaths === undefined) return [];
  const { count, newest } = unknownPaths;
  const meant = pathMeant(newest.path);
  const which = `${quoteShort(newest.path)} at ${newest.at}${meant === undefined ? "" : `; did you mean ${meant}?`}`;
  return [`${many(count, "request")} went to a path that does not exist (the newest: POST ${which}).`];
}

const FIRST_FOLDERS = [...new Set(Object.values(ROUTES).map(({ path }) => path.split("/")[1] ?? ""))];

function pathMeant(path: string): string | undefined {
  const folders = path.split("/").filter((folder) => folder !== "");
  const [found] = folders.flatMap((folder, at) => {
    const name = nearestName(folder, FIRST_FOLDERS);
    return name === undefined ? [] : [{ name, rest: folders.slice(at + 1) }];
  });
  if (found === undefined) return undefined;
  const isEvent = `/${found.name}` === ROUTES.trackEvent.path;
  const meant = `/${[found.name, ...(isEvent ? [] : found.rest)].join("/")}`;
  return meant === path ? undefined : meant;
}
