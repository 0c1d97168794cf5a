import * as z from "zod";
import { valueIn } from "./calls.ts";
import type { Http } from "./http.ts";
import type { RequestOptions } from "./management.ts";

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
