import { arrivedFindings } from "../../events/findings.ts";
import { nearestName } from "../../events/spelling.ts";
import { ROUTES } from "../../spec/routes.ts";
import { plain } from "../fence.ts";

const MOST_REASONS = 20;
/** As wide as the time that begins a line. */
const INDENT = " ".repeat(9);

/** What a sandbox knows of an event: its findings, and its body, which is undefined where what was sent is no JSON. */
type Findings = Parameters<typeof arrivedFindings>[0]["findings"];

/** An event that arrived, as one line; where it is not recorded, with each reason, the further ones on further lines. */
export function arrivalText(
  event: {
    readonly at: string;
    readonly verdict: string;
    readonly uid: string | null;
    readonly eventName: string | null;
    readonly findings: Findings;
  },
  body: unknown,
): string {
  const { at, verdict, uid, eventName, findings } = event;
  const [why, ...further] = verdict === "recorded" ? [] : reasons(findings, body);
  const named = [eventName ?? "(no name)", `uid ${uid ?? "(none)"}`].map(plain);
  const line = [`${at.slice(11, 19)} ${verdict}`, ...named, ...(why === undefined ? [] : [why])].join("  ");
  return [line, ...further.map((reason) => `${INDENT}${reason}`)].join("\n");
}

/** What keeps an event from being recorded, and how to fix it, one sentence each. */
function reasons(findings: Findings, body: unknown): readonly string[] {
  const found = arrivedFindings({ body, findings, ...(body === undefined && { text: "" }) });
  const sentences = found
    .filter(({ isDecisive }) => isDecisive)
    // A sentence about an entry of a list does not say which entry it is about.
    .map(({ path, message, fix }) => plain(`${path.includes("[") ? `${path}: ` : ""}${message}; ${fix}`));
  if (sentences.length <= MOST_REASONS) return sentences;
  return [...sentences.slice(0, MOST_REASONS), `and ${sentences.length - MOST_REASONS} more`];
}

/** A request that failed and left no event, as one line: `12:00:00 404 POST /events: did you mean /event?` */
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

/** The first folders of the APIs' paths: `event` and `context-targeting`. */
const FIRST_FOLDERS = [...new Set(Object.values(ROUTES).map(({ path }) => path.split("/")[1] ?? ""))];

/** The path that a request with an unknown path was probably meant for. */
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
