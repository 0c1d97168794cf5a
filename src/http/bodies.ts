import type { IncomingMessage } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import { isJsonContentType } from "@modelcontextprotocol/server";
import * as z from "zod";
import { MAX_MEMBERS, MAX_VALUES, membersIn, valuesIn } from "../mcp/read-arguments.ts";
import { noteArrival } from "../mcp/server-parts.ts";
import { addCount } from "../platform/by-key.ts";
import { parseJson } from "../platform/json.ts";
import { httpError, onResponseClosed } from "../web/http-errors.ts";

/** The maximum size of a body in bytes, twice that of a request to the API. */
const LARGEST_BODY = 16 * 1_048_576;
const LARGEST_PLAIN_BODY = 256 * 1024;
/** The time limit for receiving a whole body after its headers, in milliseconds. */
const BODY_TIMEOUT_MS = 15_000;
const MAX_MESSAGES = 20;

/** How long the rest of a too large body is read, in ms. Many clients read the answer only after sending all. */
const REST_MS = 1000;

/** Only a body that has not arrived after this many milliseconds counts towards MAX_UNFINISHED. */
const SOON_MS = 100;

const MAX_UNFINISHED = 64;
const MAX_BYTES = 8 * LARGEST_BODY;
const MAX_KEPT_VALUES = 8 * MAX_VALUES;

const CLOSING = { connection: "close" } as const;
const INVALID_REQUEST = -32_600;
const PARSE_ERROR = -32_700;

/** From this many bytes on, bodies are parsed one by one: parsing takes memory of about ten times the size. */
const LARGE_BODY = 1_048_576;
const MAX_LARGE_BYTES = 2 * LARGEST_BODY;
/** The estimated memory of a parsed value in bytes. Many short values need more memory than their text. */
const BYTES_A_VALUE = 40;

export interface ReadBody {
  readonly held?: Held | undefined;
  readonly body: unknown;
  readonly messages: readonly Message[];
}

export type Message = ReturnType<typeof messageOf>;

/** Reads JSON bodies. Only calls of `toolsWithLists` may be large, and wait at most `waitMs` for memory. */
export function bodyReader(toolsWithLists: ReadonlySet<string>, waitMs: number) {
  const large = largeBodies(MAX_LARGE_BYTES);
  const unfinished = callerQuota(MAX_UNFINISHED);
  const bytesKept = callerQuota(MAX_BYTES);
  const valuesKept = callerQuota(MAX_KEPT_VALUES);
  return async (
    request: Request,
    { incoming, outgoing }: HttpBindings,
    caller: string,
  ): Promise<ReadBody | Response> => {
    if (request.method !== "POST") return { body: undefined, messages: [] };
    if (!isJsonContentType(request.headers.get("content-type")))
      return httpError(415, "The body must be application/json.", CLOSING);
    const [arriving, bytes, values] = [unfinished.claim(caller), bytesKept.claim(caller), valuesKept.claim(caller)];
    for (const claim of [arriving, bytes, values]) onResponseClosed(outgoing, claim.end);
    const read = await readBody(incoming, bytes, arriving);
    arriving.end();
    if (typeof read === "string") return httpError(...UNREAD[read]);
    noteArrival(request, Date.now());
    const count = valuesIn(read, MAX_VALUES);
    if (count > MAX_VALUES)
      return httpError(413, `The body has more than ${MAX_VALUES} values. Send the items in several calls.`);
    if (membersIn(read, MAX_MEMBERS) > MAX_MEMBERS)
      return httpError(
        413,
        `An object in the body has more than ${MAX_MEMBERS} fields. Send the items in several calls.`,
      );
    if (!values.more(count)) return httpError(...UNREAD.noRoom);
    if (read.length < LARGE_BODY) return parsed(read, toolsWithLists);
    const answered = new Promise<void>((resolve) => onResponseClosed(outgoing, resolve));
    const room = Math.max(read.length, count * BYTES_A_VALUE);
    const held = await large.enter(caller, room, waitMs, answered);
    if (held === undefined) return httpError(...UNREAD.noRoom);
    const body = parsed(read, toolsWithLists);
    return body instanceof Response ? body : { ...body, held };
  };
}

