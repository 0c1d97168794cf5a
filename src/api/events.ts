import * as z from "zod";
import { isJsonObject } from "../platform/json.ts";
import type { Fence } from "../runs/turn.ts";
import { EVENT_MESSAGES } from "../spec/events.ts";
import type { RouteTable } from "../spec/routes.ts";
import { call, errorOf, isSuccess, jsonIn, valueIn } from "./answers.ts";
import type { Http } from "./http.ts";
import type { RequestOptions } from "./management.ts";

export interface EventAnswer {
  readonly statusCode: number;
  /** The word in the service's answer: `ok`, `!invalid` or an unknown one. Undefined if the body has no `message`. */
  readonly message: string | undefined;
}

/**
 * Sends events, each in its own request. An answer with the message `!invalid` is returned even if its status is an
 * error. Throws an ApiError for any other answer whose status is not 2xx, and if there is no answer.
 */
export interface EventApi {
  /** Sends an event. `body` is JSON. `fence` may stop the event right before it is sent. */
  track(body: string, options?: RequestOptions & { readonly fence?: Fence }): Promise<EventAnswer>;
  /** Opens a connection if none is idle, so that the next event need not wait. Throws a NotSentError if it fails. */
  connect?(): Promise<void>;
}

export function eventsOver(http: Http, routes: RouteTable): EventApi {
  return {
    connect: () => http.connect("trackEvent"),
    async track(body, { signal, fence } = {}) {
      const { asked, answer } = await call(http, routes, "trackEvent", { body, signal, fence });
      const parsed = jsonIn(answer.body);
      const message = isJsonObject(parsed) && typeof parsed.message === "string" ? parsed.message : undefined;
      if (!isSuccess(answer) && message !== EVENT_MESSAGES.invalid) throw errorOf(asked, answer);
      return { statusCode: answer.statusCode, message };
    },
  };
}

const sandboxEvent = z.looseObject({
  at: z.string(),
  verdict: z.enum(["recorded", "ignored", "rejected"]),
  uid: z.string().nullable(),
  eventName: z.string().nullable(),
  bytes: z.number(),
  findings: z.array(z.object({ path: z.string(), rule: z.string(), effect: z.string() })),
  body: z.unknown().optional(),
  text: z.string().optional(),
});

const sandboxEvents = z.object({
  events: z.array(sandboxEvent),
  total: z.number(),
  dropped: z.number(),
  unknownPaths: z.object({ count: z.number(), newest: z.object({ at: z.string(), path: z.string() }) }).optional(),
});

export type SandboxEvent = z.output<typeof sandboxEvent>;

/**
 * Events that a sandbox received, the oldest first. `total` counts all that match the query. `dropped` counts those
 * that the sandbox no longer stores. `unknownPaths` counts POST requests to paths that the sandbox does not have.
 */
export type SandboxEvents = z.output<typeof sandboxEvents>;

export interface SandboxQuery {
  readonly uid?: string | undefined;
  readonly eventName?: string | undefined;
  readonly verdict?: "recorded" | "ignored" | "rejected" | undefined;
  readonly since?: number | undefined;
  /** The maximum number of events: 0 to 100,000. */
  readonly limit: number;
}

/** Reads what a sandbox received (docs/reference/sandbox.md, "The control plane"). */
export interface SandboxApi {
  events(query: SandboxQuery, options?: RequestOptions): Promise<SandboxEvents>;
}

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
