import type { Fence } from "../platform/fence.ts";
import type { RequestOptions } from "./management.ts";

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