type Unread = "broken" | "late" | "tooLarge" | "noRoom" | "tooMany";

const UNREAD: Readonly<Record<Unread, Parameters<typeof httpError>>> = {
  broken: [400, "The body did not arrive completely. Send the request again."],
  late: [
    408,
    `The body did not arrive completely within ${BODY_TIMEOUT_MS / 1000} seconds. Send the request again.`,
    CLOSING,
  ],
  tooLarge: [413, `The body has more than ${LARGEST_BODY} bytes. Send the items in several calls.`, CLOSING],
  noRoom: tooBusy("The server is busy."),
  tooMany: tooBusy("The server is still receiving too many other requests."),
};

function tooBusy(why: string): Parameters<typeof httpError> {
  return [503, `${why} Try again in a second.`, { ...CLOSING, "retry-after": "1" }];
}

/** Reads a body. Of a too large one, receives the rest for up to REST_MS, so that the client can read the response. */
function readBody(incoming: IncomingMessage, room: Reservation, unfinished: Reservation): Promise<Buffer | Unread> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let isOver = false;
  let rest: NodeJS.Timeout | undefined;
  return new Promise((resolve) => {
    const end = (how: Buffer | Unread): void => {
      isOver = true;
      clearTimeout(soon);
      clearTimeout(late);
      clearTimeout(rest);
      chunks.length = 0;
      resolve(how);
    };
    const soon = setTimeout(() => unfinished.more(1) || end("tooMany"), SOON_MS);
    const late = setTimeout(() => end("late"), BODY_TIMEOUT_MS);
    const dropRest = (): void => {
      chunks.length = 0;
      rest = setTimeout(() => end("tooLarge"), REST_MS);
    };
    incoming.on("data", (chunk: Buffer) => {
      if (isOver || rest !== undefined) return;
      bytes += chunk.length;
      chunks.push(chunk);
      if (bytes > LARGEST_BODY) dropRest();
      else if (!room.more(chunk.length)) end("noRoom");
    });
    incoming.once("end", () => end(rest === undefined ? Buffer.concat(chunks) : "tooLarge"));
    incoming.once("error", () => end("broken"));
    incoming.once("close", () => end("broken"));
    if (Number(incoming.headers["content-length"] ?? 0) > LARGEST_BODY) dropRest();
  });
}

const message = z.object({ method: z.string(), params: z.object({ name: z.string().optional() }).optional() });

function parsed(json: Buffer, toolsWithLists: ReadonlySet<string>): ReadBody | Response {
  const body = parseJson(json.toString("utf8"));
  if (body === undefined) return httpError(400, "The body is not valid JSON.", {}, PARSE_ERROR);
  const given: readonly unknown[] = Array.isArray(body) ? body : [body];
  if (given.length > MAX_MESSAGES)
    return httpError(400, `A batch may contain at most ${MAX_MESSAGES} messages.`, {}, INVALID_REQUEST);
  const messages = given.map(messageOf);
  const mayBeLarge = messages.some(({ tool }) => tool !== undefined && toolsWithLists.has(tool));
  if (json.length > LARGEST_PLAIN_BODY && !mayBeLarge)
    return httpError(413, `The body of a call without a list of items may have at most ${LARGEST_PLAIN_BODY} bytes.`);
  return { body, messages };
}

function messageOf(given: unknown) {
  const { data } = message.safeParse(given);
  return { method: data?.method, tool: data?.method === "tools/call" ? data.params?.name : undefined };
}

/** How long a large body may delay the parsing of the next one, in milliseconds. Its tool call may continue longer. */
const TURN_MS = 5000;

