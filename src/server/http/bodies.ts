import type { IncomingMessage } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import { isJsonContentType } from "@modelcontextprotocol/server";
import * as z from "zod";
import { MOST_MEMBERS, MOST_VALUES, membersIn, valuesIn } from "../arguments/json-values.ts";
import { noteArrival } from "../calls/arrivals.ts";
import { httpError, whenOver } from "./guards.ts";
import { type Held, largeBodies } from "./large-bodies.ts";
import { type Claim, shares } from "./shares.ts";

/** The largest body that is read, in bytes: twice what one request to the API may hold. */
const LARGEST_BODY = 16 * 1_048_576;
/** The largest body without a list that may be long, in bytes. */
const LARGEST_PLAIN_BODY = 256 * 1024;
/** How long a whole body may take to arrive, counted from its headers. */
const BODY_TIMEOUT_MS = 15_000;
const MOST_MESSAGES = 20;

/** A body that is complete within this time takes no place among the unfinished ones; most are. */
const SOON_MS = 100;

/** For all callers together: unfinished bodies, and bytes of bodies that wait for their answers. */
const MOST_UNFINISHED = 64;
const MOST_BYTES = 8 * LARGEST_BODY;
const MOST_KEPT_VALUES = 8 * MOST_VALUES;

const CLOSING = { connection: "close" } as const;
const INVALID_REQUEST = -32_600;
const PARSE_ERROR = -32_700;

/** Bodies from this size on take turns: what is made of one takes ten times its memory. */
const LARGE_BODY = 1_048_576;
const MOST_LARGE_BYTES = 2 * LARGEST_BODY;
/** What a body of many short values takes goes by their number: each counts as so many bytes of a body. */
const BYTES_A_VALUE = 40;

/** The body of a request, parsed. */
export interface ReadBody {
  /** The room that it holds; undefined for all but large ones. */
  readonly held?: Held | undefined;
  /** Undefined where the method is one without a body. */
  readonly body: unknown;
  readonly messages: readonly Message[];
}

/** The fields of a message that are read before an MCP server is made for it. */
export interface Message {
  readonly method: string | undefined;
  /** The tool that it calls. */
  readonly tool: string | undefined;
}

/** Reads bodies within the limits of all callers and of each. */
export type BodyReader = (request: Request, at: HttpBindings, caller: string) => Promise<ReadBody | Response>;

/**
 * Reads bodies as JSON. Only calls of `toolsWithLists` may be large, and large ones wait at most `waitMs` milliseconds
 * for their turn. A refused body is not kept.
 */
export function bodyReader(toolsWithLists: ReadonlySet<string>, waitMs: number): BodyReader {
  const large = largeBodies(MOST_LARGE_BYTES);
  const unfinished = shares(MOST_UNFINISHED);
  const bytesKept = shares(MOST_BYTES);
  const valuesKept = shares(MOST_KEPT_VALUES);
  return async (request, { incoming, outgoing }, caller) => {
    if (request.method !== "POST") return { body: undefined, messages: [] };
    if (!isJsonContentType(request.headers.get("content-type")))
      return httpError(415, "the body must be application/json", CLOSING);
    const [arriving, bytes, values] = [unfinished.claim(caller), bytesKept.claim(caller), valuesKept.claim(caller)];
    for (const claim of [arriving, bytes, values]) whenOver(outgoing, claim.end);
    const read = await readBody(incoming, bytes, arriving);
    arriving.end();
    if (typeof read === "string") return httpError(...UNREAD[read]);
    // Whatever it waits for from here on counts as the wait of its calls.
    noteArrival(request, Date.now());
    const count = valuesIn(read, MOST_VALUES);
    if (count > MOST_VALUES)
      return httpError(413, `the body holds more than ${MOST_VALUES} values: send the items in several calls`);
    if (membersIn(read, MOST_MEMBERS) > MOST_MEMBERS)
      return httpError(413, `an object in the body has more than ${MOST_MEMBERS} members`);
    if (!values.more(count)) return httpError(...UNREAD.noRoom);
    if (read.length < LARGE_BODY) return parsed(read, toolsWithLists);
    const answered = new Promise<void>((resolve) => whenOver(outgoing, resolve));
    const room = Math.max(read.length, count * BYTES_A_VALUE);
    const held = await large.enter(caller, room, waitMs, answered);
    if (held === undefined) return httpError(...UNREAD.noRoom);
    const body = parsed(read, toolsWithLists);
    return body instanceof Response ? body : { ...body, held };
  };
}

