import * as z from "zod";
import type { Fence } from "../platform/fence.ts";
import { EVENT_MESSAGES } from "../spec/events.ts";
import type { RouteTable } from "../spec/routes.ts";
import { isObject, jsonIn } from "./answers.ts";
import { call, isSuccess, valueIn } from "./calls.ts";
import type { Http } from "./http.ts";
import type { RequestOptions } from "./management.ts";
import { errorOf } from "./rejections.ts";

/** What the event endpoint answered: its status and its one word (event-tracking-api 4, 7). */
export interface EventAnswer {
  readonly statusCode: number;
  /** `ok`, `!invalid`, or another word; undefined when the body holds no `message`. */
  readonly message: string | undefined;
}

/**
 * The event API: one call is one HTTP request. Throws an ApiError when no answer about the event came: not sent,
 * rejected (401, 403, wrong route), busy (429) or ambiguous. An `!invalid` under any status is an answer, not an error.
 */
export interface EventApi {
  /** Sends one event; `body` is its JSON text, and `fence` says at the last moment whether it may leave. */
  track(body: string, options?: RequestOptions & { readonly fence?: Fence }): Promise<EventAnswer>;
  /** Opens a connection where none is idle, so that the next event leaves at once. Throws a NotSentError. */
  connect?(): Promise<void>;
}

/** The event API over HTTP (event-tracking-api 4, 7). */
export function eventsOver(http: Http, routes: RouteTable): EventApi {
  return {
    connect: () => http.connect("trackEvent"),
    async track(body, { signal, fence } = {}) {
      const { asked, answer } = await call(http, routes, "trackEvent", { body, signal, fence });
      const parsed = jsonIn(answer.body);
      const message = isObject(parsed) && typeof parsed.message === "string" ? parsed.message : undefined;
      if (!isSuccess(answer) && message !== EVENT_MESSAGES.invalid) throw errorOf(asked, answer);
      return { statusCode: answer.statusCode, message };
    },
  };
}

const sandboxEvent = z.looseObject({
  /** Arrival time, ISO 8601. */
  at: z.string(),
  verdict: z.enum(["recorded", "ignored", "rejected"]),
  uid: z.string().nullable(),
  eventName: z.string().nullable(),
  /** Length of the body. */
  bytes: z.number(),
  findings: z.array(z.object({ path: z.string(), rule: z.string(), effect: z.string() })),
  /** The body as JSON; absent where it was no JSON, or is too large for this answer. */
  body: z.unknown().optional(),
  /** The body as a text, where it was no JSON. */
  text: z.string().optional(),
});

const sandboxEvents = z.object({ events: z.array(sandboxEvent), total: z.number(), dropped: z.number() });

/** An event that a sandbox received, with the verdict it kept. */
export type SandboxEvent = z.output<typeof sandboxEvent>;

/** The newest events that match, oldest first; how many match in all; how many older ones were forgotten for room. */
export type SandboxEvents = z.output<typeof sandboxEvents>;

/** Which events of a sandbox to read; `since` in milliseconds since 1970. */
export interface SandboxQuery {
  readonly uid?: string | undefined;
  readonly eventName?: string | undefined;
  readonly verdict?: "recorded" | "ignored" | "rejected" | undefined;
  readonly since?: number | undefined;
  /** 0 to 100,000. */
  readonly limit: number;
}

/** Reads from the control plane of a sandbox (docs/reference/sandbox.md, "The control plane"). */
export interface SandboxApi {
  /** Reads events that arrived. Throws an ApiError when they cannot be read. */
  events(query: SandboxQuery, options?: RequestOptions): Promise<SandboxEvents>;
}

/** A sandbox's control plane over HTTP. */
export function sandboxOver(http: Http): SandboxApi {
  return {
    async events(query, { signal } = {}) {
      const operation = "sandboxEvents";
      const path = "/_sandbox/events";
      const search = new URLSearchParams();
      for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
      const answer = await http.send({ operation, method: "GET", path: `${path}?${search}`, signal });
      return valueIn(
        { asked: { operation, route: `GET ${path}`, setBy: http.setBy }, answer },
        (body) => sandboxEvents.safeParse(body).data,
      );
    },
  };
}