export interface Held {
  /** Keeps the memory reserved until `work` and all earlier work ends. Reserves it again if it was released. */
  until(work: Promise<unknown>): void;
  /** Reports that this body will need hardly any more memory, so that the next body may be parsed. */
  planned(): void;
}

interface Waiting {
  readonly bytes: number;
  readonly begin: (held: Held) => void;
}

/** Limits large bodies in memory to `mostBytes` or one larger body. Each caller gets at most half, or one body. */
export function largeBodies(mostBytes: number) {
  const waitingOf = new Map<string, Set<Waiting>>();
  const takenBy = new Map<string, number>();
  let taken = 0;
  let isPlanning = false;
  const take = (caller: string, bytes: number): void => {
    taken += bytes;
    addCount(takenBy, caller, bytes);
  };
  const leaveQueue = (caller: string, body: Waiting): void => {
    const waiting = waitingOf.get(caller);
    waiting?.delete(body);
    if (waiting?.size === 0) waitingOf.delete(caller);
  };
  const admit = (): void => {
    if (isPlanning) return;
    for (const [caller, waiting] of waitingOf) {
      const [next] = waiting;
      const own = takenBy.get(caller) ?? 0;
      if (next === undefined || (own > 0 && own + next.bytes > mostBytes / 2)) continue;
      // The next body does not fit yet. All wait, because smaller bodies could overtake a large one forever.
      if (taken > 0 && taken + next.bytes > mostBytes) return;
      waitingOf.delete(caller);
      waitingOf.set(caller, waiting);
      leaveQueue(caller, next);
      isPlanning = true;
      next.begin(hold(caller, next.bytes));
      return;
    }
  };
  const hold = (caller: string, bytes: number): Held => {
    let works = 0;
    let isMine = true;
    const planned = (): void => {
      clearTimeout(turn);
      if (!isMine) return;
      isMine = false;
      isPlanning = false;
      admit();
    };
    const turn = setTimeout(planned, TURN_MS);
    const end = (): void => {
      works -= 1;
      if (works > 0) return;
      take(caller, -bytes);
      planned();
      admit();
    };
    return {
      planned,
      until(work) {
        if (works === 0) take(caller, bytes);
        works += 1;
        work.then(end, end);
      },
    };
  };
  return {
    /**
     * Waits until it is this body's turn, and reserves memory until `work` ends. Resolves to undefined if the wait
     * takes more than `mostMs` milliseconds, or if `work` ends first.
     */
    enter(caller: string, bytes: number, mostMs: number, work: Promise<unknown>): Promise<Held | undefined> {
      return new Promise((resolve) => {
        const body: Waiting = {
          bytes,
          begin(held) {
            clearTimeout(late);
            held.until(work);
            resolve(held);
          },
        };
        const giveUp = (): void => {
          clearTimeout(late);
          leaveQueue(caller, body);
          resolve(undefined);
          admit();
        };
        const late = setTimeout(giveUp, mostMs);
        work.then(giveUp, giveUp);
        waitingOf.set(caller, (waitingOf.get(caller) ?? new Set()).add(body));
        admit();
      });
    },
  };
}

interface Reservation {
  /** Reserves `amount` more. If that exceeds a limit, or after `end`, reserves nothing and returns false. */
  more(amount: number): boolean;
  end(): void;
}

/** Shares a quota of `forAll` among all callers. One caller gets at most half of it, but at least 1. */
export function callerQuota(forAll: number) {
  const forOne = Math.max(1, Math.floor(forAll / 2));
  const taken = new Map<string, number>();
  let all = 0;
  return {
    forOne,
    claim(caller: string): Reservation {
      let mine = 0;
      let isOver = false;
      const take = (amount: number): void => {
        all += amount;
        mine += amount;
        addCount(taken, caller, amount);
      };
      return {
        more(amount) {
          if (isOver || all + amount > forAll || (taken.get(caller) ?? 0) + amount > forOne) return false;
          take(amount);
          return true;
        },
        end() {
          isOver = true;
          take(-mine);
        },
      };
    },
  };
}