type Unread = "broken" | "late" | "tooLarge" | "noRoom" | "tooMany";

const UNREAD: Readonly<Record<Unread, Parameters<typeof httpError>>> = {
  broken: [400, "the body did not arrive whole"],
  late: [408, `the body did not arrive whole within ${BODY_TIMEOUT_MS / 1000} seconds`, CLOSING],
  tooLarge: [413, `the body is larger than ${LARGEST_BODY} bytes: send the items in several calls`, CLOSING],
  noRoom: crowded("too much is being worked on"),
  tooMany: crowded("too many bodies are still on their way"),
};

function crowded(why: string): Parameters<typeof httpError> {
  return [503, `${why}; try again`, { ...CLOSING, "retry-after": "1" }];
}

/**
 * Reads a body. It claims its bytes from `room`, and one place from `unfinished` where it does not arrive at once. Of a
 * refused body nothing is kept; the rest is received and dropped, so that the client gets to read the answer.
 */
function readBody(incoming: IncomingMessage, room: Claim, unfinished: Claim): Promise<Buffer | Unread> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let isOver = false;
  return new Promise((resolve) => {
    const end = (how: Buffer | Unread): void => {
      isOver = true;
      clearTimeout(soon);
      clearTimeout(late);
      chunks.length = 0;
      resolve(how);
    };
    const soon = setTimeout(() => unfinished.more(1) || end("tooMany"), SOON_MS);
    const late = setTimeout(() => end("late"), BODY_TIMEOUT_MS);
    incoming.on("data", (chunk: Buffer) => {
      if (isOver) return;
      bytes += chunk.length;
      chunks.push(chunk);
      if (bytes > LARGEST_BODY) end("tooLarge");
      else if (!room.more(chunk.length)) end("noRoom");
    });
    incoming.once("end", () => end(Buffer.concat(chunks)));
    incoming.once("error", () => end("broken"));
    incoming.once("close", () => end("broken"));
    if (Number(incoming.headers["content-length"] ?? 0) > LARGEST_BODY) end("tooLarge");
  });
}

const message = z.object({ method: z.string(), params: z.object({ name: z.string().optional() }).optional() });

function parsed(json: Buffer, toolsWithLists: ReadonlySet<string>): ReadBody | Response {
  let body: unknown;
  try {
    body = JSON.parse(json.toString("utf8"));
  } catch {
    return httpError(400, "the body is no JSON", {}, PARSE_ERROR);
  }
  const given: readonly unknown[] = Array.isArray(body) ? body : [body];
  if (given.length > MOST_MESSAGES)
    return httpError(400, `a batch holds at most ${MOST_MESSAGES} messages`, {}, INVALID_REQUEST);
  const messages = given.map(messageOf);
  const mayBeLarge = messages.some(({ tool }) => tool !== undefined && toolsWithLists.has(tool));
  if (json.length > LARGEST_PLAIN_BODY && !mayBeLarge)
    return httpError(413, `without a list of items a body has at most ${LARGEST_PLAIN_BODY} bytes`);
  return { body, messages };
}

function messageOf(given: unknown): Message {
  const { data } = message.safeParse(given);
  return { method: data?.method, tool: data?.method === "tools/call" ? data.params?.name : undefined };
}
