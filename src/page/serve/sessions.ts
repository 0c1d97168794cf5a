import { randomBytes } from "node:crypto";
import * as z from "zod";
import { TOKEN_HEADER } from "../paths.ts";
import { sealFor } from "./seal.ts";

/** A person's session with the page. Its token is kept by the page alone, which sends it with each request. */
export interface PageSession<Person> {
  /** Which session it is, as long as it is renewed. */
  readonly id: string;
  /** Who it is, as it was opened. */
  readonly person: Person;
  readonly endsAt: number;
}

/** The sessions of those who share a key. */
interface PageSessions<Person> {
  /** Opens a session, for 12 hours or a shorter time; gives its token. */
  open(person: Person, lastsMs?: number): string;
  /** Gives the token with which a session goes on until its end, with what is known of its person now. */
  renew(session: PageSession<Person>, person: Person): string;
  /** The session of a request's token, while it lasts. */
  of(request: Request): PageSession<Person> | undefined;
  /** Ends a session in this process: none of its tokens is accepted any more. */
  end(session: PageSession<Person>): void;
}

const LAST_MS = 12 * 3_600_000;

/**
 * Keeps sessions in their tokens, sealed: with a key of this process they end with it, and with one that others share
 * they last in each of them. `person` is the form of what is sealed.
 */
export function pageSessions<Person>({
  person: form,
  key = randomBytes(32),
  now = Date.now,
}: {
  readonly person: z.ZodType<Person>;
  readonly key?: Uint8Array;
  readonly now?: () => number;
}): PageSessions<Person> {
  const content = z.object({ id: z.string(), person: form });
  const { seal, open } = sealFor({ key, purpose: "page session", content, now });
  /** The sessions that were ended before their time, with that time. */
  const ended = new Map<string, number>();
  return {
    open: (person, lastsMs = LAST_MS) =>
      seal({ id: randomBytes(16).toString("base64url"), person }, now() + Math.min(lastsMs, LAST_MS)),
    renew: ({ id, endsAt }, person) => seal({ id, person }, endsAt),
    of(request) {
      const opened = open(request.headers.get(TOKEN_HEADER) ?? "");
      if (opened === undefined || ended.has(opened.content.id)) return undefined;
      return { ...opened.content, endsAt: opened.endsAt };
    },
    end({ id, endsAt }) {
      for (const [one, until] of ended) if (until <= now()) ended.delete(one);
      ended.set(id, endsAt);
    },
  };
}
